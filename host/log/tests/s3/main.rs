//! The log on S3's own client, with faults between it and the server: seeded schedules, after each
//! of which what is stored has to agree with what the writers were told.
//!
//! `PUGMARK_SCHEDULES=COUNT` runs another number of them, `PUGMARK_SCHEDULE=SEED` a single one.

mod fake;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use fake::{Fake, Weather};
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use pugmark_log::conformance::{run, verify_chain};
use pugmark_log::faults::Dice;
use pugmark_log::{
    Attributes, Bucket, Draft, Environment, Error, SessionId, Step, StepEnd, Timestamp, TipLookup,
    object_store,
};

/// 2026-01-31T12:00:00Z.
const NOON_MS: u64 = 1_769_860_800_000;
const SCHEDULES: u64 = 10_000;
const THREADS: u64 = 2;
const PUSHERS: u64 = 3;
const PUSHES: u64 = 3;
const STEPS: u64 = 2;

/// Virtual time and seeded randomness.
struct Seeded {
    begun: tokio::time::Instant,
    dice: Mutex<Dice>,
}

impl Environment for Seeded {
    fn now(&self) -> Timestamp {
        let elapsed = u64::try_from(self.begun.elapsed().as_millis()).unwrap();
        Timestamp::from_millis(NOON_MS + elapsed)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut dice = self.dice.lock().unwrap();
        bytes.fill_with(|| dice.bits().to_le_bytes()[0]);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }
}

#[derive(Clone, Debug)]
struct Wire(Arc<Fake>);

#[async_trait]
impl HttpService for Wire {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.0.call(request).await
    }
}

impl HttpConnector for Wire {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

/// S3's client, which repeats requests this often by itself.
fn client(fake: &Arc<Fake>, max_retries: usize) -> AmazonS3 {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(50),
        max_backoff: Duration::from_secs(1),
        base: 2.0,
    };
    AmazonS3Builder::new()
        .with_bucket_name("bucket")
        .with_endpoint("http://127.0.0.1:1")
        .with_allow_http(true)
        .with_access_key_id("key")
        .with_secret_access_key("secret")
        .with_disable_bulk_delete(true)
        .with_retry(RetryConfig { backoff, max_retries, retry_timeout: Duration::from_mins(1) })
        .with_http_connector(Wire(fake.clone()))
        .build()
        .unwrap()
}

fn bucket(fake: &Arc<Fake>, seed: u64, max_retries: usize) -> Bucket {
    let store = Arc::new(client(fake, max_retries));
    let dice = Mutex::new(Dice::new(seed));
    let environment = Arc::new(Seeded { begun: tokio::time::Instant::now(), dice });
    Bucket::new(store.clone(), TipLookup::Page(store), environment)
}

fn draft(text: &str) -> Draft {
    Draft::push(text.to_owned(), Attributes::default())
}

/// What a writer was told of its events.
#[derive(Default, Debug)]
struct Told {
    done: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

impl Told {
    fn note<T>(&mut self, text: String, result: &Result<T, Error>) {
        match result {
            Ok(_) => self.done.insert(text),
            Err(Error::Unknown { .. }) => self.unknown.insert(text),
            Err(_) => false,
        };
    }
}

async fn push(bucket: &Bucket, session: SessionId, pusher: u64) -> Told {
    let mut told = Told::default();
    for number in 0..PUSHES {
        // Every third is large: an object of its own, and then a version.
        let filler = if number % 3 == 2 { "x".repeat(1500) } else { String::new() };
        let text = format!("push {pusher}-{number}{filler}");
        let result = bucket.push(&session, None, &[draft(&text)]).await;
        told.note(text, &result);
    }
    told
}

async fn step(bucket: &Bucket, session: SessionId, runner: u64) -> Told {
    let mut told = Told::default();
    for number in 0..STEPS {
        let Ok(basis) = bucket.tip(&session, None).await else { continue };
        let text = format!("step {runner}-{number}");
        let step = Step {
            basis,
            outputs: vec![draft(&text)],
            outbox: Vec::new(),
            end: StepEnd::Continue,
            record: None,
        };
        told.note(text, &bucket.commit_step(&step).await);
    }
    told
}

/// One schedule. Returns how many requests it took.
async fn schedule(seed: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let per_mille = u32::try_from(100 + dice.below(400)).unwrap();
    let in_a_row = u32::try_from(2 + dice.below(12)).unwrap();
    let fake = Arc::new(Fake::new(dice.bits(), Weather { per_mille: 0, in_a_row }));
    let calm = bucket(&fake, dice.bits(), 0);
    let session = calm.start(None, BTreeMap::new()).await.unwrap().session;
    fake.set_weather(Weather { per_mille, in_a_row });
    // Whether S3's client repeats requests, creates among them, or sends each once.
    let max_retries = if dice.below(2) == 0 { 0 } else { 4 };
    let buckets: Vec<Bucket> =
        (0..PUSHERS + 2).map(|_| bucket(&fake, dice.bits(), max_retries)).collect();
    let writers = buckets.iter().zip(0..).map(|(bucket, number)| {
        if number < PUSHERS {
            push(bucket, session, number).boxed_local()
        } else {
            step(bucket, session, number).boxed_local()
        }
    });
    let told = join_all(writers).await;
    fake.clear_up();
    check(&calm, session, &told).await;
    fake.requests()
}

async fn check(calm: &Bucket, session: SessionId, told: &[Told]) {
    let chain = verify_chain(calm, &session).await.unwrap();
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for entry in &chain.log {
        let body = match entry.data() {
            Some(data) => data.clone(),
            None => calm.get_object(&entry.hash()).await.unwrap(),
        };
        *found.entry(String::from_utf8(body.to_vec()).unwrap()).or_default() += 1;
    }
    for (text, times) in &found {
        let wanted = |told: &Told| told.done.contains(text) || told.unknown.contains(text);
        assert!(told.iter().any(wanted), "{text} is there though its writer was told it is not");
        assert_eq!(*times, 1, "{text} is there {times} times");
    }
    for text in told.iter().flat_map(|told| &told.done) {
        assert!(found.contains_key(text), "{text} was acknowledged and is lost");
    }
}

fn with_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(future)
}

#[expect(clippy::disallowed_methods, reason = "how much is tested is chosen where tests are run")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn nothing_is_doubled_and_nothing_lost() {
    if let Some(seed) = number("PUGMARK_SCHEDULE") {
        eprintln!("seed {seed}: {} requests", with_runtime(schedule(seed)));
        return;
    }
    let count = number("PUGMARK_SCHEDULES").unwrap_or(SCHEDULES);
    let run = |thread: u64| {
        let mut requests = 0;
        for seed in (thread..count).step_by(usize::try_from(THREADS).unwrap()) {
            let ended = std::panic::catch_unwind(|| with_runtime(schedule(seed)));
            requests += ended.unwrap_or_else(|_| panic!("PUGMARK_SCHEDULE={seed} fails"));
        }
        requests
    };
    let requests: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    eprintln!("{count} schedules, {requests} requests");
    assert!(requests > count * 20);
}

#[test]
fn the_client_conforms() {
    with_runtime(async {
        let fake = Arc::new(Fake::new(1, Weather { per_mille: 0, in_a_row: 0 }));
        run(&bucket(&fake, 2, 0)).await.unwrap();
    });
}
