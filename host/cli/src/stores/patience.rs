//! How long one request may take: a time for the answer to begin, which grows with what is sent, and
//! a time for each next piece of it. A reader that takes its time is no reason to end a transfer.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService, ReqwestConnector,
};
use object_store::{ClientOptions, Result};
use tokio::time::{Sleep, timeout};

/// How long the beginning of an answer and each next piece may be waited for.
const LIMIT: Duration = Duration::from_secs(15);
/// The slowest upload that is waited for, in bytes a second.
const SLOWEST_UPLOAD: u64 = 32 * 1024;

/// Makes clients that wait so. Equal options get the same client, and so the same connections.
#[derive(Debug, Default, Clone)]
pub struct Connector {
    made: Arc<Mutex<Vec<(String, HttpClient)>>>,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let key = format!("{options:?}");
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = made.iter().find(|(options, _)| *options == key) {
            return Ok(client.clone());
        }
        let client = HttpClient::new(Patient(ReqwestConnector::default().connect(options)?));
        made.push((key, client.clone()));
        Ok(client)
    }
}

#[derive(Debug)]
struct Patient(HttpClient);

#[async_trait]
impl HttpService for Patient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let lists = is_listing(&request);
        let sent = request.body().content_length() as u64;
        let limit = LIMIT + Duration::from_secs(sent / SLOWEST_UPLOAD);
        let answer =
            timeout(limit, self.0.execute(request)).await.map_err(|_| too_late(limit))??;
        let answer = answer.map(|body| HttpResponseBody::new(Pieces { body, sleep: None }));
        if !lists {
            return Ok(answer);
        }
        let (head, body) = answer.into_parts();
        let whole = body.bytes().await;
        let whole = whole.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?;
        Ok(HttpResponse::from_parts(head, whole.into()))
    }
}

/// Whether a page of keys is asked for. It is handed on whole, for the store's client repeats a
/// request that breaks off, and reads on in an object, but gives up on half a page.
fn is_listing(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let says = |pair: &str| pair.starts_with("list-type=") || pair == "comp=list";
    request.method().as_str() == "GET" && query.split('&').any(says)
}

fn too_late(limit: Duration) -> HttpError {
    let text = format!("no answer within {} s", limit.as_secs());
    HttpError::new(HttpErrorKind::Timeout, io::Error::new(io::ErrorKind::TimedOut, text))
}

/// An answer's body.
struct Pieces {
    body: HttpResponseBody,
    /// Set while a piece is waited for.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(piece) = Pin::new(&mut self.body).poll_frame(context) {
            self.sleep = None;
            return Poll::Ready(piece);
        }
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(LIMIT)));
        sleep.as_mut().poll(context).map(|()| Some(Err(too_late(LIMIT))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
