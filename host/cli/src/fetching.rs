//! What handlers may have fetched: which stores there are for it.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use pugmark_runtime::OpenStore;
use url::Url;

use crate::error::Error;
use crate::stores;

/// Opens the stores of `s3://`, `gs://` and `az://` addresses.
pub struct Stores {
    bucket: Option<Url>,
}

impl Stores {
    /// Stores of the bucket's own kind are where its URL says that they are.
    pub fn beside(bucket: &str) -> Self {
        Self { bucket: Url::parse(bucket).ok() }
    }
}

impl OpenStore for Stores {
    fn open(&self, url: &str) -> Result<(Arc<dyn ObjectStore>, Path), object_store::Error> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| {
            object_store::Error::Generic { store: "fetched", source }
        };
        let mut place = Url::parse(url).map_err(|error| failed(error.into()))?;
        let path = Path::from_url_path(place.path())?;
        place.set_path("");
        let bucket = self.bucket.as_ref().filter(|bucket| bucket.scheme() == place.scheme());
        place.set_query(bucket.and_then(Url::query));
        let opened = stores::open(&place).map_err(|error| failed(error.into()))?;
        Ok((Arc::clone(opened.store()), path))
    }
}

/// Fails if there is a prefix of a kind that nothing can be fetched from.
///
/// Addresses of the web are not among them: a server there may lead on to anywhere.
pub fn check_prefixes(prefixes: &[String]) -> Result<(), Error> {
    let fetched = |prefix: &String| prefix.starts_with("file://") || stores::is_remote(prefix);
    match prefixes.iter().find(|prefix| !fetched(prefix)) {
        None => Ok(()),
        Some(prefix) => Err(Error::invalid(
            format!("nothing can be fetched from under `{prefix}`"),
            "give a file://, s3://, gs:// or az:// URL",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_of_known_kinds() {
        let check = |prefix: &str| check_prefixes(&[prefix.to_owned()]);
        for prefix in ["file:///a", "s3://a", "gs://a/b", "az://a/b/"] {
            assert!(check(prefix).is_ok(), "{prefix}");
        }
        for prefix in ["", "a", "/a", "http://h/", "https://h/", "memory://"] {
            assert!(check(prefix).is_err(), "{prefix}");
        }
    }
}
