//! The lines of a handler's standard output, read as they arrive.
//!
//! Memory is bounded whatever the handler writes: each limit of [`OutputLimits`] is checked before
//! the bytes that would exceed it are kept. What a line means for the log is not decided here.

mod error;
mod line;

use pugmark_log::SessionId;

pub use self::error::{OutputError, OutputErrorKind};
use crate::handler::Output;

/// How much one step may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// The longest line, in bytes without its line break. Default: 4/3 of `total_bytes` (base64)
    /// and 64 KiB for the rest.
    pub line_bytes: usize,
    /// Bodies and all that describes them, decoded, over all lines, in bytes. Default: 64 MiB.
    pub total_bytes: usize,
    /// Lines that are not blank. Default: 10,000.
    pub outputs: usize,
}

impl OutputLimits {
    /// The default limits, but for `total_bytes` and the `line_bytes` that follow from it.
    #[must_use]
    pub fn with_total(total_bytes: usize) -> Self {
        let line_bytes = total_bytes.div_ceil(3).saturating_mul(4).saturating_add(64 * 1024);
        Self { line_bytes, total_bytes, outputs: 10_000 }
    }
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self::with_total(64 * 1024 * 1024)
    }
}

/// Takes a handler's output in pieces of any size.
#[derive(Debug)]
pub struct Parser {
    limits: OutputLimits,
    session: SessionId,
    /// Whether the host fetches bodies.
    uris: bool,
    /// The beginning of a line whose end has not arrived.
    partial: Vec<u8>,
    /// The number of that line, from 1.
    number: usize,
    /// Decoded bytes of `outputs`.
    total: usize,
    outputs: Vec<Output>,
}

impl Parser {
    /// A parser for the output of a handler of `session`.
    #[must_use]
    pub fn new(limits: OutputLimits, session: SessionId) -> Self {
        let (partial, outputs) = (Vec::new(), Vec::new());
        Self { limits, session, uris: true, partial, number: 1, total: 0, outputs }
    }

    /// The same parser, but an output with a `uri` is an error: for handlers whose steps have no
    /// effects.
    #[must_use]
    pub fn without_uris(self) -> Self {
        Self { uris: false, ..self }
    }

    /// Takes the next bytes; every line that they complete is checked at once.
    ///
    /// # Errors
    /// [`OutputError`] on the first line that cannot be used. The parser must not be used again.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), OutputError> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (head, tail) = (&bytes[..end], &bytes[end + 1..]);
            if self.partial.is_empty() {
                self.check_length(head.len())?;
                self.take_line(head)?;
            } else {
                self.keep(head)?;
                let line = std::mem::take(&mut self.partial);
                self.take_line(&line)?;
            }
            self.number += 1;
            bytes = tail;
        }
        self.keep(bytes)
    }

    /// The outputs, once the last bytes were pushed. The last line needs no line break.
    ///
    /// # Errors
    /// [`OutputError`] if the last line cannot be used.
    pub fn finish(mut self) -> Result<Vec<Output>, OutputError> {
        let line = std::mem::take(&mut self.partial);
        self.take_line(&line)?;
        Ok(self.outputs)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.check_length(self.partial.len() + bytes.len())?;
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn check_length(&self, len: usize) -> Result<(), OutputError> {
        let limit = self.limits.line_bytes;
        if len > limit { Err(self.error(OutputErrorKind::LineTooLong { limit })) } else { Ok(()) }
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), OutputError> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        if self.outputs.len() >= self.limits.outputs {
            return Err(self.error(OutputErrorKind::TooMany { limit: self.limits.outputs }));
        }
        let left = self.limits.total_bytes - self.total;
        let (output, len) = line::read(line, self.session, self.uris, left)
            .map_err(|refusal| self.error(refusal.into_kind(self.limits.total_bytes)))?;
        self.total += len;
        self.outputs.push(output);
        Ok(())
    }

    fn error(&self, kind: OutputErrorKind) -> OutputError {
        OutputError { line: self.number, kind }
    }
}

/// The outputs in `bytes`, a handler's whole output.
///
/// # Errors
/// [`OutputError`] on the first line that cannot be used.
pub fn parse(
    bytes: &[u8],
    limits: OutputLimits,
    session: SessionId,
) -> Result<Vec<Output>, OutputError> {
    let mut parser = Parser::new(limits, session);
    parser.push(bytes)?;
    parser.finish()
}

#[cfg(test)]
mod tests;
