//! A bundle's archive as it is unpacked, on a thread of its own that runs a little ahead.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use zstd::stream::read::Decoder;

use crate::bundle::seal::Sealed;

/// Bytes that are read or unpacked at a time.
pub(super) const PIECE: usize = 256 << 10;
/// Pieces that wait to be read.
const WAITING: usize = 8;
/// The memory to unpack with, as a power of two: what level 3 needs and a little more.
const MAX_WINDOW_LOG: u32 = 23;

/// Unpacked bytes. Reading blocks.
pub(super) struct Input {
    pieces: Receiver<Message>,
    piece: Vec<u8>,
    at: usize,
    end: Option<End>,
}

/// What was found behind the last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The seal, and it is right.
    Intact,
    /// The seal of other bytes.
    Changed,
    /// Something else before it.
    Followed,
}

enum Message {
    Piece(Vec<u8>),
    Failed(io::Error),
    End(End),
}

impl Input {
    /// Begins to unpack a file.
    pub(super) fn new(file: Arc<File>) -> io::Result<Self> {
        let sealed = Sealed::new(file)?;
        let (sender, pieces) = sync_channel(WAITING);
        std::thread::Builder::new().name("unpack".into()).spawn(move || {
            // Whoever does not listen any more has no use for the end either.
            let _ = match unpack(sealed, &sender) {
                Ok(Some(end)) => sender.send(Message::End(end)),
                Ok(None) => Ok(()),
                Err(error) => sender.send(Message::Failed(error)),
            };
        })?;
        Ok(Self { pieces, piece: Vec::new(), at: 0, end: None })
    }

    /// What is behind the last byte; [`End::Followed`] if that was not read yet.
    pub(super) fn end(&mut self) -> io::Result<End> {
        let more = self.read(&mut [0])?;
        Ok(self.end.filter(|_| more == 0).unwrap_or(End::Followed))
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() && self.end.is_none() {
            match self.pieces.recv() {
                Ok(Message::Piece(piece)) => (self.piece, self.at) = (piece, 0),
                Ok(Message::Failed(error)) => return Err(error),
                Ok(Message::End(end)) => self.end = Some(end),
                Err(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let read = buffer.len().min(self.piece.len() - self.at);
        buffer[..read].copy_from_slice(&self.piece[self.at..self.at + read]);
        self.at += read;
        Ok(read)
    }
}

/// Unpacks to the end; `None` if nobody listens any more.
fn unpack(sealed: Sealed, to: &SyncSender<Message>) -> io::Result<Option<End>> {
    let compressed = BufReader::with_capacity(PIECE, sealed);
    let mut decoder = Decoder::with_buffer(compressed)?.single_frame();
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        // What came before a failure is good, and tells how far it is.
        let read = decoder.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        let ended = piece.is_empty();
        if !ended && to.send(Message::Piece(piece)).is_err() {
            return Ok(None);
        }
        read?;
        if ended {
            break;
        }
    }
    let mut compressed = decoder.finish();
    if compressed.read(&mut [0])? > 0 {
        return Ok(Some(End::Followed));
    }
    let intact = compressed.get_mut().is_intact()?;
    Ok(Some(if intact { End::Intact } else { End::Changed }))
}
