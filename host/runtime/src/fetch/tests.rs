use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path as FilePath;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use pugmark_log::object_store::memory::InMemory;
use pugmark_log::object_store::{Attributes, ObjectStoreExt as _, PutOptions};
use pugmark_log::{Environment, Timestamp, TipLookup};

use super::*;

struct Nothing;

impl Environment for Nothing {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

/// `mem://b/…` is in this store.
struct Stores(Arc<InMemory>);

impl OpenStore for Stores {
    fn open(&self, url: &str) -> Result<(Arc<dyn ObjectStore>, Path), object_store::Error> {
        let path = url.strip_prefix("mem://b/").unwrap();
        Ok((self.0.clone(), Path::from_url_path(path)?))
    }
}

struct Setup {
    bucket: Bucket,
    stores: Arc<InMemory>,
    folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let bucket = Bucket::new(Arc::new(InMemory::new()), TipLookup::Probe, Arc::new(Nothing));
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        Self { bucket, stores: Arc::new(InMemory::new()), folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    fn fetcher(&self, allowed: &[String]) -> Fetcher {
        Fetcher::new("s3://own/bucket/", allowed, Arc::new(Stores(self.stores.clone()))).unwrap()
    }

    async fn fetch(&self, fetcher: &Fetcher, uri: &str) -> Result<Output, FetchFailure> {
        let mut outputs = [Output { uri: Some(uri.to_owned()), ..Output::default() }];
        match fetcher.fill(&self.bucket, &mut outputs).await {
            Ok(()) => {
                let [output] = outputs;
                assert_eq!(output.uri, None);
                Ok(output)
            }
            Err(FetchError::Failure(failure)) => Err(failure),
            Err(FetchError::Host(error)) => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn objects_of_the_bucket_are_always_allowed() {
    let setup = Setup::new();
    let fetcher = setup.fetcher(&[]);
    let hash = setup.bucket.put_object(Bytes::from_static(b"x")).await.unwrap();
    let uri = format!("s3://own/bucket/objects/{hash}");
    assert_eq!(setup.fetch(&fetcher, &uri).await.unwrap().body, "x");
    let escaped = uri.replace("sha256:", "sha256%3A");
    assert_eq!(setup.fetch(&fetcher, &escaped).await.unwrap().body, "x");
    let uri = format!("s3://own/bucket/objects/{}", Digest::of(b"y"));
    assert_eq!(setup.fetch(&fetcher, &uri).await, Err(FetchFailure::NotFound { uri }));
    for uri in ["s3://own/bucket/sessions/a", "s3://own/bucket/objects/a", "s3://own/a"] {
        let failure = FetchFailure::NotAllowed { uri: uri.into() };
        assert_eq!(setup.fetch(&fetcher, uri).await, Err(failure));
    }
}

#[tokio::test]
async fn files_below_an_allowed_folder() {
    let setup = Setup::new();
    let fetcher = setup.fetcher(&[setup.uri("in")]);
    fs::write(setup.path("in/a b"), "inside").unwrap();
    fs::write(setup.path("secret"), "outside").unwrap();
    symlink("a b", setup.path("in/link")).unwrap();
    assert_eq!(setup.fetch(&fetcher, &setup.uri("in/a%20b")).await.unwrap().body, "inside");
    assert_eq!(setup.fetch(&fetcher, &setup.uri("in/link")).await.unwrap().body, "inside");
    let uri = setup.uri("in/missing");
    assert_eq!(setup.fetch(&fetcher, &uri).await, Err(FetchFailure::NotFound { uri }));
    let uri = setup.uri("secret");
    assert_eq!(setup.fetch(&fetcher, &uri).await, Err(FetchFailure::NotAllowed { uri }));
    let uri = setup.uri("in/../secret");
    assert!(matches!(setup.fetch(&fetcher, &uri).await, Err(FetchFailure::Invalid { .. })));

    symlink("../secret", setup.path("in/out")).unwrap();
    symlink(setup.folder.path(), setup.path("in/up")).unwrap();
    for name in ["in/out", "in/up/secret"] {
        let uri = setup.uri(name);
        assert_eq!(setup.fetch(&fetcher, &uri).await, Err(FetchFailure::Escapes { uri }));
    }
    make_fifo(&setup.path("in/pipe"));
    for name in ["in/pipe", "in"] {
        let uri = setup.uri(name);
        let fetched = setup.fetch(&fetcher, &uri);
        let fetched = tokio::time::timeout(Duration::from_secs(5), fetched).await.unwrap();
        assert_eq!(fetched, Err(FetchFailure::NotAFile { uri }));
    }
}

fn make_fifo(path: &FilePath) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[tokio::test]
async fn one_file_may_be_allowed() {
    let setup = Setup::new();
    fs::write(setup.path("in/a"), "a").unwrap();
    fs::write(setup.path("in/b"), "b").unwrap();
    let fetcher = setup.fetcher(&[setup.uri("in/a")]);
    assert_eq!(setup.fetch(&fetcher, &setup.uri("in/a")).await.unwrap().body, "a");
    let uri = setup.uri("in/b");
    assert_eq!(setup.fetch(&fetcher, &uri).await, Err(FetchFailure::NotAllowed { uri }));
}

#[tokio::test]
async fn what_a_store_says_of_it_is_kept_unless_the_handler_does() {
    let setup = Setup::new();
    let mut attributes = Attributes::new();
    attributes.insert(Attribute::ContentType, "text/csv".into());
    attributes.insert(Attribute::ContentEncoding, "gzip".into());
    let options = PutOptions { attributes, ..PutOptions::default() };
    setup.stores.put_opts(&Path::from("in/a"), "body".into(), options).await.unwrap();
    let fetcher = setup.fetcher(&["mem://b/in/".to_owned()]);
    let output = setup.fetch(&fetcher, "mem://b/in/a").await.unwrap();
    assert_eq!(output.body, "body");
    assert_eq!(output.attributes.content_type.as_deref(), Some("text/csv"));
    assert_eq!(output.attributes.content_encoding.as_deref(), Some("gzip"));

    let attributes =
        pugmark_log::Attributes { content_type: Some("a/b".into()), ..Default::default() };
    let uri = Some("mem://b/in/a".to_owned());
    let mut outputs = [Output { uri, attributes, ..Output::default() }];
    fetcher.fill(&setup.bucket, &mut outputs).await.unwrap();
    assert_eq!(outputs[0].attributes.content_type.as_deref(), Some("a/b"));
}

#[tokio::test]
async fn a_step_fetches_so_much_in_total() {
    let setup = Setup::new();
    fs::write(setup.path("in/a"), [0; 60]).unwrap();
    setup.stores.put(&Path::from("a"), vec![0; 60].into()).await.unwrap();
    let allowed = [setup.uri("in"), "mem://b".to_owned()];
    let fetcher = Fetcher { limit_bytes: 100, ..setup.fetcher(&allowed) };
    for uri in [setup.uri("in/a"), "mem://b/a".to_owned()] {
        let output = Output { uri: Some(uri.clone()), ..Output::default() };
        let mut outputs = [output.clone(), output];
        let Err(FetchError::Failure(failure)) = fetcher.fill(&setup.bucket, &mut outputs).await
        else {
            panic!("{uri}")
        };
        assert_eq!(failure, FetchFailure::TooLarge { uri, limit: 100 });
    }
}
