//! What is damaged in a bucket is found, named, and told from what is not.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use pugmark_log::faults::{Action, Calm, FaultyStore, Operation, Schedule};
use pugmark_log::{
    Attributes, Bucket, Damage, Digest, Draft, Finding, SessionId, Step, StepEnd, layout,
    object_store,
};
use support::{Manual, block_on, bucket};

/// A session of 40 entries in 4 versions with a node and a large object, and a fork of version 1.
struct World {
    store: Arc<InMemory>,
    bucket: Bucket,
    id: SessionId,
    fork: SessionId,
    node: Path,
    large: Path,
}

fn draft(text: impl Into<String>) -> Draft {
    Draft::push(text.into(), Attributes::default())
}

fn world() -> World {
    let store = Arc::new(InMemory::new());
    let bucket = bucket(store.clone(), Manual::new(5));
    let large = "0123456789abcdef".repeat(100);
    let (id, fork, node) = block_on(async {
        let id = bucket.start(Some("h".into()), BTreeMap::new()).await.unwrap().session;
        let mut drafts: Vec<Draft> = (0..37).map(|i| draft(format!("event {i}"))).collect();
        drafts[3] = draft(large.clone());
        let basis = bucket.push(&id, None, &drafts).await.unwrap();
        let fork = bucket.fork(&basis, &[draft("seed")]).await.unwrap().session;
        bucket.push(&id, None, &[draft("meanwhile")]).await.unwrap();
        let outputs = vec![draft("output")];
        let step = Step { basis, outputs, outbox: Vec::new(), end: StepEnd::Pause, record: None };
        let tip = bucket.commit_step(&step).await.unwrap();
        bucket.link("name", &id).await.unwrap();
        let log: serde_json::Value = serde_json::from_slice(&tip.log.to_json()).unwrap();
        (id, fork, log["levels"][0][0].as_str().unwrap().parse().unwrap())
    });
    let large = layout::object(&Digest::of(large.as_bytes()));
    World { store, bucket, id, fork, node: layout::object(&node), large }
}

impl World {
    fn get(&self, key: &Path) -> Bytes {
        block_on(async { self.store.get(key).await.unwrap().bytes().await.unwrap() })
    }

    fn put(&self, key: &Path, bytes: impl Into<Bytes>) {
        block_on(self.store.put(key, bytes.into().into())).unwrap();
    }

    fn delete(&self, key: &Path) {
        block_on(self.store.delete(key)).unwrap();
    }

    fn flip(&self, key: &Path) {
        let mut bytes = self.get(key).to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        self.put(key, bytes);
    }

    fn verify(&self) -> Vec<Finding> {
        block_on(self.bucket.verify().try_collect()).unwrap()
    }

    /// What is found, without the sentences.
    fn found(&self) -> Vec<(Damage, Option<SessionId>, Option<u64>, String)> {
        let brief = |f: Finding| (f.damage, f.session, f.version, f.key);
        let mut found: Vec<_> = self.verify().into_iter().map(brief).collect();
        found.sort();
        found
    }
}

fn lost(
    id: SessionId,
    version: u64,
    key: &Path,
) -> (Damage, Option<SessionId>, Option<u64>, String) {
    (Damage::Lost, Some(id), Some(version), key.to_string())
}

#[test]
fn a_sound_bucket_has_no_findings() {
    assert_eq!(world().verify(), []);
}

#[test]
fn a_damaged_object_is_found_in_every_session_that_names_it() {
    for damage in [World::flip, World::delete] {
        let world = world();
        damage(&world, &world.large);
        let mut expected = [lost(world.id, 1, &world.large), lost(world.fork, 0, &world.large)];
        expected.sort();
        assert_eq!(world.found(), expected);
    }
}

#[test]
fn a_damaged_node_is_found_with_what_can_still_be_read() {
    for damage in [World::flip, World::delete] {
        let world = world();
        damage(&world, &world.node);
        let mut expected = [lost(world.id, 1, &world.node), lost(world.fork, 0, &world.node)];
        expected.sort();
        assert_eq!(world.found(), expected);
        assert_eq!(world.verify()[0].readable, "all but entries 0 to 31");
    }
}

#[test]
fn a_damaged_version_is_found() {
    let world = world();
    let (second, third) = (layout::snapshot(&world.id, 2), layout::snapshot(&world.id, 3));
    let text = String::from_utf8(world.get(&second).to_vec()).unwrap();
    // Well-formed: only the digest in the version after it tells.
    world.put(
        &second,
        text.replace("\"provisional\",\"nonce\":\"", "\"provisional\",\"nonce\":\"0"),
    );
    let found = world.verify();
    assert_eq!(world.found(), [lost(world.id, 3, &third)]);
    assert_eq!(found[0].problem, "it does not name the digest of the version before it");
    world.put(&second, text[..100].to_owned());
    assert_eq!(world.found(), [lost(world.id, 2, &second)]);
    assert_eq!(world.verify()[0].readable, "all other versions");
    world.delete(&second);
    assert_eq!(world.found(), [lost(world.id, 2, &second)]);
    assert_eq!(world.verify()[0].problem, "it is missing");
}

#[test]
fn a_log_that_is_not_what_its_versions_made_durable_is_found() {
    let world = world();
    let key = layout::snapshot(&world.id, 3);
    let text = String::from_utf8(world.get(&key).to_vec()).unwrap();
    let objects = text.find("\"objects\":[").unwrap() + "\"objects\":[".len();
    let end = text.find("],\"log\"").unwrap();
    world.put(&key, format!("{}{}", &text[..objects], &text[end..]));
    let problems: Vec<String> = world.verify().into_iter().map(|f| f.problem).collect();
    assert_eq!(
        problems,
        [
            "its step does not count its outputs",
            "its log is not what its step saw, its objects, and what had arrived"
        ]
    );
}

#[test]
fn what_can_be_made_again_is_minor() {
    let world = world();
    let index = layout::children(&world.id).join(world.fork.to_string());
    world.delete(&index);
    let found = world.found();
    assert_eq!(found, [(Damage::Minor, Some(world.fork), None, index.to_string())]);
    block_on(world.bucket.remove(&world.id)).unwrap();
    let found = world.found();
    let name = (Damage::Minor, Some(world.id), None, "refs/name".to_owned());
    assert_eq!(found.len(), 2);
    assert!(found.contains(&name), "{found:?}");
    world.delete(&layout::removed(&world.id));
    assert_eq!(world.found().len(), 3);
    assert!(world.found().iter().all(|found| found.0 == Damage::Minor));
}

#[test]
fn names_and_manifests_are_checked() {
    let world = world();
    let (name, manifest) = (layout::reference("name").unwrap(), layout::manifest(&world.id));
    world.put(&name, "{}");
    assert_eq!(world.found(), [(Damage::Lost, None, None, name.to_string())]);
    world.delete(&name);
    world.delete(&manifest);
    assert_eq!(world.found(), [(Damage::Lost, Some(world.id), None, manifest.to_string())]);
    let component = Digest::of(b"gone");
    world.put(&Path::from("handlers/triage"), format!("{{\"component\":\"{component}\"}}"));
    let object = layout::object(&component).to_string();
    assert!(world.found().contains(&(Damage::Lost, None, None, object)));
}

/// Counts how often each object is read.
#[derive(Debug, Default)]
struct Reads(std::sync::Mutex<BTreeMap<Path, u32>>);

impl Schedule for Reads {
    fn before<'a>(
        &'a self,
        operation: Operation<'a>,
    ) -> futures::future::BoxFuture<'a, pugmark_log::faults::Fate> {
        if operation.action == Action::Read {
            *self.0.lock().unwrap().entry(operation.key.clone()).or_default() += 1;
        }
        Calm.before(operation)
    }
}

#[test]
fn each_object_is_read_once() {
    let world = world();
    let reads = Arc::new(Reads::default());
    let counted = FaultyStore::new(world.store.clone(), reads.clone());
    let counted = bucket(Arc::new(counted), Manual::new(6));
    block_on(counted.verify().try_collect::<Vec<_>>()).unwrap();
    let reads = reads.0.lock().unwrap();
    // A node that a step's input ends in is read again to cut the log there.
    assert_eq!((reads[&world.large], reads[&world.node]), (1, 1));
}

#[test]
fn handlers_are_checked() {
    let world = world();
    let bucket = &world.bucket;
    let component = block_on(bucket.put_object(Bytes::from_static(b"component"))).unwrap();
    let other = block_on(bucket.put_object(Bytes::from_static(b"another one"))).unwrap();
    for digest in [component, other, component] {
        block_on(bucket.add_handler("triage", digest, 9)).unwrap();
    }
    let pinned = block_on(bucket.start_pinned("triage".into(), component, BTreeMap::new()));
    let session = pinned.unwrap().session;
    assert_eq!(world.found(), []);
    let second = Path::from("handlers/triage/fffffffffffffffd.json");
    let record = world.get(&second);
    world.put(&second, "{}");
    assert_eq!(world.found(), [(Damage::Lost, None, None, second.to_string())]);
    world.delete(&second);
    assert_eq!(world.found(), [(Damage::Lost, None, None, second.to_string())]);
    world.put(&second, record);
    let object = layout::object(&component);
    world.delete(&object);
    let found = world.found();
    assert!(found.contains(&(Damage::Lost, Some(session), None, object.to_string())), "{found:?}");
    assert!(found.contains(&(Damage::Lost, None, None, object.to_string())), "{found:?}");
}
