//! Opening a bundle: unpacking it into a file of its own, to be read like a bucket.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::sync::Arc;

use object_store::ObjectStore;

use crate::bucket::Bucket;
use crate::bundle::Limits;
use crate::bundle::contents::Contents;
use crate::bundle::error::Error;
use crate::bundle::read::Reader;
use crate::bundle::store::Store;
use crate::environment::Environment;
use crate::tip::TipLookup;

/// A bundle that was found to be as it was written.
pub struct Opened {
    /// What it holds.
    pub contents: Contents,
    store: Arc<dyn ObjectStore>,
}

/// Checks all of a bundle, and unpacks it into `scratch`: an empty file that nothing else uses, best
/// one without a name. Memory holds a line for each member. Blocks.
///
/// # Errors
/// [`Error::NotBundle`], [`Error::Damaged`], [`Error::NewerFormat`], [`Error::TooLarge`];
/// [`Error::Io`] if either file fails.
pub fn open(file: File, scratch: File, limits: Limits) -> Result<Opened, Error> {
    let mut reader = Reader::new(&Arc::new(file), limits)?;
    let mut out = BufWriter::with_capacity(1 << 20, scratch);
    let (mut members, mut at) = (BTreeMap::new(), 0);
    while let Some(member) = reader.next_member()? {
        members.insert(member.key.to_string(), at..at + member.size);
        at += member.size;
        match member.bytes {
            Some(bytes) => out.write_all(&bytes).map_err(unwritten)?,
            None => {
                while let Some(piece) = reader.piece()? {
                    out.write_all(&piece).map_err(unwritten)?;
                }
            }
        }
    }
    let scratch = out.into_inner().map_err(|error| unwritten(error.into_error()))?;
    let store = Arc::new(Store::new(Arc::new(scratch), members));
    Ok(Opened { contents: reader.contents, store })
}

impl Opened {
    /// The bundle as a bucket that can only be read.
    #[must_use]
    pub fn bucket(&self, environment: Arc<dyn Environment>) -> Bucket {
        Bucket::new(self.store.clone(), TipLookup::Probe, environment)
    }
}

fn unwritten(source: io::Error) -> Error {
    Error::Io { action: "unpack the bundle", source }
}
