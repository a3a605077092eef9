//! Nodes and objects, each read once and checked against its hash.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt as _};
use futures::{StreamExt as _, TryStreamExt as _};

use crate::bucket::Bucket;
use crate::digest::Digest;
use crate::entry::Entry;
use crate::error::Error;
use crate::layout;
use crate::vector::{NodeRef, Vector};

/// How many nodes or objects are read at a time.
const PARALLEL: usize = 8;

/// What was checked so far.
pub(crate) struct Content {
    bucket: Bucket,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Objects, and nodes with all below them, that are whole.
    sound: HashSet<Digest>,
    /// What is wrong with the others.
    damaged: HashMap<Digest, String>,
}

/// Something that a log names and that is not as it was written.
pub(crate) struct Flaw {
    pub(crate) key: String,
    pub(crate) problem: String,
    pub(crate) readable: String,
}

impl Content {
    pub(crate) fn new(bucket: Bucket) -> Self {
        Self { bucket, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an object was found to be whole before; `Err` with what was wrong with it.
    fn recall(&self, hash: &Digest) -> Option<Result<(), String>> {
        let known = self.known();
        if known.sound.contains(hash) {
            return Some(Ok(()));
        }
        known.damaged.get(hash).map(|problem| Err(problem.clone()))
    }

    fn note(&self, hash: Digest, found: &Result<(), String>) {
        match found {
            Ok(()) => drop(self.known().sound.insert(hash)),
            Err(problem) => drop(self.known().damaged.insert(hash, problem.clone())),
        }
    }

    /// The flaws of all nodes of a log, and of the objects that these name.
    pub(crate) async fn check_log(&self, log: &Vector) -> Result<Vec<Flaw>, Error> {
        let mut flaws = Vec::new();
        for node in log.nodes(&(0..log.count())) {
            flaws.extend(self.check_node(node).await?);
        }
        flaws.extend(self.check_entries(log.tail()).await?);
        Ok(flaws)
    }

    /// The flaws of a node and all below it. One without flaws is not read again.
    fn check_node(&self, node: NodeRef) -> BoxFuture<'_, Result<Vec<Flaw>, Error>> {
        async move {
            let hash = node.hash;
            let flaw = |problem: String| {
                let range = node.range();
                let readable = format!("all but entries {} to {}", range.start, range.end - 1);
                Flaw { key: layout::object(&hash).to_string(), problem, readable }
            };
            match self.recall(&hash) {
                Some(Ok(())) => return Ok(Vec::new()),
                Some(Err(problem)) => return Ok(vec![flaw(problem)]),
                None => {}
            }
            let below = if node.level == 0 {
                match self.bucket.leaf(&hash, None).await {
                    Ok(leaf) => self.check_entries(&leaf).await,
                    Err(error) => Err(error),
                }
            } else {
                match self.bucket.children_of(&node).await {
                    Ok(children) => self.check_nodes(children).await,
                    Err(error) => Err(error),
                }
            };
            match below.map_err(damage) {
                Ok(flaws) => {
                    if flaws.is_empty() {
                        self.note(hash, &Ok(()));
                    }
                    Ok(flaws)
                }
                Err(Ok(problem)) => {
                    self.note(hash, &Err(problem.clone()));
                    Ok(vec![flaw(problem)])
                }
                Err(Err(error)) => Err(error),
            }
        }
        .boxed()
    }

    async fn check_nodes(&self, nodes: Vec<NodeRef>) -> Result<Vec<Flaw>, Error> {
        let checks = nodes.into_iter().map(|node| self.check_node(node));
        let found: Vec<Vec<Flaw>> =
            futures::stream::iter(checks).buffered(PARALLEL).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The flaws of the objects that entries name.
    pub(crate) async fn check_entries(&self, entries: &[Entry]) -> Result<Vec<Flaw>, Error> {
        let mut flaws = Vec::new();
        for entry in entries.iter().filter(|entry| entry.data().is_none()) {
            flaws.extend(self.check_object(entry.hash(), Some(entry.size())).await?);
        }
        Ok(flaws)
    }

    /// The flaw of an object, if it has one.
    pub(crate) async fn check_object(
        &self,
        hash: Digest,
        size: Option<u64>,
    ) -> Result<Option<Flaw>, Error> {
        let found = match self.recall(&hash) {
            Some(found) => found,
            None => {
                let found = match self.read_through(hash, size).await.map_err(damage) {
                    Ok(()) => Ok(()),
                    Err(Ok(problem)) => Err(problem),
                    Err(Err(error)) => return Err(error),
                };
                self.note(hash, &found);
                found
            }
        };
        let flaw = |problem| Flaw {
            key: layout::object(&hash).to_string(),
            problem,
            readable: "all but this object's bytes".to_owned(),
        };
        Ok(found.err().map(flaw))
    }

    async fn read_through(&self, hash: Digest, size: Option<u64>) -> Result<(), Error> {
        let mut body = self.bucket.read_object(&hash).await?;
        while body.stream.try_next().await?.is_some() {}
        match size {
            Some(size) if size != body.size => {
                let reason = format!("it has {} bytes, and its entry says {size}", body.size);
                Err(Error::corrupt(layout::object(&hash), reason))
            }
            _ => Ok(()),
        }
    }
}

/// What is damaged, as far as that is what an error says.
pub(crate) fn damage(error: Error) -> Result<String, Error> {
    match error {
        Error::Corrupt { reason, .. } => Ok(reason),
        Error::ObjectNotFound { .. } => Ok("it is missing".to_owned()),
        other => Err(other),
    }
}
