//! A command's standard input: the log, as the guest asks for it.
//!
//! Reads are full: how the log is cut into lines, chunks or requests to a store never shows in how
//! many bytes a guest gets. And nothing is read ahead of the guest: how much of the log it has been
//! sent, which decides what objects it can read, follows from its own reads alone.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::{Buf as _, Bytes};

/// The next piece of the input, `None` at its end; or what kept it from being read.
pub type Chunk = Result<Option<Bytes>, crate::Error>;

/// The way to who supplies an input.
struct Demand {
    asks: SyncSender<()>,
    chunks: Receiver<Chunk>,
}

impl Demand {
    fn ask(&self) -> Chunk {
        let gone = || crate::Error::Internal { reason: "nothing supplies the log".to_owned() };
        self.asks.send(()).map_err(|_| gone())?;
        self.chunks.recv().map_err(|_| gone())?
    }
}

/// The side that supplies an input.
pub struct Supply {
    asked: Receiver<()>,
    chunks: SyncSender<Chunk>,
}

/// Bytes that a guest reads once, from the first to the last.
pub struct Stdin {
    /// Where more comes from; none when it is at its end.
    more: Option<Demand>,
    chunk: Bytes,
}

impl Supply {
    /// Answers each demand with what `next` returns, until the input is read to its end or dropped.
    pub fn serve(self, mut next: impl FnMut() -> Chunk) {
        while self.asked.recv().is_ok() {
            if self.chunks.send(next()).is_err() {
                return;
            }
        }
    }
}

impl Stdin {
    /// An input without a byte.
    #[must_use]
    pub fn empty() -> Self {
        Self { more: None, chunk: Bytes::new() }
    }

    /// An input, and who is to supply it.
    #[must_use]
    pub fn supplied() -> (Self, Supply) {
        let (asks, asked) = sync_channel(1);
        let (sender, chunks) = sync_channel(1);
        let stdin = Self { more: Some(Demand { asks, chunks }), chunk: Bytes::new() };
        (stdin, Supply { asked, chunks: sender })
    }

    /// The next `len` bytes, fewer only at the end; `None` where there is none left.
    ///
    /// # Errors
    /// Whatever kept the input from being read.
    pub fn read(&mut self, len: usize) -> Result<Option<Vec<u8>>, crate::Error> {
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len && self.fetch()? {
            let count = self.chunk.len().min(len - bytes.len());
            bytes.extend_from_slice(&self.chunk[..count]);
            self.chunk.advance(count);
        }
        Ok((len == 0 || !bytes.is_empty()).then_some(bytes))
    }

    /// Makes sure of a chunk with something in it; `false` at the end.
    fn fetch(&mut self) -> Result<bool, crate::Error> {
        while self.chunk.is_empty() {
            let Some(demand) = &self.more else { return Ok(false) };
            match demand.ask()? {
                Some(chunk) => self.chunk = chunk,
                None => self.more = None,
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn of_chunks(chunks: &'static [&'static str]) -> Stdin {
        let (stdin, supply) = Stdin::supplied();
        let mut chunks = chunks.iter().map(|chunk| Bytes::from_static(chunk.as_bytes()));
        thread::spawn(move || supply.serve(|| Ok(chunks.next())));
        stdin
    }

    #[test]
    fn reads_are_full_whatever_the_chunks() {
        let mut stdin = of_chunks(&["ab", "", "cdefg", "h"]);
        assert_eq!(stdin.read(0).unwrap().unwrap(), b"");
        assert_eq!(stdin.read(3).unwrap().unwrap(), b"abc");
        assert_eq!(stdin.read(3).unwrap().unwrap(), b"def");
        assert_eq!(stdin.read(100).unwrap().unwrap(), b"gh");
        assert_eq!(stdin.read(1).unwrap(), None);
        assert_eq!(stdin.read(0).unwrap().unwrap(), b"");
    }

    #[test]
    fn an_empty_input_is_at_its_end() {
        assert_eq!(Stdin::empty().read(1).unwrap(), None);
        assert_eq!(of_chunks(&[]).read(1).unwrap(), None);
    }

    #[test]
    fn a_supplier_that_is_gone_is_no_end() {
        let (mut stdin, supply) = Stdin::supplied();
        drop(supply);
        assert!(matches!(stdin.read(1), Err(crate::Error::Internal { .. })));
    }
}
