//! Buckets on real object stores: `s3://`, `gs://` and `az://`, configured by the variables and
//! files that each vendor's own tools read.
//!
//! A bucket's URL may say where its store answers, `?endpoint=URL`, and that a connection without
//! encryption will do, `&allow-http=true`: with that it says all but the credentials. Nothing of this
//! module runs for a bucket in local files.

mod azure;
#[cfg(test)]
mod conformance;
mod endpoint;
mod google;
mod patience;
mod probe;
mod profile;
mod remote;
mod s3;

use std::sync::Arc;
use std::time::Duration;

use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use pugmark_log::{Bucket, Digest, PrefixedPages, TipLookup};
use url::Url;

use crate::environment::System;
use crate::error::Error;
use probe::Probe;
use remote::Remote;

pub use endpoint::Connection;

/// How long reads are repeated that meet time-outs, refusals and errors of the server.
const RETRY_FOR: Duration = Duration::from_secs(25);
/// How often at most.
const RETRIES: usize = 10;
/// The longest pause in between.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// What the clients are told of time-outs: `patience` has them.
const NO_TIMEOUT: &str = "365 days";
/// How requests call this program.
const USER_AGENT: &str = concat!("pugmark/", env!("CARGO_PKG_VERSION"));

/// Whether a URL is a bucket on an object store.
pub fn is_remote(url: &str) -> bool {
    ["s3://", "gs://", "az://"].iter().any(|scheme| url.starts_with(scheme))
}

/// Opens a bucket on an object store. Sends nothing yet.
///
/// # Errors
/// If the configuration lacks something or contradicts itself.
pub fn open(url: &Url) -> Result<Bucket, Error> {
    // Fails only if there is one already: then that one serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let connection = Connection::of(url)?;
    let name = url.host_str().filter(|name| !name.is_empty()).ok_or_else(|| no_name(url))?;
    let folder = Path::from_url_path(url.path()).map_err(|_| no_name(url))?;
    let opened = match url.scheme() {
        "s3" => s3::open(name, &connection)?,
        "gs" => google::open(name, &connection)?,
        _ => azure::open(name, &connection)?,
    };
    let tips = if opened.lists_in_order {
        TipLookup::Page(Arc::new(PrefixedPages::new(opened.pages, folder.clone())))
    } else {
        TipLookup::Probe
    };
    // The folder does not count: it is the store that honours conditions, or does not.
    let identity = format!("{} {} {name}", url.scheme(), opened.address);
    let probe = Probe::new(&Digest::of(identity.as_bytes()), opened.address);
    let remote = Remote::new(
        Arc::new(PrefixStore::new(opened.patient, folder.clone())),
        Arc::new(PrefixStore::new(opened.once, folder)),
        probe,
    );
    Ok(Bucket::new(Arc::new(remote), tips, Arc::new(System)))
}

/// A store's clients.
struct Opened {
    /// Repeats what fails.
    patient: Arc<dyn ObjectStore>,
    /// Sends everything once.
    once: Arc<dyn ObjectStore>,
    pages: Arc<dyn PaginatedListStore>,
    /// Whether listings come in the order of keys.
    lists_in_order: bool,
    /// Where it answers, for messages.
    address: String,
}

/// How reads, listings, removals and idempotent writes are repeated.
fn patient() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: LONGEST_PAUSE,
            base: 3.0,
        },
        max_retries: RETRIES,
        retry_timeout: RETRY_FOR,
    }
}

/// How creates are repeated: not at all, for `pugmark-log` has to see each attempt's outcome.
fn once() -> RetryConfig {
    RetryConfig { max_retries: 0, ..patient() }
}

/// The configuration was refused by the client.
fn refused(source: &object_store::Error) -> Error {
    Error::invalid(source.to_string(), "`docs/object-stores.md` lists the variables that count")
}

fn no_name(url: &Url) -> Error {
    Error::invalid(
        format!("`{url}` does not name a bucket"),
        "write s3://bucket/folder, gs://bucket/folder or az://container/folder",
    )
}

/// Whether a variable's text means yes.
fn is_true(text: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&text.trim().to_ascii_lowercase().as_str())
}

/// The variable with this name, unless it is empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The variables whose name begins so, with the name in lower case.
fn variables(prefix: &str) -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(move |(name, value)| name.starts_with(prefix) && !value.is_empty())
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
}

/// The way out of an error of a store, where that is known.
pub fn hint(error: &object_store::Error) -> Option<&'static str> {
    use object_store::Error as Store;
    if remote::is_local(error) {
        return None;
    }
    match error {
        Store::Unauthenticated { .. } | Store::PermissionDenied { .. } => Some(
            "check the credentials (for S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE) \
             and that they may list, read and write this bucket",
        ),
        Store::NotFound { .. } => Some("check that the bucket exists and that its name is right"),
        Store::NotSupported { .. } | Store::NotImplemented { .. } => {
            Some("`docs/object-stores.md` says what a store must do, and which ones do")
        }
        _ if remote::is_unreachable(error) => Some(
            "nothing answers there: check the network, --endpoint and the variables for the \
             endpoint and the region; nothing was changed by this attempt",
        ),
        Store::Generic { .. } => {
            Some("that is the store's answer; if it is overloaded or failing, try again later")
        }
        _ => None,
    }
}
