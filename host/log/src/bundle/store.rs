//! An opened bundle as a store that can only be read.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::ops::{Bound, Range};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, Extensions, GetOptions, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result,
};

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;
const NAME: &str = "bundle";

/// Where each member's bytes are in an unpacked file.
#[derive(Debug)]
pub(super) struct Store {
    file: Arc<File>,
    members: BTreeMap<String, Range<u64>>,
}

impl Store {
    pub(super) fn new(file: Arc<File>, members: BTreeMap<String, Range<u64>>) -> Self {
        Self { file, members }
    }

    fn below<'a>(&'a self, folder: &str) -> impl Iterator<Item = (&'a String, &'a Range<u64>)> {
        let from = self.members.range::<str, _>((Bound::Excluded(folder), Bound::Unbounded));
        let folder = folder.to_owned();
        from.take_while(move |(key, _)| key.starts_with(&folder))
    }
}

/// The beginning of the keys in a folder.
fn folder(prefix: Option<&Path>) -> String {
    match prefix {
        Some(prefix) if !prefix.is_root() => format!("{prefix}/"),
        _ => String::new(),
    }
}

fn meta(key: &str, place: &Range<u64>) -> ObjectMeta {
    ObjectMeta {
        location: Path::from(key),
        last_modified: UNIX_EPOCH.into(),
        size: place.end - place.start,
        e_tag: None,
        version: None,
    }
}

fn read_only() -> Error {
    Error::NotSupported { source: "a bundle can only be read".into() }
}

fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: NAME, source: source.into() }
}

fn read(file: &File, place: Range<u64>) -> Result<Bytes> {
    let mut bytes = vec![0; usize::try_from(place.end - place.start).map_err(failed)?];
    file.read_exact_at(&mut bytes, place.start).map_err(failed)?;
    Ok(bytes.into())
}

fn pieces(file: Arc<File>, place: Range<u64>) -> BoxStream<'static, Result<Bytes>> {
    let starts = place.clone().step_by(PIECE);
    futures::stream::iter(starts)
        .map(move |start| read(&file, start..place.end.min(start + PIECE as u64)))
        .boxed()
}

#[async_trait]
impl ObjectStore for Store {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let place = self.members.get(location.as_ref()).ok_or_else(|| Error::NotFound {
            path: location.to_string(),
            source: "the bundle does not hold it".into(),
        })?;
        let meta = meta(location.as_ref(), place);
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range.as_range(meta.size).map_err(failed)?,
            None => 0..meta.size,
        };
        let wanted = if options.head {
            place.start..place.start
        } else {
            place.start + range.start..place.start + range.end
        };
        let payload = GetResultPayload::Stream(pieces(self.file.clone(), wanted));
        let (attributes, extensions) = (Attributes::default(), Extensions::default());
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let found: Vec<ObjectMeta> =
            self.below(&folder(prefix)).map(|(key, place)| meta(key, place)).collect();
        futures::stream::iter(found.into_iter().map(Ok)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let folder = folder(prefix);
        let (common_prefixes, objects) = (Vec::new(), Vec::new());
        let mut listing =
            ListResult { common_prefixes, objects, extensions: Extensions::default() };
        let mut next = self.below(&folder).next();
        while let Some((key, place)) = next {
            let end = key[folder.len()..].find('/').map(|at| folder.len() + at);
            let after = match end {
                Some(end) => {
                    listing.common_prefixes.push(Path::from(&key[..end]));
                    // `0` is the character after `/`.
                    Bound::Included(format!("{}0", &key[..end]))
                }
                None => {
                    listing.objects.push(meta(key, place));
                    Bound::Excluded(key.clone())
                }
            };
            next = self
                .members
                .range::<String, _>((after, Bound::Unbounded))
                .next()
                .filter(|(key, _)| key.starts_with(&folder));
        }
        Ok(listing)
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only())
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only())
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        locations.and_then(|_| futures::future::ready(Err(read_only()))).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(read_only())
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}
