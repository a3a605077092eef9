//! Golden bytes of everything that is persisted, and how documents of other versions are met.
//!
//! The files under `tests/golden` were written once and must be readable for good. On a difference
//! the test leaves what it found in the target's temporary directory, to be looked at.

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use pugmark_log::conformance::verify_chain;
use pugmark_log::faults::{Calm, FaultyStore};
use pugmark_log::{
    Attributes, Bucket, Collect, Destination, Draft, Ended, Entry, Environment as _, Error, Origin,
    Outgoing, SessionId, Snapshot, State, Step, StepEnd, Target, Timestamp, layout, object_store,
};
use serde_json::value::RawValue;
use support::{Manual, NOON_MS, block_on, bucket};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn read_golden(name: &str) -> Bytes {
    std::fs::read(golden(name)).unwrap_or_else(|error| panic!("{name}: {error}")).into()
}

fn get(store: &Arc<dyn ObjectStore>, key: &Path) -> Bytes {
    block_on(async { store.get(key).await.unwrap().bytes().await.unwrap() })
}

fn put(store: &Arc<dyn ObjectStore>, key: &Path, bytes: Bytes) {
    block_on(store.put(key, bytes.into())).unwrap();
}

fn draft(text: &str) -> Draft {
    Draft::push(text.to_owned(), Attributes::default())
}

/// A small history with one of everything.
struct History {
    store: Arc<dyn ObjectStore>,
    bucket: Bucket,
    /// Each golden file with the key that it lies at.
    files: Vec<(&'static str, Path)>,
    root: SessionId,
    child: SessionId,
}

fn history() -> History {
    let clock = Manual::new(42);
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let bucket = bucket(store.clone(), clock.clone());
    let metadata: BTreeMap<String, String> =
        [("b".into(), "\u{e4}\n".into()), ("a".into(), "1".into())].into();
    let (root, child, node) = block_on(async {
        let started = bucket.start(Some("triage".into()), metadata).await.unwrap();
        let root = started.session;
        clock.advance(1_001);
        let attributes = Attributes {
            name: Some("issue".into()),
            content_type: Some("application/json".into()),
            content_encoding: Some("identity".into()),
            schema_url: Some("https://example.com/issue".into()),
            metadata: [("z".into(), "\"".into()), ("a".into(), "/".into())].into(),
        };
        let pushes = [Draft::push("{\"n\":1}", attributes), draft(&"big ".repeat(256))];
        let pushed = bucket.push(&root, None, &pushes).await.unwrap();
        clock.advance(1);
        bucket.push(&root, None, &[draft("meanwhile")]).await.unwrap();
        clock.advance(1);
        let record = RawValue::from_string(r#"{"kind":"process"}"#.into()).ok();
        let outputs = vec![draft("one"), draft("two")];
        let end = StepEnd::Continue;
        let step = Step { basis: pushed, outputs, outbox: Vec::new(), end, record: record.clone() };
        let stepped = bucket.commit_step(&step).await.unwrap();
        let nap = vec![draft("nap")];
        let sleep = Step {
            basis: stepped,
            outputs: nap,
            outbox: Vec::new(),
            end: StepEnd::Sleep(90_000),
            record,
        };
        let asleep = bucket.commit_step(&sleep).await.unwrap();
        clock.advance(100_000);
        let awake = bucket.wake(&root, Some(asleep.version)).await.unwrap();
        let child = bucket.fork(&awake, &[draft("seed")]).await.unwrap().session;
        let many: Vec<Draft> = (0..26).map(|i| draft(&i.to_string())).collect();
        let tip = bucket.push(&root, None, &many).await.unwrap();
        bucket.link("golden-one", &child).await.unwrap();
        let log: serde_json::Value = serde_json::from_slice(&tip.log.to_json()).unwrap();
        (root, child, log["levels"][0][0].as_str().unwrap().parse().unwrap())
    });
    let files = vec![
        ("manifest.json", layout::manifest(&root)),
        ("0-start.json", layout::snapshot(&root, 0)),
        ("1-push.json", layout::snapshot(&root, 1)),
        ("2-provisional.json", layout::snapshot(&root, 2)),
        ("3-step.json", layout::snapshot(&root, 3)),
        ("4-sleep.json", layout::snapshot(&root, 4)),
        ("5-wake.json", layout::snapshot(&root, 5)),
        ("6-node-completed.json", layout::snapshot(&root, 6)),
        ("fork-manifest.json", layout::manifest(&child)),
        ("fork-0.json", layout::snapshot(&child, 0)),
        ("node.ndjson", layout::object(&node)),
        ("ref.json", layout::reference("golden-one").unwrap()),
    ];
    History { store, bucket, files, root, child }
}

/// A history of what goes from session to session, and of what is removed.
fn sent() -> History {
    let clock = Manual::new(44);
    let base = FaultyStore::new(Arc::new(InMemory::new()), Arc::new(Calm)).with_clock({
        let clock = clock.clone();
        move || clock.now().as_millis()
    });
    let bucket = bucket(Arc::new(base), clock.clone());
    let (files, root, child) = block_on(async {
        let target = bucket.start(None, BTreeMap::new()).await.unwrap().session;
        let root = bucket.start(Some("courier".into()), BTreeMap::new()).await.unwrap().session;
        let basis = bucket.push_once(&root, None, "order \"7\"", &[draft("go")]).await.unwrap();
        clock.advance(1);
        let send = |text, target| Outgoing { draft: draft(text), target };
        let step = Step {
            basis: basis.snapshot,
            outputs: vec![draft("sent")],
            outbox: vec![send("letter", Target::Session(target)), send("seed", Target::Fork)],
            end: StepEnd::Pause,
            record: None,
        };
        let stepped = bucket.commit_step(&step).await.unwrap();
        clock.advance(1);
        bucket.deliver(stepped).await.unwrap();
        let child = bucket.children(&root).await.unwrap()[0];
        clock.advance(1);
        bucket.remove(&target).await.unwrap();
        let files = vec![
            ("sent-1-push.json", layout::snapshot(&root, 1)),
            ("sent-2-step.json", layout::snapshot(&root, 2)),
            ("sent-3-delivered.json", layout::snapshot(&root, 3)),
            ("sent-child-manifest.json", layout::manifest(&child)),
            ("sent-child-0.json", layout::snapshot(&child, 0)),
            ("received-1.json", layout::snapshot(&target, 1)),
            ("removed-2.json", layout::snapshot(&target, 2)),
        ];
        (files, root, child)
    });
    History { store: bucket.store().clone(), bucket, files, root, child }
}

/// A step that gets something from outside, and a push while it does.
fn traced() -> History {
    let clock = Manual::new(47);
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let bucket = bucket(store.clone(), clock.clone());
    let (root, hash) = block_on(async {
        let root = bucket.start(Some("chat".into()), BTreeMap::new()).await.unwrap().session;
        let basis = bucket.push(&root, None, &[draft("hello")]).await.unwrap();
        let body = "big ".repeat(256);
        let hash = bucket.put_object(body.clone().into()).await.unwrap();
        let effects = format!(
            r#"[{{"request":{{"method":"GET","url":"https://a.example/","size":0,"data":""}},"response":{{"status":200,"headers":[["x","y"]],"size":{},"hash":"{hash}"}}}}]"#,
            body.len()
        );
        let trace = format!(r#"{{"handler":"chat","snapshot":1,"args":[],"effects":{effects}}}"#);
        clock.advance(1);
        let trace = RawValue::from_string(trace).unwrap();
        let known = bucket.set_trace(basis.clone(), Some(trace)).await.unwrap();
        bucket.push(&root, None, &[draft("meanwhile")]).await.unwrap();
        clock.advance(1);
        let record =
            RawValue::from_string(format!(r#"{{"kind":"component","effects":{effects}}}"#));
        let step = Step {
            basis,
            outputs: vec![draft("reply")],
            outbox: Vec::new(),
            end: StepEnd::Pause,
            record: record.ok(),
        };
        bucket.commit_step_on(&step, known).await.unwrap();
        (root, hash)
    });
    let files = vec![
        ("traced-1-push.json", layout::snapshot(&root, 1)),
        ("traced-2-trace.json", layout::snapshot(&root, 2)),
        ("traced-3-push.json", layout::snapshot(&root, 3)),
        ("traced-4-step.json", layout::snapshot(&root, 4)),
        ("traced-body.txt", layout::object(&hash)),
    ];
    History { store, bucket, files, root, child: root }
}

/// Compares what is stored with the golden files.
fn assert_golden(history: &History) {
    let mut differ = Vec::new();
    for (name, key) in &history.files {
        let found = get(&history.store, key);
        if std::fs::read(golden(name)).ok().is_none_or(|expected| expected != found) {
            let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
            std::fs::write(&kept, &found).unwrap();
            differ.push(kept);
        }
    }
    assert!(differ.is_empty(), "these are not the golden bytes: {differ:?}");
}

#[test]
fn bytes_are_golden() {
    assert_golden(&history());
    assert_golden(&traced());
    let history = sent();
    assert_golden(&history);
    // A day later, what is left of the removed session's versions.
    let target = history.files.iter().find(|(name, _)| *name == "received-1.json").unwrap();
    let (store, clock) = (history.store.clone(), Manual::new(45));
    clock.advance(25 * 3_600_000);
    let later = bucket(store.clone(), clock);
    block_on(later.collect(Collect { dry_run: false }).try_collect::<Vec<_>>()).unwrap();
    assert_golden(&History { files: vec![("removed-1.json", target.1.clone())], ..history });
}

#[test]
fn what_was_traced_is_read() {
    let history = traced();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    for (name, key) in &history.files {
        put(&store, key, read_golden(name));
    }
    let first = layout::snapshot(&history.root, 0);
    put(&store, &first, get(&history.store, &first));
    let manifest = layout::manifest(&history.root);
    put(&store, &manifest, get(&history.store, &manifest));
    let bucket = bucket(store, Manual::new(48));
    block_on(async {
        let pushed = bucket.snapshot_named(&history.root, 3).await.unwrap();
        assert!(pushed.trace.unwrap().get().contains(r#""snapshot":1"#));
        assert_eq!((pushed.log.count(), pushed.last.version), (2, 0));
        let stepped = bucket.tip(&history.root, None).await.unwrap();
        assert!(stepped.trace.is_none() && stepped.step.unwrap().get().contains("a.example"));
        assert_eq!(stepped.log.count(), 3);
        verify_chain(&bucket, &history.root).await.unwrap();
        let findings: Vec<_> = bucket.verify().try_collect().await.unwrap();
        assert!(findings.is_empty(), "{findings:?}");
    });
}

#[test]
fn what_was_sent_is_read() {
    let history = sent();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    for (name, key) in &history.files {
        put(&store, key, read_golden(name));
    }
    let bucket = bucket(store.clone(), Manual::new(46));
    block_on(async {
        let stepped = bucket.snapshot_named(&history.root, 2).await.unwrap();
        assert_eq!(stepped.state(), State::Due);
        let [letter, seed] = &stepped.last.outbox[..] else { panic!("{stepped:?}") };
        let Destination::Session { session: target, from: 0 } = letter.to else { panic!() };
        assert_eq!(seed.to, Destination::Fork { child: history.child });
        let origin = Origin { session: history.root, version: 2, index: 0 };
        assert_eq!(letter.entry.origin(), Some(origin));
        let pushed = bucket.snapshot_named(&history.root, 1).await.unwrap();
        assert_eq!(pushed.objects[0].id(), Some("order \"7\""));
        let cleared = bucket.snapshot_named(&history.root, 3).await.unwrap();
        assert_eq!((cleared.state(), cleared.last.outbox.len()), (State::AtRest, 0));
        let child = bucket.tip(&history.child, None).await.unwrap();
        assert_eq!(child.objects[0].data().unwrap().as_ref(), b"seed");
        let received = bucket.snapshot_named(&target, 1).await.unwrap();
        assert_eq!(received.objects, std::slice::from_ref(&letter.entry));
        let removed = bucket.snapshot_named(&target, 2).await;
        assert!(matches!(removed, Err(Error::SessionRemoved { session }) if session == target));
    });
}

/// The golden files put where they belong, and nothing else.
fn old_bucket() -> History {
    let mut history = history();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    for (name, key) in &history.files {
        put(&store, key, read_golden(name));
    }
    put(&store, &large_object(), Bytes::from("big ".repeat(256)));
    history.bucket = bucket(store.clone(), Manual::new(43));
    history.store = store;
    history
}

fn large_object() -> Path {
    layout::object(&pugmark_log::Digest::of("big ".repeat(256).as_bytes()))
}

#[test]
fn golden_bytes_are_read() {
    let History { bucket, root, child, .. } = old_bucket();
    block_on(async {
        let version = |version| bucket.snapshot_named(&root, version);
        let noon = |ms| Timestamp::from_millis(NOON_MS + ms);
        let pushed = version(1).await.unwrap();
        assert_eq!((pushed.created, pushed.state(), pushed.unseen()), (noon(1001), State::Due, 2));
        assert_eq!(pushed.objects[0].attributes().metadata["z"], "\"");
        assert_eq!((pushed.objects[1].data(), pushed.objects[1].size()), (None, 1024));
        let stepped = version(3).await.unwrap();
        let last = &stepped.last;
        let found = (last.version, last.seen, last.added, last.ended);
        assert_eq!(found, (3, 2, 2, Ended::No));
        assert_eq!(stepped.step.unwrap().get(), r#"{"kind":"process"}"#);
        let until = noon(1003 + 90_000);
        assert_eq!(version(4).await.unwrap().state(), State::Sleeping { until });
        let tip = bucket.tip(&root, None).await.unwrap();
        assert_eq!((tip.version, tip.log.count()), (6, 33));
        let log: Vec<Entry> = bucket.entries(&tip.log, 0..6, None).try_collect().await.unwrap();
        let bodies: Vec<&[u8]> =
            log.iter().filter_map(|entry| entry.data().map(|d| &d[..])).collect();
        assert_eq!(bodies, [&b"{\"n\":1}"[..], b"one", b"two", b"meanwhile", b"nap"]);
        let chain = verify_chain(&bucket, &root).await.unwrap();
        assert_eq!(chain.manifest.handler.as_deref(), Some("triage"));
        assert_eq!(chain.manifest.metadata["b"], "\u{e4}\n");
        let parent = chain.snapshots[5].digest();
        let chain = verify_chain(&bucket, &child).await.unwrap();
        assert_eq!(chain.manifest.parent.unwrap().snapshot, parent);
        assert_eq!(bucket.find_ref("golden-one").await.unwrap(), Some(child));
        let tip = bucket.push(&root, None, &[draft("new")]).await.unwrap();
        assert_eq!((tip.version, tip.log.count()), (7, 34));
        verify_chain(&bucket, &root).await.unwrap();
    });
}

/// Rewrites the golden version 6, the tip of the old bucket.
fn edit_tip(history: &History, from: &str, to: &str) {
    let text = String::from_utf8(read_golden("6-node-completed.json").to_vec()).unwrap();
    assert!(text.contains(from), "{from}");
    let edited = text.replacen(from, to, 1);
    put(&history.store, &layout::snapshot(&history.root, 6), edited.into());
}

#[test]
fn unknown_fields_are_no_obstacle() {
    let history = old_bucket();
    edit_tip(&history, "{\"format\"", r#"{"later":{"a":[1,"}"]},"format""#);
    edit_tip_again(&history, r#""last":{"#, r#""last":{"mood":null,"#);
    let (bucket, root) = (&history.bucket, history.root);
    block_on(async {
        let tip = bucket.tip(&root, None).await.unwrap();
        let made = bucket.push(&root, None, &[draft("new")]).await.unwrap();
        assert_eq!((made.version, made.parent), (7, Some(tip.digest())));
        verify_chain(bucket, &root).await.unwrap();
    });
}

fn edit_tip_again(history: &History, from: &str, to: &str) {
    let key = layout::snapshot(&history.root, 6);
    let text = String::from_utf8(get(&history.store, &key).to_vec()).unwrap();
    put(&history.store, &key, text.replacen(from, to, 1).into());
}

/// Fields of an entry that this version does not know outlive it, down into the nodes.
#[test]
fn unknown_fields_of_entries_are_carried_along() {
    let history = old_bucket();
    let (bucket, root) = (&history.bucket, history.root);
    let known = r#""tail":[{"hash""#;
    edit_tip(&history, known, r#""tail":[{"mood":[ 1 ],"hash""#);
    block_on(async {
        let many: Vec<Draft> = (0..40).map(|i| draft(&format!("later {i}"))).collect();
        let made = bucket.push(&root, None, &many).await.unwrap();
        let entries: Vec<Entry> =
            bucket.entries(&made.log, 32..33, None).try_collect().await.unwrap();
        assert!(entries[0].line().starts_with(br#"{"mood":[ 1 ],"hash""#));
    });
}

#[test]
fn a_newer_format_is_told_from_damage() {
    let history = old_bucket();
    let (bucket, root) = (&history.bucket, history.root);
    let newer = |result: Result<Snapshot, Error>| match result {
        Err(Error::NewerFormat { key, found: 3, supported: 2 }) => {
            assert_eq!(key, layout::snapshot(&root, 6).to_string());
        }
        other => panic!("{other:?}"),
    };
    for rest in ["", r#""kind":"dream","#] {
        edit_tip(&history, r#"{"format":{"read":1,"#, &format!("{{{rest}\"format\":{{\"read\":3,"));
        newer(block_on(bucket.tip(&root, None)));
        newer(block_on(bucket.push(&root, None, &[draft("x")])));
    }
    let manifest = String::from_utf8(read_golden("manifest.json").to_vec()).unwrap();
    let edited = manifest.replacen("\"read\":1", "\"read\":7,\"by\":\"us\"", 1);
    put(&history.store, &layout::manifest(&root), edited.into());
    let result = block_on(bucket.manifest(&root));
    assert!(matches!(result, Err(Error::NewerFormat { found: 7, .. })), "{result:?}");
}

#[test]
fn what_newer_writers_wrote_is_read_and_not_extended() {
    let history = old_bucket();
    let (bucket, root) = (&history.bucket, history.root);
    edit_tip(&history, "\"write\":1", "\"write\":4");
    block_on(async {
        let tip = bucket.tip(&root, None).await.unwrap();
        let refused = |result: Result<Snapshot, Error>| match result {
            Err(Error::NewerWriter { session, found: 4, supported: 3 }) => {
                assert_eq!(session, root);
            }
            other => panic!("{other:?}"),
        };
        refused(bucket.push(&root, None, &[draft("x")]).await);
        refused(bucket.fork(&tip, &[draft("x")]).await);
        let step = Step {
            basis: tip.clone(),
            outputs: Vec::new(),
            outbox: Vec::new(),
            end: StepEnd::Pause,
            record: None,
        };
        refused(bucket.commit_step(&step).await);
        assert_eq!(bucket.tip(&root, None).await.unwrap().digest(), tip.digest());
    });
}
