//! The object endpoint: where handlers outside the sandbox fetch the bodies of their log.
//!
//! An HTTP/1.1 server on a loopback port that serves the objects of one session, read-only, to
//! whoever knows its unguessable path. Bodies go out as they are stored: the log's line tells how
//! one is encoded, so no `Content-Encoding` is sent, which would make some clients decode it
//! before the handler does. Every connection is bounded in what it can make the host hold; a body
//! whose reader stalls keeps its connection until the endpoint is shut down.

mod range;
mod respond;

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use pugmark_log::Digest;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::Error;

/// As many connections are served at a time; further ones wait for their turn.
const MAX_CONNECTIONS: usize = 64;

/// With more connections than this, each is closed after its response, so that clients which keep
/// idle ones open cannot shut the others out.
const MAX_KEPT_ALIVE: usize = 32;

/// The longest request head, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The most header fields of a request.
const MAX_HEADERS: usize = 64;

/// What a connection may buffer in each direction, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// A connection on which no whole request head arrives for so long is closed.
const IDLE_LIMIT: Duration = Duration::from_secs(30);

/// How long to wait after a connection could not be accepted: the process is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Gives the bytes in a range of an object, which lies within its size.
///
/// A stream that fails, or ends early, shows at the client as a body that is cut off.
pub type ReadRange = Box<dyn FnOnce(Range<u64>) -> BoxStream<'static, Result<Bytes, Error>> + Send>;

/// An object that can be served.
pub struct Body {
    /// Its length in bytes.
    pub size: u64,
    /// Its media type, where one is known.
    pub content_type: Option<String>,
    /// Reads it; called once at most.
    pub read: ReadRange,
}

/// The objects that an endpoint serves.
pub trait ServedObjects: Send + Sync {
    /// Finds an object; `None` if the session's log does not name it.
    ///
    /// # Errors
    /// Whatever kept the store from answering; the client is told of it with status 502.
    fn open<'a>(&'a self, hash: &'a Digest) -> BoxFuture<'a, Result<Option<Body>, Error>>;
}

/// What all connections share.
struct Shared {
    objects: Arc<dyn ServedObjects>,
    /// `127.0.0.1:<port>`, the only authority that is answered.
    authority: String,
    /// The first part of every path: 32 hexadecimal digits.
    secret: String,
    /// Whether connections are closed after their response.
    crowded: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl Shared {
    /// Keeps the first failure for [`Endpoint::take_failure`].
    fn record(&self, failure: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
}

/// A running endpoint. Dropping it stops it.
pub struct Endpoint {
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl Endpoint {
    /// Serves `objects` on a free port of 127.0.0.1. `secret` must be random: it is all that keeps
    /// other users of this machine from reading the objects. Needs a tokio runtime with I/O and
    /// time, which has to be driven while requests are to be answered.
    ///
    /// # Errors
    /// If no port can be opened.
    pub fn start(objects: Arc<dyn ServedObjects>, secret: [u8; 16]) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let shared = Arc::new(Shared {
            objects,
            authority: listener.local_addr()?.to_string(),
            secret: hex::encode(secret),
            crowded: AtomicBool::new(false),
            failure: Mutex::new(None),
        });
        let server = tokio::spawn(serve(listener, shared.clone()));
        Ok(Self { shared, server })
    }

    /// Where the object `hash` is served.
    #[must_use]
    pub fn url(&self, hash: &Digest) -> String {
        let Shared { authority, secret, .. } = &*self.shared;
        format!("http://{authority}/{secret}/{hash}")
    }

    /// The first failure of the store since the last call, for a step that failed because of it.
    #[must_use]
    pub fn take_failure(&self) -> Option<Error> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Stops serving: on return the port is closed and no request is answered any more.
    pub async fn shutdown(mut self) {
        self.server.abort();
        // It was aborted, or it panicked and is over all the same.
        let _ = (&mut self.server).await;
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Accepts connections until it is aborted, which drops them all.
async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        shared.crowded.store(connections.len() > MAX_KEPT_ALIVE, Ordering::Relaxed);
        let accepted = tokio::select! {
            biased;
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve_connection(stream, shared.clone()));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve_connection(stream: TcpStream, shared: Arc<Shared>) {
    // Only speed depends on it.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(respond::respond(&shared, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_LIMIT)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // A client that breaks off or talks nonsense concerns nobody but itself.
    let _ = connection.await;
}

#[cfg(test)]
mod tests;
