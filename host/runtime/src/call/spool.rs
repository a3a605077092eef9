//! A request's body of a length that is known: the log's lines, collected before they are sent.

use std::io;

use futures::{Stream, StreamExt as _};
use reqwest::Body;
use tokio::fs::File;
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _};

use crate::Error;
use crate::endpoint::Endpoint;
use crate::handler::LogLine;
use crate::protocol::input;

/// A log that takes more bytes than this goes through a file without a name.
const MEMORY_BYTES: usize = 1024 * 1024;

/// What is sent.
pub(super) struct Spooled {
    pub body: Body,
    /// Its length in bytes.
    pub len: u64,
}

/// Collects `lines`.
pub(super) async fn spool<S>(mut lines: S, endpoint: &Endpoint) -> Result<Spooled, Error>
where
    S: Stream<Item = Result<LogLine, Error>> + Send + Unpin,
{
    let mut buffer = Vec::new();
    let mut overflow: Option<File> = None;
    let mut len = 0;
    while let Some(line) = lines.next().await {
        let line = line?;
        let url = endpoint.url(&line.entry.hash());
        input::append(&mut buffer, &line, &url, line.entry.data().map(|data| &data[..]));
        if buffer.len() >= MEMORY_BYTES {
            let file = match &mut overflow {
                Some(file) => file,
                None => overflow.insert(File::from_std(tempfile::tempfile().map_err(failed)?)),
            };
            file.write_all(&buffer).await.map_err(failed)?;
            len += buffer.len() as u64;
            buffer.clear();
        }
    }
    len += buffer.len() as u64;
    let body = match overflow {
        None => buffer.into(),
        Some(file) => finish(file, &buffer).await.map_err(failed)?,
    };
    Ok(Spooled { body, len })
}

/// Writes what is left, and has the file read from its beginning.
async fn finish(mut file: File, rest: &[u8]) -> io::Result<Body> {
    file.write_all(rest).await?;
    file.flush().await?;
    file.rewind().await?;
    Ok(file.into())
}

fn failed(source: io::Error) -> Error {
    Error::Io { action: "keep the handler's input in a temporary file".to_owned(), source }
}
