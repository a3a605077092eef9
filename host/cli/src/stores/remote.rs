//! A store behind a network, as `pugmark-log` wants it: what may be repeated is repeated, a create is
//! sent once, and nothing is created before the store is known to honour conditions.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use pugmark_log::{Environment as _, NotSent};

use super::probe::Probe;
use crate::environment::System;

/// How many keys are deleted together; stores take that many in one request.
const MOST_DELETED: usize = 1000;
/// How often a deletion is repeated whose answer never came, or broke off.
const REPEATS: u32 = 6;

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
        let patient = Arc::clone(&self.patient);
        let chunks = locations.try_chunks(MOST_DELETED).map_err(|error| error.1);
        let deleted = chunks.and_then(move |chunk| {
            let patient = Arc::clone(&patient);
            async move { Ok(stream::iter(delete_all(patient.as_ref(), chunk).await)) }
        });
        deleted.try_flatten().boxed()
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

/// Deletes keys, and repeats that while answers are lost: the store's client does so only for
/// requests that are safe by their method. What a lost answer was about may be gone by then.
async fn delete_all(store: &dyn ObjectStore, keys: Vec<Path>) -> Vec<Result<Path>> {
    let mut attempt = 0;
    loop {
        let locations = stream::iter(keys.clone().into_iter().map(Ok)).boxed();
        let mut answers: Vec<Result<Path>> = store.delete_stream(locations).collect().await;
        let is_lost = answers.iter().any(|answer| answer.as_ref().is_err_and(is_lost));
        if attempt > 0 && answers.len() == keys.len() {
            for (answer, key) in answers.iter_mut().zip(&keys) {
                if matches!(answer, Err(Error::NotFound { .. })) {
                    *answer = Ok(key.clone());
                }
            }
        }
        if !is_lost || attempt == REPEATS {
            return answers;
        }
        System.sleep(std::time::Duration::from_millis(100 << attempt)).await;
        attempt += 1;
    }
}

/// Whether a request was sent and its answer never came, or broke off.
fn is_lost(error: &Error) -> bool {
    let lost = [HttpErrorKind::Timeout, HttpErrorKind::Interrupted];
    has_cause(error, &|http| lost.contains(&http.kind()))
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
