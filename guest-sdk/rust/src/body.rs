//! A body that is read piece by piece.

use std::io::{self, BufRead, Read};

use crate::Event;

/// Bytes that are asked for at once.
const PIECE_LEN: usize = 256 * 1024;

/// Reads an event's body from its start to its end. Never fails: a body that cannot be read ends
/// the step.
#[derive(Debug)]
pub struct Body<'a> {
    event: &'a Event,
    /// Where the next piece starts.
    offset: u64,
    piece: Vec<u8>,
    used: usize,
}

impl<'a> Body<'a> {
    pub(crate) fn new(event: &'a Event) -> Self {
        Self { event, offset: 0, piece: Vec::new(), used: 0 }
    }
}

impl BufRead for Body<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.piece.len() {
            self.piece = self.event.read_at(self.offset, PIECE_LEN);
            self.offset += self.piece.len() as u64;
            self.used = 0;
        }
        Ok(&self.piece[self.used..])
    }

    fn consume(&mut self, amount: usize) {
        self.used = self.piece.len().min(self.used + amount);
    }
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(buffer)?;
        self.consume(len);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Output, testing};

    #[test]
    fn reads_over_the_seams_of_pieces() {
        let whole: Vec<u8> = (0..=250).cycle().take(2 * PIECE_LEN + 3).collect();
        let event = testing::event(0, Kind::Push, &Output::bytes(whole.clone()));
        let mut read = Vec::new();
        event.body().read_to_end(&mut read).unwrap();
        assert_eq!(read, whole);
    }

    #[test]
    fn reads_lines() {
        let event = testing::event(0, Kind::Push, &Output::text("a\nb"));
        let lines: Vec<String> = event.body().lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["a", "b"]);
    }
}
