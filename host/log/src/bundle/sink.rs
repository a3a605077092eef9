//! Where a bundle is written to: tar, compressed and sealed on a thread of its own.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::bundle::seal::seal;
use crate::bundle::tar;
use crate::digest::Hasher;

/// zstd's own default.
const LEVEL: i32 = 3;
/// Compressing takes pieces of this size, whatever the members': the bytes that come out must not
/// depend on how they were read.
const PIECE: usize = 256 << 10;
/// Pieces that wait to be compressed.
const WAITING: usize = 8;

/// Takes members one after the other. Blocks while compressing lags behind.
pub(super) struct Sink<W> {
    piece: Vec<u8>,
    pieces: SyncSender<Vec<u8>>,
    thread: JoinHandle<io::Result<W>>,
    /// How many members it took.
    pub(super) members: u64,
    /// How many bytes of tar it took.
    pub(super) bytes: u64,
}

impl<W: Write + Send + 'static> Sink<W> {
    pub(super) fn new(out: W) -> Self {
        let (pieces, to_compress) = sync_channel::<Vec<u8>>(WAITING);
        let thread = std::thread::spawn(move || {
            let mut encoder = zstd::stream::write::Encoder::new(Hashed::new(out), LEVEL)?;
            encoder.include_checksum(true)?;
            let mut ended = false;
            for piece in to_compress {
                ended = piece.is_empty();
                encoder.write_all(&piece)?;
            }
            if !ended {
                return Err(io::Error::other("given up before its end"));
            }
            let Hashed { mut inner, hasher } = encoder.finish()?;
            inner.write_all(&seal(&hasher.finish()))?;
            inner.flush()?;
            Ok(inner)
        });
        Self { piece: Vec::with_capacity(PIECE), pieces, thread, members: 0, bytes: 0 }
    }

    /// Begins a member; its bytes and [`Sink::end`] must follow.
    pub(super) fn begin(&mut self, key: &str, size: u64) -> io::Result<()> {
        self.members += 1;
        self.add(&tar::header(key, size))
    }

    /// Ends a member.
    pub(super) fn end(&mut self, size: u64) -> io::Result<()> {
        self.add(&[0; tar::BLOCK][..tar::padding(size)])
    }

    /// A member whole.
    pub(super) fn member(&mut self, key: &str, bytes: &[u8]) -> io::Result<()> {
        self.begin(key, bytes.len() as u64)?;
        self.add(bytes)?;
        self.end(bytes.len() as u64)
    }

    /// Takes bytes of the member that was begun.
    pub(super) fn add(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
            if self.piece.len() == PIECE {
                let full = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
                self.send(full)?;
            }
        }
        Ok(())
    }

    /// Ends the archive and waits for what is on its way.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let sent = self.add(&tar::END).and_then(|()| {
            let last = std::mem::take(&mut self.piece);
            if !last.is_empty() {
                self.send(last)?;
            }
            self.send(Vec::new())
        });
        drop(self.pieces);
        let ended = self.thread.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        // Why the thread ended says more than that it did.
        ended.and_then(|out| sent.map(|()| out))
    }

    fn send(&mut self, piece: Vec<u8>) -> io::Result<()> {
        self.pieces.send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Hashes what passes through.
struct Hashed<W> {
    inner: W,
    hasher: Hasher,
}

impl<W> Hashed<W> {
    fn new(inner: W) -> Self {
        Self { inner, hasher: Hasher::default() }
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
