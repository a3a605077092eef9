//! The end of a bundle: a digest of all bytes before it, in a frame that decompressors skip.
//!
//! Compressed data has bits that do not matter to what comes out; the digest covers them as well, so
//! that no byte of a bundle can change unnoticed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::digest::{Digest, Hasher};

/// Bytes of the seal: a skippable frame's magic number and length, a tag, a digest.
const SEAL_LEN: usize = 48;
/// The first of zstd's magic numbers for frames to skip with `0xe` in its open digit, the length of
/// what follows, and a tag.
const SEAL_HEAD: &[u8; 16] = b"\x5e\x2a\x4d\x18\x28\x00\x00\x00pugmark\x01";
/// How a zstd frame begins.
const FRAME_MAGIC: &[u8; 4] = b"\x28\xb5\x2f\xfd";

/// The seal of bytes with this digest.
pub(super) fn seal(digest: &Digest) -> Vec<u8> {
    [SEAL_HEAD.as_slice(), digest.as_bytes()].concat()
}

/// Whether a file is meant to be a bundle: one of its two ends looks like it, as one of them may be
/// damaged.
///
/// # Errors
/// If the file cannot be read.
pub fn is_bundle(file: &File) -> io::Result<bool> {
    let len = file.metadata()?.len();
    let begins = |at: u64, with: &[u8]| {
        let mut found = vec![0; with.len()];
        match file.read_exact_at(&mut found, at) {
            Ok(()) => Ok(found == with),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    };
    let sealed = match len.checked_sub(SEAL_LEN as u64) {
        Some(at) => begins(at, SEAL_HEAD)?,
        None => false,
    };
    Ok(sealed || begins(0, FRAME_MAGIC)?)
}

/// All of a file but its seal, with the digest of what was read of it.
pub(super) struct Sealed {
    file: Arc<File>,
    at: u64,
    end: u64,
    hasher: Hasher,
}

impl Sealed {
    /// Begins at the file's first byte.
    pub(super) fn new(file: Arc<File>) -> io::Result<Self> {
        let len = file.metadata()?.len();
        let end = len.saturating_sub(SEAL_LEN as u64);
        Ok(Self { file, at: 0, end, hasher: Hasher::default() })
    }

    /// Whether everything was read, and the seal is that of the bytes read.
    pub(super) fn is_intact(&mut self) -> io::Result<bool> {
        let mut found = Vec::new();
        let mut part = [0; SEAL_LEN];
        while let read @ 1.. = self.file.read_at(&mut part, self.end + found.len() as u64)? {
            found.extend_from_slice(&part[..read]);
            if found.len() > SEAL_LEN {
                return Ok(false);
            }
        }
        Ok(self.at == self.end && found == seal(&std::mem::take(&mut self.hasher).finish()))
    }
}

impl Read for Sealed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        let read = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.hasher.update(&buffer[..read]);
        self.at += read as u64;
        Ok(read)
    }
}
