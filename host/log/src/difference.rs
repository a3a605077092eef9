//! Where two logs part. What they share is found by comparing digests of nodes: as a log's shape
//! follows from its length, equal stretches at equal positions are the same nodes, and are skipped
//! unread.

use futures::future::try_join;
use futures::stream::BoxStream;

use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::error::Error;
use crate::vector::{NodeRef, Vector};

/// Two logs as far as they differ.
pub struct Difference {
    /// How many entries both begin with.
    pub common: u64,
    /// The entries of the first log behind those.
    pub left: BoxStream<'static, Result<Entry, Error>>,
    /// The entries of the second log behind those.
    pub right: BoxStream<'static, Result<Entry, Error>>,
}

/// The nodes of a log that were not compared yet, the next one last.
struct Open<'a> {
    nodes: Vec<NodeRef>,
    log: &'a Vector,
}

impl<'a> Open<'a> {
    fn new(log: &'a Vector) -> Self {
        let mut nodes = log.nodes(&(0..log.count()));
        nodes.reverse();
        Self { nodes, log }
    }

    /// Puts the children of the next node in its place.
    async fn descend(&mut self, bucket: &Bucket) -> Result<(), Error> {
        if let Some(node) = self.nodes.pop() {
            self.nodes.extend(bucket.children_of(&node).await?.into_iter().rev());
        }
        Ok(())
    }

    /// The entries of the next leaf, or of the tail.
    async fn entries(&self, bucket: &Bucket) -> Result<Vec<Entry>, Error> {
        match self.nodes.last() {
            None => Ok(self.log.tail().to_vec()),
            Some(leaf) => Ok(bucket.leaf(&leaf.hash, None).await?.to_vec()),
        }
    }

    /// The level of the next node; the tail is like a leaf.
    fn level(&self) -> usize {
        self.nodes.last().map_or(0, |node| node.level)
    }
}

impl Bucket {
    /// How many entries two logs both begin with. Reads a number of nodes that grows with the
    /// logarithm of their lengths.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Store`].
    pub async fn common_prefix(&self, a: &Vector, b: &Vector) -> Result<u64, Error> {
        let (mut left, mut right) = (Open::new(a), Open::new(b));
        let mut common = 0;
        loop {
            // Both stand at the same position.
            match (left.nodes.last(), right.nodes.last()) {
                (Some(one), Some(other)) if one.level == other.level && one.hash == other.hash => {
                    common = one.range().end;
                    left.nodes.pop();
                    right.nodes.pop();
                }
                _ if left.level() == 0 && right.level() == 0 => break,
                _ => {
                    let (one, other) = (left.level(), right.level());
                    if one >= other {
                        left.descend(self).await?;
                    }
                    if other >= one {
                        right.descend(self).await?;
                    }
                }
            }
        }
        let (one, other) = try_join(left.entries(self), right.entries(self)).await?;
        let equal = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        Ok(common + equal as u64)
    }

    /// Compares two logs: what they share is not read, what differs is read as it is asked for.
    ///
    /// # Errors
    /// As [`Bucket::common_prefix`].
    pub async fn difference(&self, a: &Vector, b: &Vector) -> Result<Difference, Error> {
        let common = self.common_prefix(a, b).await?;
        Ok(Difference {
            common,
            left: self.entries(a, common..a.count(), None),
            right: self.entries(b, common..b.count(), None),
        })
    }
}
