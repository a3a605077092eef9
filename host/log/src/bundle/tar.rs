//! The container: POSIX tar, in the one spelling that a bundle has.
//!
//! A member is a plain file with a fixed mode and owner and no time. A reader compares every header
//! with the one that it expects, byte for byte: there are no links, folders, extended headers or
//! other spellings of a name to be careful about.

use std::io::{self, Read};

/// Headers, and what members are filled up to with zeros.
pub(super) const BLOCK: usize = 512;
/// Zeros behind the last member.
pub(super) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

const NAME_LEN: usize = 100;
const PREFIX_LEN: usize = 155;
const PLAIN_FILE: u8 = b'0';
/// Larger sizes are written as a binary number, as GNU tar does, and marked so.
const MAX_OCTAL_SIZE: u64 = 0o777_7777_7777;

/// The header of a member. A key must fit into ustar's two name fields, as those of a bucket do.
pub(super) fn header(key: &str, size: u64) -> [u8; BLOCK] {
    let (prefix, name) = match key.rsplit_once('/') {
        Some(parts) if key.len() > NAME_LEN => parts,
        _ => ("", key),
    };
    debug_assert!(name.len() <= NAME_LEN && prefix.len() <= PREFIX_LEN, "{key}");
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, &name.as_bytes()[..name.len().min(NAME_LEN)]);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    if size <= MAX_OCTAL_SIZE {
        put(124, format!("{size:011o}\0").as_bytes());
    } else {
        put(124, b"\x80\0\0\0");
        put(128, &size.to_be_bytes());
    }
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[PLAIN_FILE]);
    put(257, b"ustar\x0000");
    put(329, b"0000000\0");
    put(337, b"0000000\0");
    put(345, &prefix.as_bytes()[..prefix.len().min(PREFIX_LEN)]);
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Zeros behind a member of this size.
pub(super) fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    (BLOCK - over) % BLOCK
}

/// A header as it was found.
pub(super) struct Found {
    block: [u8; BLOCK],
}

impl Found {
    /// The member's name, for comparing and for telling it.
    pub(super) fn name(&self) -> String {
        let text = |field: &[u8]| {
            let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
            String::from_utf8_lossy(&field[..end]).into_owned()
        };
        let name = text(&self.block[..NAME_LEN]);
        let prefix = text(&self.block[345..345 + PREFIX_LEN]);
        if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
    }

    /// The size that the header of `key` gives; otherwise what is wrong with it.
    pub(super) fn size_of(&self, key: &str) -> Result<u64, &'static str> {
        if self.block[156] != PLAIN_FILE {
            return Err("it is not a plain file");
        }
        let field = &self.block[124..136];
        let size = match field {
            [0x80, 0, 0, 0, size @ ..] => size.try_into().ok().map(u64::from_be_bytes),
            [digits @ .., 0] => std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| u64::from_str_radix(digits, 8).ok()),
            _ => None,
        };
        match size.filter(|size| header(key, *size) == self.block) {
            // What has to be added to a size on the way stays a number.
            Some(size) if size <= u64::MAX / 2 => Ok(size),
            _ => Err("its header is not one of a bundle's"),
        }
    }
}

/// Reads the next header; `None` at the end of the archive, if that is as it must be.
pub(super) fn read_header(from: &mut impl Read) -> io::Result<Option<Found>> {
    let mut block = [0; BLOCK];
    from.read_exact(&mut block)?;
    if block.iter().any(|byte| *byte != 0) {
        return Ok(Some(Found { block }));
    }
    from.read_exact(&mut block)?;
    if block.iter().any(|byte| *byte != 0) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a lone block of zeros"));
    }
    Ok(None)
}

/// Reads what a member of this size is filled up with.
pub(super) fn read_padding(from: &mut impl Read, size: u64) -> io::Result<()> {
    let mut zeros = [0; BLOCK];
    let zeros = &mut zeros[..padding(size)];
    from.read_exact(zeros)?;
    if zeros.iter().any(|byte| *byte != 0) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not filled up with zeros"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_header() {
        let block = header("bundle.json", 0o1234);
        assert!(block.starts_with(b"bundle.json\0"));
        assert_eq!(
            &block[100..156],
            b"0000644\x000000000\x000000000\x0000000001234\x0000000000000\x00011351\0 "
        );
        assert_eq!(&block[156..265], [&b"0"[..], &[0; 100], b"ustar\x0000"].concat());
        assert_eq!(padding(0o1234), 356);
        assert_eq!((padding(0), padding(512), padding(513)), (0, 0, 511));
    }

    #[test]
    fn long_keys_and_sizes_fit() {
        let id = "019abc12-3456-789a-bcde-f0123456789a";
        let key = format!(
            "sessions/year=2025/month=11/day=25/hour=17/{id}/snapshots/ffffffffffffffff.json"
        );
        for size in [0, 1, MAX_OCTAL_SIZE, MAX_OCTAL_SIZE + 1, 1 << 50] {
            let found = Found { block: header(&key, size) };
            assert_eq!((found.name(), found.size_of(&key)), (key.clone(), Ok(size)));
        }
    }

    #[test]
    fn refuses_links_and_other_spellings() {
        let mut link = Found { block: header("a", 1) };
        link.block[156] = b'2';
        assert_eq!(link.size_of("a"), Err("it is not a plain file"));
        for at in (0..BLOCK).filter(|at| *at != 156) {
            let mut other = Found { block: header("a", 1) };
            other.block[at] ^= 1;
            assert!(other.size_of("a").is_err(), "{at}");
        }
    }
}
