//! (i) Replay of a long session, against the same calls on wasmtime alone.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use pugmark_log::{
    Attributes, Bucket, Digest, Draft, Entry, INLINE_LIMIT, Snapshot, Step, StepEnd,
};
use pugmark_runtime::replay::{Options, Outcome, Progress, replay};
use pugmark_runtime::sandbox::{ABI, Component, Limits, Moment, Sandbox, Settings, StepSetup};
use pugmark_runtime::{Error, Frame, LogLine, LogSource, ObjectSource};
use serde_json::json;
use wasmtime::Store;

use crate::instantiate::{Nothing, as_folded, bare};
use crate::support::{Row, Setup, bucket, median, settle, timed};

const STEPS: u64 = 10_000;
const RUNS: usize = 5;

pub fn measure(setup: &Setup) -> Vec<Row> {
    // The counter does next to nothing, so that what is left is reading.
    vec![compare(setup, "triage", "≤ 2.0"), compare(setup, "counter", "quick")]
}

fn compare(setup: &Setup, handler: &str, aim: &'static str) -> Row {
    let folder = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let cache = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let settings =
        Settings { cache_dir: Some(cache.path().join("compiled")), ..Settings::default() };
    let sandbox = Arc::new(Sandbox::new(settings).expect("a sandbox can be made"));
    let file = setup.guests.join(format!("{handler}.wasm"));
    let component = sandbox.load_file(&file).expect("the guest is built: tests/build-guests.sh");
    let bucket = bucket(folder.path(), false);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("threads can be made");
    let tip = runtime.block_on(recorded(&bucket, &component, handler));
    let entries: Vec<Entry> = runtime
        .block_on(bucket.entries(&tip.log, 0..tip.log.count(), None).try_collect())
        .expect("the log can be read");
    let bytes = component.bytes().expect("the component's bytes");
    let jobs = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let (mut ours, mut against): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let options = Options { jobs, local: true, ..Options::default() };
        let progress = Arc::new(Progress::default());
        settle();
        let (took, report) = timed(|| {
            runtime.block_on(replay(&bucket, &tip, &sandbox, options, &progress)).expect("replayed")
        });
        assert_eq!((report.outcome(), report.identical), (Outcome::Identical, STEPS));
        assert!(report.impure.is_empty());
        ours.push(took);
        against.push(same_calls(&bytes, &entries));
    }
    let what = format!(
        "replay of {STEPS} steps of {handler}, against the same calls on bare wasmtime (median of \
         {RUNS})"
    );
    Row::times(what, median(ours), median(against), aim)
}

/// The time of all folds and decides on one instance.
fn same_calls(bytes: &[u8], entries: &[Entry]) -> Duration {
    let (engine, pre) = bare(bytes);
    let mut store = Store::new(&engine, Nothing);
    store.set_epoch_deadline(1_000_000);
    let (took, ()) = timed(|| {
        let handler = pre.instantiate(&mut store).expect("instantiated");
        let exports = handler.pugmark_handler_step();
        for (entry, position) in entries.iter().zip(0..) {
            let entry = as_folded(entry, position);
            exports.call_fold(&mut store, &entry).expect("called").expect("folded");
            // Every other entry is a step's answer to the one before it.
            if position % 2 == 0 {
                exports.call_decide(&mut store).expect("called").expect("decided");
            }
        }
    });
    took
}

/// A session in which each event is answered by a step. Made on one instance, as each step on its
/// own would take a time that grows with the square of their number.
async fn recorded(bucket: &Bucket, component: &Component, handler: &str) -> Snapshot {
    let mut tip = bucket.start(None, [].into()).await.expect("started");
    let setup = StepSetup {
        outside: None,
        frame: Frame {
            session: tip.session,
            agent: handler.to_owned(),
            metadata: [].into(),
            snapshot: 0,
            clock: tip.created,
            args: Vec::new(),
        },
        log_digest: Digest::of(b""),
        objects: Arc::new(NoObjects),
        limits: Limits::default(),
        diagnostics: Arc::new(|_, _| {}),
    };
    let mut instance = component.instance(setup).expect("instantiated").expect("a typed handler");
    let stored = bucket.put_object(component.bytes().expect("its bytes")).await.expect("stored");
    assert_eq!(stored, component.digest());
    let mut fresh: Vec<Entry> = Vec::new();
    for number in 0..STEPS {
        tip = bucket.push(&tip.session, Some(tip.version), &[event(number)]).await.expect("pushed");
        fresh.extend(tip.objects.iter().cloned());
        let first = tip.log.count() - fresh.len() as u64;
        let lines = fresh.drain(..).zip(first..);
        let lines: Vec<LogLine> =
            lines.map(|(entry, position)| LogLine { position, event: "push", entry }).collect();
        let moment =
            Moment { snapshot: tip.version, clock: tip.created, log_digest: tip.log.root() };
        let (kept, outputs) =
            instance.step(&moment, &mut Lines(lines.into_iter())).expect("decided");
        instance = kept;
        let step = Step {
            outputs: outputs.into_iter().map(|o| Draft::push(o.body, o.attributes)).collect(),
            outbox: Vec::new(),
            end: StepEnd::Continue,
            record: Some(record(&tip, component, handler)),
            basis: tip,
        };
        tip = bucket.commit_step(&step).await.expect("committed");
        assert_eq!(tip.last.added, 1);
        fresh.extend(tip.objects.iter().cloned());
    }
    tip
}

fn record(
    tip: &Snapshot,
    component: &Component,
    handler: &str,
) -> Box<serde_json::value::RawValue> {
    let record = json!({
        "kind": "component",
        "handler": handler,
        "component": component.digest(),
        "n": tip.log.count(),
        "log": tip.log.root(),
        "clock": tip.created,
        "snapshot": tip.version,
        "args": [],
        "abi": ABI,
        "born": tip.version,
        "host": "bench",
    });
    serde_json::value::to_raw_value(&record).expect("it is JSON")
}

/// A webhook payload of about a kilobyte's worth of JSON, as an event of its own.
fn event(number: u64) -> Draft {
    let title = ["Crash on start", "Typo in the README", "It does not work", "A proposal"]
        [usize::try_from(number % 4).unwrap_or(0)];
    let body = json!({
        "action": "opened",
        "issue": {
            "number": number,
            "title": title,
            "body": format!("{:x<500}", format!("What happened in case {number}: ")),
            "labels": [],
            "user": {"login": "ada", "type": "User"},
            "author_association": "NONE",
        },
        "sender": {"login": "ada", "type": "User"},
    });
    let body = Bytes::from(body.to_string());
    assert!(body.len() < INLINE_LIMIT);
    let content_type = Some("application/json".to_owned());
    Draft::push(body, Attributes { content_type, ..Attributes::default() })
}

struct Lines(std::vec::IntoIter<LogLine>);

impl LogSource for Lines {
    fn next_line(&mut self) -> Result<Option<LogLine>, Error> {
        Ok(self.0.next())
    }
}

struct NoObjects;

impl ObjectSource for NoObjects {
    fn size(&self, _hash: &Digest) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    fn read(&self, _hash: &Digest, _offset: u64, _len: u64) -> Result<Option<Bytes>, Error> {
        Ok(None)
    }
}
