//! A log as it was when it was shorter.

use crate::bucket::Bucket;
use crate::error::Error;
use crate::vector::{NodeRef, Vector};

impl Bucket {
    /// The first `count` entries of a log, or all of them if there are fewer. Reads the nodes above
    /// the point where it is cut, and no others.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Store`].
    pub async fn prefix(&self, log: &Vector, count: u64) -> Result<Vector, Error> {
        if count >= log.count() {
            return Ok(log.clone());
        }
        let mut levels = Vec::new();
        let mut tail = Vec::new();
        let mut open = log.nodes(&(0..count));
        open.reverse();
        while let Some(node) = open.pop() {
            if node.range().end <= count {
                if levels.len() <= node.level {
                    levels.resize_with(node.level + 1, Vec::new);
                }
                levels[node.level].push(node.hash);
            } else if node.level > 0 {
                let begins = |child: &NodeRef| child.start < count;
                let children = self.children_of(&node).await?;
                open.extend(children.into_iter().filter(begins).rev());
            } else {
                let leaf = self.leaf(&node.hash, None).await?;
                tail.extend((node.start..count).zip(leaf.iter()).map(|(_, entry)| entry.clone()));
            }
        }
        let own = (log.tail_start()..count).zip(log.tail()).map(|(_, entry)| entry.clone());
        tail.extend(own);
        Ok(Vector::from_parts(count, levels, tail))
    }
}
