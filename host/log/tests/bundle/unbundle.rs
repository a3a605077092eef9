//! Putting bundles into buckets: again, after a crash, onto what is there already.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use object_store::ObjectStoreExt as _;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use pugmark_log::bundle::{self, Error, Limits};
use pugmark_log::conformance::verify_chain;
use pugmark_log::faults::{Action, CrashAt, Fate, FaultyStore, Operation, Schedule};
use pugmark_log::{Bucket, Kind, layout, object_store};

use crate::history::{History, as_file, bundle_of, draft, keys, put_into};
use crate::support::{Manual, block_on, bucket};

fn empty() -> (Arc<InMemory>, Bucket) {
    let store = Arc::new(InMemory::new());
    (store.clone(), bucket(store, Manual::new(3)))
}

#[test]
fn twice_is_once_and_bundles_of_both_are_the_same() {
    let history = History::new();
    let bytes = history.bundle(&[history.child]);
    let (store, target) = empty();
    let first = put_into(&bytes, &target).unwrap();
    assert_eq!(first.new.len(), 2);
    let before = keys(&store);
    assert!(put_into(&bytes, &target).unwrap().new.is_empty());
    assert_eq!(keys(&store), before);
    block_on(verify_chain(&target, &history.child)).unwrap();
    assert!(bundle_of(&target, &[history.child]).unwrap() == bytes);
}

#[test]
fn local_files_too() {
    let history = History::new();
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    let target = bucket(store, Manual::new(3));
    let bytes = history.bundle(&[history.root, history.child]);
    put_into(&bytes, &target).unwrap();
    assert!(bundle_of(&target, &[history.root, history.child]).unwrap() == bytes);
}

#[test]
fn a_session_goes_on_where_the_bucket_has_its_beginning() {
    let history = History::new();
    let (store, target) = empty();
    put_into(&history.bundle(&[history.child]), &target).unwrap();
    let whole = history.bundle(&[history.root]);
    assert_eq!(put_into(&whole, &target).unwrap().new, [history.root]);
    block_on(verify_chain(&target, &history.root)).unwrap();
    assert!(keys(&store).contains(&layout::snapshot(&history.root, history.forked + 1)));
    // What goes further than the bundle stays as it is.
    let tip = block_on(target.push(&history.root, None, &[draft("more")])).unwrap();
    assert!(put_into(&whole, &target).unwrap().new.is_empty());
    assert_eq!(block_on(target.tip(&history.root, None)).unwrap().digest(), tip.digest());
}

#[test]
fn what_went_on_otherwise_is_a_conflict_and_named() {
    let history = History::new();
    let whole = history.bundle(&[history.root]);
    let (store, target) = empty();
    put_into(&history.bundle(&[history.child]), &target).unwrap();
    block_on(target.push(&history.root, None, &[draft("other")])).unwrap();
    let error = put_into(&whole, &target).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    let key = layout::snapshot(&history.root, history.forked + 1).to_string();
    assert!(matches!(&error, Error::Conflict { key: named } if *named == key), "{error}");
    // Shorter in the bucket, and other: found before anything is added.
    block_on(history.bucket.push(&history.root, None, &[draft("longer")])).unwrap();
    let before = keys(&store);
    let error = put_into(&history.bundle(&[history.root]), &target).unwrap_err();
    assert!(matches!(&error, Error::Conflict { key: named } if *named == key), "{error}");
    let sessions = |keys: Vec<Path>| {
        keys.into_iter().filter(|key| key.as_ref().starts_with("sessions/")).collect::<Vec<_>>()
    };
    assert_eq!(sessions(keys(&store)), sessions(before));
}

#[test]
fn nothing_of_a_damaged_bundles_sessions_is_written() {
    let history = History::new();
    let bytes = history.bundle(&[history.child]);
    let (store, target) = empty();
    for at in [100, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        assert_eq!(put_into(&damaged, &target).unwrap_err().kind(), Kind::Corrupt);
        assert!(keys(&store).iter().all(|key| key.as_ref().starts_with("objects/")));
    }
}

/// At every point that it may be cut short at, a session is there whole or not at all, and doing it
/// again completes it.
#[test]
fn cut_short_anywhere_it_can_be_repeated() {
    let history = History::new();
    let bytes = history.bundle(&[history.child]);
    for done in [false, true] {
        let mut operations = 0;
        let put = |operations| {
            let schedule = Arc::new(CrashAt::new(operations, done));
            put_on(schedule, false, &history, &bytes).is_some_and(|ended| ended.is_ok())
        };
        while !put(operations) {
            operations += 1;
        }
        assert!(operations > 40, "{operations}");
    }
}

/// So it is where the store does not take one of the files, however they are written; the error says
/// which.
#[test]
fn a_file_that_cannot_be_written_is_named_and_it_can_be_repeated() {
    let history = History::new();
    let bytes = history.bundle(&[history.child]);
    let (store, target) = empty();
    put_into(&bytes, &target).unwrap();
    for key in keys(&store) {
        for local in [false, true] {
            let ended = put_on(Arc::new(Refuses(key.clone())), local, &history, &bytes).unwrap();
            let message = ended.unwrap_err().to_string();
            assert!(message.contains(key.as_ref()), "{key}: {message}");
        }
    }
}

/// Takes nothing at this key.
#[derive(Debug)]
struct Refuses(Path);

impl Schedule for Refuses {
    fn before<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Fate> {
        let writes = matches!(operation.action, Action::Create | Action::Replace);
        let fate = if writes && *operation.key == self.0 { Fate::Fail } else { Fate::Pass };
        ready(fate).boxed()
    }
}

/// Puts a bundle into a bucket whose store goes as the schedule says, then into what that left.
/// How the first ended; `None` if it did not.
fn put_on(
    schedule: Arc<dyn Schedule>,
    local: bool,
    history: &History,
    bytes: &[u8],
) -> Option<Result<bundle::Unbundled, Error>> {
    let (store, target) = empty();
    let dying = bucket(Arc::new(FaultyStore::new(store, schedule)), Manual::new(5));
    let bulk = bundle::Bulk { bucket: dying.clone(), local, sync: &|| Ok(()) };
    let put = bundle::unbundle(as_file(bytes), Limits::default(), &dying, &bulk);
    let ended = put.now_or_never();
    for (session, held) in [(history.root, history.forked), (history.child, 1)] {
        match block_on(target.tip(&session, None)) {
            Ok(tip) => {
                block_on(verify_chain(&target, &session)).unwrap();
                assert_eq!(tip.version, held);
            }
            Err(error) => assert_eq!(error.kind(), Kind::NotFound),
        }
    }
    put_into(bytes, &target).unwrap();
    assert!(bundle_of(&target, &[history.child]).unwrap() == bytes);
    ended
}

/// Files that a power cut left empty are in nobody's way.
#[test]
fn what_a_power_cut_left_is_replaced() {
    let history = History::new();
    let bytes = history.bundle(&[history.child]);
    let (store, target) = empty();
    let broken = [
        layout::snapshot(&history.root, 1),
        layout::manifest(&history.child),
        layout::object(&history.large),
    ];
    for key in &broken {
        block_on(store.put(key, "".into())).unwrap();
    }
    put_into(&bytes, &target).unwrap();
    block_on(verify_chain(&target, &history.child)).unwrap();
    assert!(bundle_of(&target, &[history.child]).unwrap() == bytes);
}
