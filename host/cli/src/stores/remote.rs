//! A store behind a network, as `pugmark-log` wants it: what may be repeated is repeated, a create is
//! sent once, and nothing is created before the store is known to honour conditions.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use pugmark_log::NotSent;

use super::probe::Probe;

/// Such a store.
#[derive(Debug)]
pub struct Remote {
    patient: Arc<dyn ObjectStore>,
    once: Arc<dyn ObjectStore>,
    probe: Probe,
}

impl Remote {
    /// A store of two clients: one that repeats what fails, and one that sends everything once.
    pub fn new(patient: Arc<dyn ObjectStore>, once: Arc<dyn ObjectStore>, probe: Probe) -> Self {
        Self { patient, once, probe }
    }
}

#[async_trait]
impl ObjectStore for Remote {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if !matches!(options.mode, PutMode::Create) {
            return self.patient.put_opts(location, payload, options).await;
        }
        self.probe.pass(self.once.as_ref(), self.patient.as_ref()).await?;
        self.once.put_opts(location, payload, options).await.map_err(mark_unsent)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.patient.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.patient.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.patient.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.patient.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.patient.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.patient.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.patient.copy_opts(from, to, options).await
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.patient.fmt(f)
    }
}

/// Says of an error from before a connection that nothing was sent.
fn mark_unsent(error: Error) -> Error {
    if is_connecting(&error) { unsent(error) } else { error }
}

/// An error that came up before the write it is answered to was sent.
pub fn unsent(error: Error) -> Error {
    Error::Generic { store: "object store", source: Box::new(NotSent(error)) }
}

/// Whether an error is one of local files.
pub fn is_local(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    let mut of_files = false;
    while let Some(cause) = source {
        if cause.is::<HttpError>() {
            return false;
        }
        of_files |= cause.is::<std::io::Error>();
        source = cause.source();
    }
    of_files
}

/// Whether nothing answered: no connection, or no answer on it in time.
pub fn is_unreachable(error: &Error) -> bool {
    is_connecting(error) || has_cause(error, &|http| http.kind() == HttpErrorKind::Timeout)
}

/// Whether the connection never came to be, or took too long to.
fn is_connecting(error: &Error) -> bool {
    has_cause(error, &|http| {
        let source = std::error::Error::source(http);
        http.kind() == HttpErrorKind::Connect
            || source
                .and_then(|source| source.downcast_ref::<reqwest::Error>())
                .is_some_and(reqwest::Error::is_connect)
    })
}

fn has_cause(error: &Error, such: &dyn Fn(&HttpError) -> bool) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(http) = cause.downcast_ref::<HttpError>() {
            return such(http);
        }
        source = cause.source();
    }
    false
}
