//! Damaged buckets: an error that names the key, and never a panic.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use proptest::prelude::*;
use pugmark_log::conformance::verify_chain;
use pugmark_log::{
    Attributes, Bucket, Digest, Draft, Entry, Environment as _, Error, SessionId, Snapshot, Step,
    StepEnd, Timestamp, layout, object_store,
};
use support::{Manual, NOON_MS, block_on, bucket};

/// A session with a node, a large object, a step and a push after it; 40 entries in 4 versions.
struct Session {
    store: Arc<InMemory>,
    bucket: Bucket,
    id: SessionId,
    node: Digest,
    large: Digest,
}

fn draft(text: impl Into<String>) -> Draft {
    Draft::push(text.into(), Attributes { name: Some("n".into()), ..Attributes::default() })
}

fn session() -> Session {
    let store = Arc::new(InMemory::new());
    let bucket = bucket(store.clone(), Manual::new(5));
    let (id, node) = block_on(async {
        let id = bucket.start(Some("h".into()), BTreeMap::new()).await.unwrap().session;
        let mut drafts: Vec<Draft> = (0..37).map(|i| draft(format!("event {i}"))).collect();
        drafts.push(draft(large_body()));
        let basis = bucket.push(&id, None, &drafts).await.unwrap();
        let outputs = vec![draft("output")];
        let step =
            Step { basis, outputs, outbox: Vec::new(), end: StepEnd::Sleep(5), record: None };
        bucket.commit_step(&step).await.unwrap();
        let tip = bucket.push(&id, None, &[draft("last")]).await.unwrap();
        assert_eq!((tip.version, tip.log.count()), (3, 40));
        let log: serde_json::Value = serde_json::from_slice(&tip.log.to_json()).unwrap();
        (id, log["levels"][0][0].as_str().unwrap().parse().unwrap())
    });
    Session { store, bucket, id, node, large: Digest::of(large_body().as_bytes()) }
}

fn large_body() -> String {
    "0123456789abcdef".repeat(100)
}

impl Session {
    fn snapshot_key(&self, version: u64) -> Path {
        layout::snapshot(&self.id, version)
    }

    fn get(&self, key: &Path) -> Bytes {
        block_on(async { self.store.get(key).await.unwrap().bytes().await.unwrap() })
    }

    fn put(&self, key: &Path, bytes: impl Into<Bytes>) {
        block_on(self.store.put(key, bytes.into().into())).unwrap();
    }

    /// Everything that a reader or a writer does with the session.
    fn use_all(&self) -> Result<(), Error> {
        let bucket = &self.bucket;
        block_on(async {
            bucket.manifest(&self.id).await?;
            let tip = bucket.tip(&self.id, None).await?;
            for version in 0..=tip.version {
                let snapshot = bucket.snapshot_named(&self.id, version).await?;
                let _ = (snapshot.state(), snapshot.unseen(), snapshot.log.root());
                let all = bucket.entries(&snapshot.log, 0..snapshot.log.count(), None);
                for entry in all.try_collect::<Vec<Entry>>().await? {
                    if entry.data().is_none() {
                        bucket.get_object(&entry.hash()).await?;
                    }
                }
                bucket.find_entries(&snapshot.log, "ab", 5).await?;
            }
            bucket.wake(&self.id, None).await?;
            bucket.push(&self.id, None, &[draft("x")]).await?;
            let step = Step {
                basis: tip.clone(),
                outputs: Vec::new(),
                outbox: Vec::new(),
                end: StepEnd::Pause,
                record: None,
            };
            bucket.commit_step(&step).await?;
            bucket.fork(&tip, &[]).await.map(drop)
        })
    }

    fn is_sound(&self) -> bool {
        block_on(verify_chain(&self.bucket, &self.id)).is_ok()
    }
}

fn corrupt_at(result: Result<(), Error>, key: &Path) {
    match result {
        Err(Error::Corrupt { key: at, .. }) => assert_eq!(at, key.to_string()),
        other => panic!("{key} is damaged: {other:?}"),
    }
}

#[test]
fn a_truncated_snapshot_is_corrupt() {
    for len in [0, 1, 2, 100, 500] {
        let session = session();
        let key = session.snapshot_key(3);
        let whole = session.get(&key);
        for bytes in [whole.slice(..len), whole.slice(..whole.len() - 2 - len), whole.slice(1..)] {
            session.put(&key, bytes);
            corrupt_at(session.use_all(), &key);
        }
    }
}

#[test]
fn a_missing_node_or_object_is_named() {
    let session = session();
    let key = layout::object(&session.large);
    block_on(session.store.delete(&key)).unwrap();
    let missing =
        matches!(session.use_all(), Err(Error::ObjectNotFound { hash }) if hash == session.large);
    assert!(missing);
    let key = layout::object(&session.node);
    block_on(session.store.delete(&key)).unwrap();
    corrupt_at(session.use_all(), &key);
}

#[test]
fn documents_in_the_wrong_place_are_corrupt() {
    let (session, other) = (
        session(),
        block_on(async {
            let other = bucket(Arc::new(InMemory::new()), Manual::new(6));
            let id = other.start(None, BTreeMap::new()).await.unwrap().session;
            let read =
                async |key: Path| other.store().get(&key).await.unwrap().bytes().await.unwrap();
            (read(layout::manifest(&id)).await, read(layout::snapshot(&id, 0)).await)
        }),
    );
    let manifest = layout::manifest(&session.id);
    let own = session.get(&manifest);
    session.put(&manifest, other.0);
    corrupt_at(session.use_all(), &manifest);
    session.put(&manifest, own);
    let first = session.snapshot_key(0);
    let own = session.get(&first);
    session.put(&first, other.1);
    corrupt_at(session.use_all(), &first);
    session.put(&first, own);
    let copy = session.snapshot_key(4);
    session.put(&copy, session.get(&session.snapshot_key(3)));
    corrupt_at(session.use_all(), &copy);
}

#[test]
fn a_broken_chain_is_found() {
    let session = session();
    let key = session.snapshot_key(1);
    let text = String::from_utf8(session.get(&key).to_vec()).unwrap();
    // Both are well-formed: only the digest in version 2 tells.
    session.put(&key, text.replace(r#""name":"n""#, r#""name":"m""#));
    assert!(session.use_all().is_ok());
    assert!(!session.is_sound());
    session.put(&key, text);
    block_on(session.store.delete(&session.snapshot_key(2))).unwrap();
    assert!(!session.is_sound());
}

#[test]
fn crafted_counts_and_levels_do_no_harm() {
    for (from, to) in [
        ("\"count\":40", "\"count\":18446744073709551615"),
        ("\"count\":40", "\"count\":-1"),
        ("\"count\":40", "\"count\":1e3"),
        ("\"levels\":[[", "\"levels\":[[],["),
        ("\"levels\":[[", "\"levels\":[[[[[[[[[[[[["),
        ("\"n\":38", "\"n\":18446744073709551615"),
        ("\"k\":1", "\"k\":1000"),
        ("\"last\":{\"version\":2", "\"last\":{\"version\":4"),
        ("\"wake\":\"2026", "\"wake\":\"1926"),
        ("\"ended\":\"sleep\"", "\"ended\":\"snore\""),
        ("\"created\":\"2026", "\"created\":\"20260"),
        ("\"tail\":[{", "\"tail\":[{\n"),
    ] {
        let session = session();
        let key = session.snapshot_key(3);
        let text = String::from_utf8(session.get(&key).to_vec()).unwrap();
        assert!(text.contains(from), "{from} in {text}");
        session.put(&key, text.replacen(from, to, 1));
        corrupt_at(session.use_all(), &key);
    }
}

/// A node that hashes to its name but is none: what only a forger makes.
#[test]
fn forged_nodes_do_no_harm() {
    for levels in [1, 2, 11] {
        for lines in [0, 1, 31, 33, 100_000] {
            let session = session();
            let line = format!("\"{}\"\n", session.node);
            let forged = line.repeat(lines);
            let hash = Digest::of(forged.as_bytes());
            session.put(&layout::object(&hash), forged);
            let mut shape = vec![Vec::new(); levels];
            shape[levels - 1] = vec![hash; 2];
            let count = 2 * 32_u64.pow(u32::try_from(levels).unwrap());
            let log = serde_json::json!({"count": count, "levels": shape, "tail": []}).to_string();
            let key = session.snapshot_key(3);
            let text = String::from_utf8(session.get(&key).to_vec()).unwrap();
            let (head, rest) = text.split_once("\"log\":").unwrap();
            let (_, last) = rest.split_once(",\"last\"").unwrap();
            session.put(&key, format!("{head}\"log\":{log},\"last\"{last}"));
            corrupt_at(session.use_all(), &layout::object(&hash));
        }
    }
}

fn parses_or_is_corrupt(bytes: &[u8], version: u64) -> Result<Option<Snapshot>, TestCaseError> {
    let id = SessionId::new(Timestamp::from_millis(NOON_MS), [7; 10]);
    let store = Arc::new(InMemory::new());
    let key = layout::snapshot(&id, version);
    block_on(store.put(&key, Bytes::copy_from_slice(bytes).into())).unwrap();
    match block_on(bucket(store, Manual::new(1)).snapshot(&id, version)) {
        Ok(snapshot) => Ok(snapshot),
        Err(Error::Corrupt { key: at, .. } | Error::NewerFormat { key: at, .. }) => {
            prop_assert_eq!(at, key.to_string());
            Ok(None)
        }
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// What is not the tip cannot be changed unnoticed.
    #[test]
    fn a_flipped_bit_is_found(at in any::<prop::sample::Index>(), bit in 0..8_u32, place in 0..6_u64) {
        let session = session();
        let key = match place {
            0..=2 => session.snapshot_key(place),
            3 => layout::object(&session.node),
            4 => layout::object(&session.large),
            _ => session.snapshot_key(3),
        };
        let mut bytes = session.get(&key).to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        session.put(&key, bytes);
        let sound = session.is_sound();
        prop_assert!(!sound || place == 5, "bit {} of byte {} in {}", bit, at, key);
        match session.use_all() {
            Ok(()) => prop_assert!(place < 3 || place == 5),
            // A hash that was changed leads nowhere.
            Err(Error::Corrupt { .. } | Error::NewerFormat { .. } | Error::NewerWriter { .. }
                | Error::ObjectNotFound { .. }) => {}
            Err(other) => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(parses_or_is_corrupt(&bytes, 0)?.is_none());
    }

    /// Text made of the pieces that snapshots are made of.
    #[test]
    fn any_pieces_can_be_read(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        parses_or_is_corrupt(pieces.concat().as_bytes(), 0)?;
    }

    /// A well-formed snapshot with anything in place of its numbers and lists.
    #[test]
    fn any_values_can_be_read(
        count in any::<u64>(), seen in any::<u64>(), added in any::<u64>(), version in any::<u64>(),
        levels in prop::collection::vec(0_usize..33, 0..15),
    ) {
        let hash = Digest::of(b"node").to_string();
        let levels: Vec<Vec<&str>> = levels.iter().map(|len| vec![hash.as_str(); *len]).collect();
        let id = SessionId::new(Timestamp::from_millis(NOON_MS), [7; 10]);
        let snapshot = serde_json::json!({
            "format": {"read": 1, "write": 1}, "session": id.to_string(), "version": 9,
            "kind": "checkpoint", "nonce": "", "created": "2026-01-01T00:00:00.000Z", "objects": [],
            "log": {"count": count, "levels": levels, "tail": []},
            "last": {"version": version, "n": seen, "k": added, "ended": "no"},
        });
        if let Some(snapshot) = parses_or_is_corrupt(snapshot.to_string().as_bytes(), 9)? {
            prop_assert_eq!(snapshot.log.count(), count);
            let _ = (snapshot.state(), snapshot.unseen());
        }
    }
}

const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\n",
    " ",
    "0",
    "1",
    "-",
    "e9",
    "null",
    "true",
    "\u{e4}",
    "\"format\":",
    "{\"read\":1,\"write\":1}",
    "\"session\":",
    "\"version\":",
    "\"kind\":",
    "\"checkpoint\"",
    "\"nonce\":",
    "\"created\":",
    "\"2026-01-01T00:00:00.000Z\"",
    "\"objects\":",
    "\"log\":",
    "\"count\":",
    "\"levels\":",
    "\"tail\":",
    "\"last\":",
    "\"n\":",
    "\"k\":",
    "\"ended\":",
    "\"no\"",
    "\"wake\":",
    "\"hash\":",
    "\"size\":",
    "\"data\":",
    "\"eA==\"",
];

/// A local bucket whose place is not a folder.
#[test]
fn a_file_in_place_of_a_bucket_is_an_error_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("bucket");
    std::fs::create_dir(&root).unwrap();
    let store = LocalFileSystem::new_with_prefix(&root).unwrap().with_fsync(true);
    let environment = Manual::new(1);
    let bucket = bucket(Arc::new(store), environment.clone());
    let tip = block_on(bucket.start(None, BTreeMap::new())).unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    // Not there: nothing is found.
    let result = block_on(bucket.tip(&tip.session, None));
    assert!(matches!(result, Err(Error::SessionNotFound { .. })), "{result:?}");
    let listed: Vec<SessionId> = block_on(bucket.sessions().try_collect()).unwrap();
    assert_eq!(listed, []);
    // Not a folder: no answer can be had, and waiting does not help.
    std::fs::write(&root, "a file").unwrap();
    let before = environment.now();
    let results = [
        block_on(bucket.start(None, BTreeMap::new())).map(drop),
        block_on(bucket.tip(&tip.session, None)).map(drop),
        block_on(bucket.push(&tip.session, None, &[draft("x")])).map(drop),
        block_on(bucket.fork(&tip, &[draft(large_body())])).map(drop),
        block_on(bucket.put_object(Bytes::from_static(b"x"))).map(drop),
        block_on(bucket.link("name", &tip.session)),
    ];
    for result in results {
        assert!(matches!(result, Err(Error::Store { .. })), "{result:?}");
    }
    assert_eq!(environment.now(), before, "it waited");
}
