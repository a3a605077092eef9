//! Handlers in the bucket, as the command line names them: `NAME`, `NAME@latest`, `NAME@3` or
//! `NAME@sha256:…`.

use std::fmt::Write as _;

use bytes::Bytes;
use pugmark_log::{Bucket, Digest, HandlerVersion, Manifest};
use pugmark_runtime::Handler;
use pugmark_runtime::sandbox::{LoadError, Sandbox};

use crate::error::Error;
use crate::handlers;

/// Handlers that a message lists.
const LISTED: usize = 12;

/// Which version of a name is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// What a session is pinned to, or else the newest.
    Own,
    /// The newest, whenever it is asked.
    Latest,
    /// The one with this number.
    Version(u64),
    /// The one whose digest begins with these digits.
    Digest(String),
}

/// A handler of the bucket, by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The name.
    pub name: String,
    /// Its version.
    pub which: Which,
}

impl Stored {
    /// Reads `NAME` or `NAME@VERSION`.
    ///
    /// # Errors
    /// If what stands behind the `@` is no version.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let Some((name, version)) = text.split_once('@') else {
            return Ok(Self { name: text.to_owned(), which: Which::Own });
        };
        let number = version.strip_prefix('v').unwrap_or(version).parse();
        let which = match (version, number) {
            ("latest", _) => Which::Latest,
            (_, Ok(number)) => Which::Version(number),
            _ => {
                let digits = version.strip_prefix("sha256:").filter(|digits| is_hash(digits));
                Which::Digest(digits.ok_or_else(|| no_version(text, version))?.to_owned())
            }
        };
        Ok(Self { name: name.to_owned(), which })
    }

    /// The version that the bucket has.
    ///
    /// # Errors
    /// If it has none; says which it has.
    pub async fn find(&self, bucket: &Bucket) -> Result<HandlerVersion, Error> {
        let found = match &self.which {
            // A session may ask for any name, also for one that no handler of a bucket can have.
            Which::Own => match bucket.latest_handler(&self.name).await {
                Err(pugmark_log::Error::InvalidHandlerName { .. }) => None,
                found => found?,
            },
            Which::Latest => bucket.latest_handler(&self.name).await?,
            Which::Version(number) => bucket.handler_version(&self.name, *number).await?,
            Which::Digest(digits) => {
                let mut versions = bucket.handler_versions(&self.name).await?;
                versions.retain(|found| found.component.hex().starts_with(digits));
                if versions.iter().any(|found| found.component != versions[0].component) {
                    let message = format!("several versions have a digest like that of `{self}`");
                    return Err(Error::invalid(message, "give more digits"));
                }
                versions.pop()
            }
        };
        match found {
            Some(found) => Ok(found),
            None => Err(self.not_found(bucket).await?),
        }
    }

    async fn not_found(&self, bucket: &Bucket) -> Result<Error, Error> {
        let all = bucket.handlers().await?;
        let of_name: Vec<String> =
            all.iter().filter(|found| found.name == self.name).map(label).collect();
        let name = &self.name;
        let hint = if !of_name.is_empty() {
            format!("it has {}", listed(&of_name))
        } else if all.is_empty() {
            format!("it has none; `pugmark handlers add {name} FILE.wasm` adds it")
        } else {
            let mut names: Vec<String> = all.into_iter().map(|found| found.name).collect();
            names.dedup();
            format!("it has {}", listed(&names))
        };
        let hint = match self.which {
            Which::Own => format!("{hint}; `pugmark run --handler '{name}=COMMAND'` gives one"),
            _ => hint,
        };
        Ok(Error::not_found(format!("this bucket has no handler `{self}`"), hint))
    }
}

impl std::fmt::Display for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        match &self.which {
            Which::Own => Ok(()),
            Which::Latest => f.write_str("@latest"),
            Which::Version(number) => write!(f, "@{number}"),
            Which::Digest(digits) => write!(f, "@sha256:{digits}"),
        }
    }
}

/// A version as it is named.
pub fn label(found: &HandlerVersion) -> String {
    format!("{}@{}", found.name, found.version)
}

/// The component that is meant where a session with this manifest runs: its own, if it is pinned to
/// one and nothing else is asked for.
///
/// # Errors
/// If the bucket has none.
pub async fn component(
    bucket: &Bucket,
    stored: &Stored,
    manifest: Option<&Manifest>,
) -> Result<Digest, Error> {
    let named = |manifest: &&Manifest| manifest.handler.as_deref() == Some(&stored.name);
    let pinned = manifest.filter(named).and_then(|manifest| manifest.component);
    match pinned.filter(|_| stored.which == Which::Own) {
        Some(component) => Ok(component),
        None => stored.find(bucket).await.map(|found| found.component),
    }
}

/// Loads a component of the bucket. Its bytes are fetched only if its compiled code is not at hand.
/// To be called where a tokio runtime is running.
///
/// # Errors
/// If the bucket does not have it, or it cannot be run.
pub async fn load(bucket: &Bucket, name: &str, component: Digest) -> Result<Handler, Error> {
    enum Failed {
        Load(LoadError),
        Fetch(pugmark_log::Error),
    }
    impl From<LoadError> for Failed {
        fn from(error: LoadError) -> Self {
            Self::Load(error)
        }
    }
    if !bucket.keep_object(&component).await? {
        let message = format!("the handler `{name}` is component {component}, and that is missing");
        return Err(Error::not_found(message, "`pugmark verify` says what else is"));
    }
    let (source, runtime) = (bucket.clone(), tokio::runtime::Handle::current());
    let fetch = move || runtime.block_on(source.get_object(&component)).map_err(Failed::Fetch);
    let load = move || {
        let sandbox = Sandbox::new(handlers::settings())?;
        sandbox.load_digest(component, fetch)
    };
    let loaded = tokio::task::spawn_blocking(load).await;
    let loaded =
        loaded.map_err(|join| pugmark_runtime::Error::Internal { reason: join.to_string() })?;
    let component = loaded.map_err(|failed| match failed {
        Failed::Load(source) => Error::Load { path: name.to_owned(), source },
        Failed::Fetch(error) => error.into(),
    })?;
    Ok(Handler::Component { component, args: Vec::new() })
}

/// The bytes of a component of the bucket: by `sha256:…`, or by its name.
///
/// # Errors
/// If the bucket does not have it.
pub async fn bytes(bucket: &Bucket, text: &str) -> Result<Bytes, Error> {
    let component = match text.parse::<Digest>() {
        Ok(digest) => digest,
        Err(_) => Stored::parse(text)?.find(bucket).await?.component,
    };
    Ok(bucket.get_object(&component).await?)
}

fn is_hash(digits: &str) -> bool {
    (4..=64).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn no_version(text: &str, version: &str) -> Error {
    let message = format!("`{version}` of `{text}` is no version of a handler");
    let hint = "write NAME, NAME@latest, NAME@3, or NAME@sha256: and at least 4 digits";
    Error::invalid(message, hint)
}

fn listed(names: &[String]) -> String {
    let mut text = names.iter().rev().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > LISTED {
        let _ = write!(text, " and {} more: `pugmark handlers` lists them", names.len() - LISTED);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions() {
        let which = |text: &str| Stored::parse(text).map(|stored| stored.which);
        assert_eq!(which("triage").unwrap(), Which::Own);
        assert_eq!(which("triage@latest").unwrap(), Which::Latest);
        assert_eq!(which("triage@3").unwrap(), Which::Version(3));
        assert_eq!(which("triage@v3").unwrap(), Which::Version(3));
        assert_eq!(which("triage@sha256:12ab").unwrap(), Which::Digest("12ab".into()));
        for text in ["triage@", "triage@newest", "triage@sha256:12", "triage@sha256:zzzz"] {
            assert!(which(text).is_err(), "{text}");
        }
        for text in ["triage", "triage@latest", "triage@3", "triage@sha256:12ab"] {
            assert_eq!(Stored::parse(text).unwrap().to_string(), text);
        }
    }
}
