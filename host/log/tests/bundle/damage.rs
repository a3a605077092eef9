//! Damage: whatever happens to a byte of a bundle is found, and named.

use proptest::prelude::*;
use pugmark_log::bundle::{Error, Limits, open};
use pugmark_log::{Kind, SessionId};

use crate::history::{History, as_file, scratch};

fn failure(bytes: &[u8]) -> Error {
    match open(as_file(bytes), scratch(), Limits::default()) {
        Ok(_) => panic!("opened although damaged"),
        Err(error) => error,
    }
}

fn small() -> (Vec<u8>, SessionId) {
    let history = History::new();
    (history.bundle(&[history.child]), history.child)
}

/// Every byte of the head and the tail, and a sample of what is between.
#[test]
fn a_flipped_byte_anywhere_is_found_and_named() {
    let (bytes, _) = small();
    let len = bytes.len();
    let ends = (0..600).chain(len - 600..len);
    for at in ends.chain((600..len - 600).step_by(97)) {
        for bit in [0x01, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            let error = failure(&damaged);
            assert_eq!(error.kind(), Kind::Corrupt, "byte {at} of {len}: {error}");
            let named = matches!(&error, Error::Damaged { member, .. } if !member.is_empty());
            assert!(named, "byte {at}: {error:?}");
        }
    }
}

#[test]
fn bytes_before_behind_and_missing_are_found() {
    let (bytes, _) = small();
    for extra in [&b"x"[..], b"\x28\xb5\x2f\xfd", &bytes] {
        assert_eq!(failure(&[&bytes[..], extra].concat()).kind(), Kind::Corrupt);
        assert_eq!(failure(&[extra, &bytes[..]].concat()).kind(), Kind::Corrupt);
    }
    assert!(matches!(failure(b""), Error::NotBundle));
    assert!(matches!(failure(b"some text that is not a bundle at all"), Error::NotBundle));
}

/// What is said of a member whose content was changed, with all around it made right again.
#[test]
fn a_changed_member_is_named() {
    let (bytes, _) = small();
    let tar = unpacked(&bytes);
    let members = [
        ("bundle.json", "bundle.json"),
        ("/manifest.json", "manifest.json"),
        ("/snapshots", "snapshots"),
        ("objects/", "objects/sha256:"),
    ];
    for (begins, named) in members {
        let header = (0..tar.len())
            .step_by(512)
            .rfind(|at| is_header(&tar[*at..], begins))
            .unwrap_or_else(|| panic!("no {begins}"));
        let mut changed = tar.clone();
        changed[header + 512 + 40] ^= 1;
        let error = failure(&sealed(&changed));
        let Error::Damaged { member, reason } = &error else { panic!("{error:?}") };
        assert!(member.contains(named), "{error}");
        assert!(reason.contains("digest"), "{error}");
    }
}

fn is_header(block: &[u8], part: &str) -> bool {
    let name = [&block[345..500], &b"/"[..], &block[..100]].concat();
    let name: Vec<u8> = name.into_iter().filter(|byte| *byte != 0).collect();
    block[257..262] == *b"ustar" && String::from_utf8_lossy(&name).contains(part)
}

/// The archive in a bundle.
pub fn unpacked(bytes: &[u8]) -> Vec<u8> {
    zstd::decode_all(bytes).unwrap()
}

/// A bundle of this archive, with a seal that is right.
pub fn sealed(tar: &[u8]) -> Vec<u8> {
    let mut bytes = zstd::encode_all(tar, 3).unwrap();
    let digest = pugmark_log::Digest::of(&bytes);
    bytes.extend_from_slice(b"\x5e\x2a\x4d\x18\x28\x00\x00\x00pugmark\x01");
    bytes.extend_from_slice(digest.as_bytes());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_change_and_any_cut_is_an_error(
        at in any::<prop::sample::Index>(),
        xor in 1_u8..,
        cut in any::<prop::sample::Index>(),
    ) {
        thread_local!(static BUNDLE: Vec<u8> = small().0);
        BUNDLE.with(|bytes| {
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] ^= xor;
            prop_assert_eq!(failure(&changed).kind(), Kind::Corrupt);
            let error = failure(&bytes[..cut.index(bytes.len())]);
            let told = matches!(error, Error::Damaged { .. } | Error::NotBundle);
            prop_assert!(told, "{:?}", error);
            Ok(())
        })?;
    }

    #[test]
    fn a_change_below_a_right_seal_is_an_error(
        at in any::<prop::sample::Index>(),
        xor in 1_u8..,
    ) {
        thread_local!(static TAR: Vec<u8> = unpacked(&small().0));
        TAR.with(|tar| {
            let mut changed = tar.clone();
            changed[at.index(tar.len())] ^= xor;
            let error = failure(&sealed(&changed));
            let told = matches!(error.kind(), Kind::Corrupt | Kind::Invalid | Kind::Limit);
            prop_assert!(told, "{:?}", error);
            Ok(())
        })?;
    }
}
