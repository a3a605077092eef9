//! A small bucket with one of everything that a bundle may have to hold.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};
use pugmark_log::bundle::{self, Error, Limits};
use pugmark_log::{
    Attributes, Bucket, Digest, Draft, SessionId, Snapshot, Step, StepEnd, object_store,
};
use serde_json::value::RawValue;

use crate::support::{Manual, block_on, bucket};

/// A root with a log of three levels of nodes, forked; the fork has a step.
pub struct History {
    pub store: Arc<InMemory>,
    pub bucket: Bucket,
    pub root: SessionId,
    pub child: SessionId,
    /// The version of the root that was forked.
    pub forked: u64,
    /// A body that only inherited entries name.
    pub large: Digest,
    /// What the fork's step ran.
    pub component: Digest,
    /// A body that came to the root after the fork.
    pub later: Digest,
    /// A body that nothing names.
    pub unrelated: Digest,
}

impl History {
    pub fn new() -> Self {
        let (store, clock) = (Arc::new(InMemory::new()), Manual::new(42));
        let bucket = bucket(store.clone(), clock.clone());
        block_on(async {
            let root = bucket.start(Some("handler".into()), [].into()).await.unwrap().session;
            let drafts: Vec<Draft> = (0..1100).map(|i| draft(format!("event {i}"))).collect();
            bucket.push(&root, None, &drafts).await.unwrap();
            let large = draft(large_body());
            let tip = bucket.push(&root, None, &[large]).await.unwrap();
            let forked = bucket.push(&root, None, &[draft("last"), draft("")]).await.unwrap();
            assert!(tip.version < forked.version);
            clock.advance(1000);
            let child = bucket.fork(&forked, &[draft("seed")]).await.unwrap();
            let component = bucket.put_object("a component".into()).await.unwrap();
            step(&bucket, child.clone(), component).await;
            let later = bucket.push(&root, None, &[draft("y".repeat(3000))]).await.unwrap();
            let unrelated = bucket.put_object("unrelated".into()).await.unwrap();
            bucket.link("name", &root).await.unwrap();
            Self {
                root,
                child: child.session,
                forked: forked.version,
                large: Digest::of(&large_body()),
                component,
                later: later.objects[0].hash(),
                unrelated,
                store,
                bucket,
            }
        })
    }

    #[expect(clippy::unused_self, reason = "reads as the other parts of the history")]
    pub fn body(&self) -> Bytes {
        large_body()
    }

    pub fn try_bundle(&self, sessions: &[SessionId]) -> Result<Vec<u8>, Error> {
        bundle_of(&self.bucket, sessions)
    }

    pub fn bundle(&self, sessions: &[SessionId]) -> Vec<u8> {
        self.try_bundle(sessions).unwrap()
    }

    /// The keys that a bundle of these sessions has.
    pub fn unpacked(&self, sessions: &[SessionId]) -> Vec<Path> {
        let store = Arc::new(InMemory::new());
        let target = bucket(store.clone(), Manual::new(7));
        put_into(&self.bundle(sessions), &target).unwrap();
        keys(&store)
    }

    pub async fn overwrite(&self, key: &Path, bytes: &[u8]) {
        self.store.put(key, bytes.to_vec().into()).await.unwrap();
    }
}

/// A bundle of these sessions.
pub fn bundle_of(bucket: &Bucket, sessions: &[SessionId]) -> Result<Vec<u8>, Error> {
    block_on(async {
        let mut tips = Vec::new();
        for session in sessions {
            tips.push(bucket.tip(session, None).await?);
        }
        bundle::write(bucket, &tips, Vec::new()).await.map(|(bytes, _)| bytes)
    })
}

/// Unpacks a bundle into a bucket.
pub fn put_into(bytes: &[u8], target: &Bucket) -> Result<bundle::Unbundled, Error> {
    let file = as_file(bytes);
    let bulk = bundle::Bulk { bucket: target.clone(), local: true, sync: &|| Ok(()) };
    block_on(bundle::unbundle(file, Limits::default(), target, &bulk))
}

/// All keys of a store, sorted.
pub fn keys(store: &InMemory) -> Vec<Path> {
    let listed: Vec<_> = block_on(store.list(None).try_collect()).unwrap();
    let mut keys: Vec<Path> = listed.into_iter().map(|meta| meta.location).collect();
    keys.sort();
    keys
}

pub fn draft(body: impl Into<Bytes>) -> Draft {
    Draft::push(body, Attributes::default())
}

fn large_body() -> Bytes {
    (0..40_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()).collect()
}

async fn step(bucket: &Bucket, basis: Snapshot, component: Digest) {
    let log = basis.log.root();
    let record =
        format!("{{\"kind\":\"component\",\"component\":\"{component}\",\"log\":\"{log}\"}}");
    let step = Step {
        basis,
        outputs: vec![draft("x".repeat(2000)), draft("answer")],
        outbox: Vec::new(),
        end: StepEnd::Pause,
        record: Some(RawValue::from_string(record).unwrap()),
    };
    bucket.commit_step(&step).await.unwrap();
}

/// A file with these bytes.
pub fn as_file(bytes: &[u8]) -> File {
    let mut file = scratch();
    file.write_all(bytes).unwrap();
    file
}

pub fn scratch() -> File {
    tempfile::tempfile().unwrap()
}
