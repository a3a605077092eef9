//! Bundles that somebody made up: names that lead elsewhere, links, sizes that lie, bombs.

use pugmark_log::Kind;
use pugmark_log::bundle::{Error, Limits, open};

use crate::damage::{sealed, unpacked};
use crate::history::{History, as_file, scratch};

fn failure(tar: &[u8], limits: Limits) -> Error {
    match open(as_file(&sealed(tar)), scratch(), limits) {
        Ok(_) => panic!("opened"),
        Err(error) => error,
    }
}

fn header(name: &str, size: u64, kind: u8) -> Vec<u8> {
    let mut block = vec![0; 512];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000644\x000000000\x000000000\0");
    put(124, format!("{size:011o}\x0000000000000\0        ").as_bytes());
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(329, b"0000000\x000000000\0");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// The archive of a small bundle, and where its second and its last member begin.
fn archive() -> (Vec<u8>, usize, usize) {
    let history = History::new();
    let tar = unpacked(&history.bundle(&[history.child]));
    let heads: Vec<usize> =
        (0..tar.len()).step_by(512).filter(|at| tar[at + 257..at + 262] == *b"ustar").collect();
    (tar, heads[1], heads[heads.len() - 1])
}

#[test]
fn names_that_lead_elsewhere_are_refused_by_name() {
    let (tar, second, _) = archive();
    let names =
        ["../../etc/passwd", "/etc/passwd", "objects/../x", "refs/name", "bundle.json", "a\nb"];
    for name in names {
        let changed = [&tar[..second], &header(name, 0, b'0'), &tar[second..]].concat();
        let error = failure(&changed, Limits::default());
        let Error::Damaged { member, .. } = &error else { panic!("{name}: {error:?}") };
        assert_eq!(member, name);
    }
}

#[test]
fn links_folders_and_extended_headers_are_refused() {
    let (tar, second, _) = archive();
    for kind in [b'1', b'2', b'3', b'5', b'7', b'L', b'x', b'g', 0] {
        let mut changed = tar.clone();
        changed[second + 156] = kind;
        let error = failure(&changed, Limits::default());
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert!(error.to_string().contains("it is not a plain file"), "{error}");
    }
}

#[test]
fn members_twice_and_members_that_nothing_needs_are_refused() {
    let (tar, _, last) = archive();
    let member = &tar[last..tar.len() - 1024];
    for extra in [member.to_vec(), header("objects/sha256:00", 0, b'0')] {
        let changed = [&tar[..tar.len() - 1024], &extra, &[0; 1024]].concat();
        let error = failure(&changed, Limits::default()).to_string();
        assert!(error.contains("nothing that the bundle holds needs it"), "{error}");
    }
    let without = [&tar[..last], &[0; 1024]].concat();
    let error = failure(&without, Limits::default()).to_string();
    assert!(error.contains("objects/sha256:") && error.contains("is missing"), "{error}");
}

#[test]
fn sizes_that_lie_cost_nothing() {
    let (tar, ..) = archive();
    for size in [0o7_777_777_777, 0o77_777_777_777] {
        let lie = [&header("bundle.json", size, b'0'), &tar[512..]].concat();
        let error = failure(&lie, Limits::default());
        assert!(matches!(&error, Error::TooLarge { member, .. } if member == "bundle.json"));
        assert_eq!(error.kind(), Kind::Limit);
    }
}

#[test]
fn what_unpacks_to_more_than_allowed_is_refused_by_name() {
    let (tar, ..) = archive();
    let limits = Limits { unpacked_bytes: 100_000 };
    let error = failure(&tar, limits);
    assert!(matches!(&error, Error::TooLarge { limit: 100_000, .. }), "{error:?}");
    let all = Limits { unpacked_bytes: tar.len() as u64 * 2 };
    open(as_file(&sealed(&tar)), scratch(), all).unwrap();
    // A bomb: a gigabyte of zeros in a few kilobytes, where a document should be.
    let bomb = [header("bundle.json", 200 << 20, b'0'), vec![0; 200 << 20]].concat();
    let bytes = sealed(&bomb);
    assert!(bytes.len() < 100_000);
    let error = open(as_file(&bytes), scratch(), limits).err().unwrap();
    assert!(matches!(error, Error::TooLarge { .. }));
}
