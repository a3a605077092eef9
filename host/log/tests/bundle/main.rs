//! Bundles: what goes in comes out, the same state gives the same bytes, and nothing that a stranger
//! may have done to a file gets past the reader.

#[path = "../support/mod.rs"]
mod support;

mod damage;
mod history;
mod hostile;
mod unbundle;

use futures::TryStreamExt as _;
use pugmark_log::bundle::{Limits, open};
use pugmark_log::conformance::verify_chain;
use pugmark_log::{Digest, layout};

use crate::history::{History, as_file, keys, scratch};
use crate::support::{Manual, block_on};

/// The bytes of a bundle are part of the format: a change of this digest needs a new format number,
/// or a reason, such as another zstd. Then the files that people keep differ, and still open.
const GOLDEN: &str = "sha256:7f33e9b11b57ae0f4e3483b60fb474c626e6d742311324894139c462602cfe89";

#[test]
fn the_same_state_gives_the_same_bytes() {
    let (first, second) = (History::new(), History::new());
    let bytes = first.bundle(&[first.child]);
    assert!(bytes == second.bundle(&[second.child]));
    assert_eq!(Digest::of(&bytes).to_string(), GOLDEN);
}

#[test]
fn an_opened_bundle_reads_like_the_bucket() {
    let history = History::new();
    let opened =
        open(as_file(&history.bundle(&[history.child])), scratch(), Limits::default()).unwrap();
    let bucket = opened.bucket(Manual::new(1));
    let asked: Vec<_> = opened.contents.asked().map(|held| held.session).collect();
    assert_eq!(asked, [history.child]);
    block_on(async {
        let sessions: Vec<_> = bucket.sessions().try_collect().await.unwrap();
        let mut expected = vec![history.child, history.root];
        expected.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(sessions, expected);
        assert_eq!(bucket.children(&history.root).await.unwrap(), [history.child]);
        let (ours, theirs) = (
            bucket.tip(&history.child, None).await.unwrap(),
            history.bucket.tip(&history.child, None).await.unwrap(),
        );
        assert_eq!(ours.digest(), theirs.digest());
        // The root goes as far as it was forked.
        assert_eq!(bucket.tip(&history.root, None).await.unwrap().version, history.forked);
        let entries: Vec<_> =
            bucket.entries(&ours.log, 0..ours.log.count(), None).try_collect().await.unwrap();
        for entry in entries.iter().filter(|entry| entry.data().is_none()) {
            let body = bucket.read_object(&entry.hash()).await.unwrap();
            let pieces: Vec<_> = body.stream.try_collect().await.unwrap();
            assert_eq!(pieces.concat().len() as u64, entry.size());
        }
        let large = history.large;
        assert_eq!(bucket.get_object_range(&large, 3..9).await.unwrap(), &history.body()[3..9]);
        assert_eq!(bucket.get_object(&history.component).await.unwrap(), "a component");
        assert!(bucket.put_object("x".into()).await.is_err());
        verify_chain(&bucket, &history.child).await.unwrap();
    });
}

#[test]
fn holds_what_is_needed_and_no_more() {
    let history = History::new();
    let whole = keys(&history.store);
    let held = history.unpacked(&[history.child]);
    let unneeded = [
        layout::object(&history.unrelated),
        layout::object(&history.later),
        layout::snapshot(&history.root, history.forked + 1),
        layout::reference("name").unwrap(),
    ];
    let expected: Vec<_> = whole.into_iter().filter(|key| !unneeded.contains(key)).collect();
    assert_eq!(held, expected);
    assert!(history.unpacked(&[history.root]).contains(&unneeded[1]));
}

#[test]
fn of_a_removed_parent_the_log_stays() {
    let history = History::new();
    block_on(async {
        history.bucket.remove(&history.root).await.unwrap();
        // As after a collection: nothing of the versions is left.
        for version in 0..=history.forked + 1 {
            history.overwrite(&layout::snapshot(&history.root, version), b"{}\n").await;
        }
    });
    assert!(history.try_bundle(&[history.child]).is_err());
    block_on(async {
        for version in 0..=history.forked + 1 {
            let line = format!(
                "{{\"format\":{{\"read\":2,\"write\":2}},\"session\":\"{}\",\"version\":{version},\"kind\":\"removed\",\"created\":\"2026-01-31T12:00:00.000Z\"}}\n",
                history.root
            );
            history.overwrite(&layout::snapshot(&history.root, version), line.as_bytes()).await;
        }
    });
    let bytes = history.bundle(&[history.child]);
    let opened = open(as_file(&bytes), scratch(), Limits::default()).unwrap();
    assert_eq!(opened.contents.absent, [history.root]);
    let bucket = opened.bucket(Manual::new(1));
    block_on(async {
        let tip = bucket.tip(&history.child, None).await.unwrap();
        let entries: Vec<_> =
            bucket.entries(&tip.log, 0..tip.log.count(), None).try_collect().await.unwrap();
        assert_eq!(entries.len() as u64, tip.log.count());
        assert!(bucket.has_object(&history.large).await.unwrap());
    });
}
