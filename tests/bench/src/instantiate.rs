//! (e) Instantiate, fold 10 events and decide, against the same calls on wasmtime alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pugmark_log::{Digest, Entry, SessionId, Timestamp};
use pugmark_runtime::sandbox::{Limits, StepSetup};
use pugmark_runtime::{Error, Frame, LogLine, LogSource, ObjectSource};
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime::{Config, Engine, Store};

use crate::support::{Row, Setup, component, event, median, timed};

pub mod bindings {
    wasmtime::component::bindgen!({ path: "../../wit", world: "pugmark:handler/handler" });
}

use bindings::pugmark::handler::{log, objects, session, types};

const RUNS: usize = 2000;
const EVENTS: u64 = 10;

pub fn measure(setup: &Setup) -> Vec<Row> {
    let ours = component(setup, "counter.wasm");
    let bytes = ours.bytes().expect("the component's bytes");
    let (engine, bare) = bare(&bytes);
    let entries: Vec<Entry> = (0..EVENTS).map(|n| event(n).build().expect("an entry")).collect();
    let (mut our_times, mut bare_times) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let mut lines = Lines(entries.clone().into_iter().zip(0..).collect::<Vec<_>>().into_iter());
        our_times.push(timed(|| ours.step(frame(), &mut lines).expect("decided")).0);
        bare_times.push(timed(|| step(&engine, &bare, &entries)).0);
    }
    let what =
        format!("instantiate, fold {EVENTS}, decide, against bare wasmtime (median of {RUNS})");
    vec![Row::times(what, median(our_times), median(bare_times), "≤ 2.0")]
}

fn frame() -> StepSetup {
    let session: SessionId = "019abc12-3456-789a-bcde-f0123456789a".parse().expect("an id");
    StepSetup {
        outside: None,
        frame: Frame {
            session,
            agent: "counter".to_owned(),
            metadata: BTreeMap::new(),
            snapshot: 1,
            clock: Timestamp::from_millis(0),
            args: Vec::new(),
        },
        log_digest: Digest::of(b""),
        objects: Arc::new(NoObjects),
        limits: Limits::default(),
        diagnostics: Arc::new(|_, _| {}),
    }
}

struct Lines(std::vec::IntoIter<(Entry, u64)>);

impl LogSource for Lines {
    fn next_line(&mut self) -> Result<Option<LogLine>, Error> {
        let next = self.0.next();
        Ok(next.map(|(entry, position)| LogLine { position, event: "push", entry }))
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

/// A host that serves nothing: what the examples import and never call.
pub struct Nothing;

impl types::Host for Nothing {}

impl objects::Host for Nothing {
    fn size(&mut self, _hash: String) -> Result<u64, String> {
        Err(String::new())
    }

    fn read(&mut self, _hash: String, _offset: u64, _len: u32) -> Result<Vec<u8>, String> {
        Err(String::new())
    }
}

impl session::Host for Nothing {
    fn get(&mut self) -> session::Info {
        let (id, agent) = (String::new(), String::new());
        session::Info { id, agent, snapshot: 0, metadata: Vec::new(), extra: Vec::new() }
    }
}

impl log::Host for Nothing {
    fn log(&mut self, _level: log::Level, _message: String) {}
}

/// A component on wasmtime alone.
pub fn bare(bytes: &[u8]) -> (Engine, bindings::HandlerPre<Nothing>) {
    let mut config = Config::new();
    config.epoch_interruption(true);
    let engine = Engine::new(&config).expect("an engine");
    let component = Component::new(&engine, bytes).expect("a component");
    let mut linker: Linker<Nothing> = Linker::new(&engine);
    bindings::Handler::add_to_linker::<_, HasSelf<Nothing>>(&mut linker, |nothing| nothing)
        .expect("linked");
    let pre: InstancePre<Nothing> = linker.instantiate_pre(&component).expect("linked");
    (engine, bindings::HandlerPre::new(pre).expect("a handler"))
}

fn step(engine: &Engine, pre: &bindings::HandlerPre<Nothing>, entries: &[Entry]) -> usize {
    let mut store = Store::new(engine, Nothing);
    store.set_epoch_deadline(1_000_000);
    let handler = pre.instantiate(&mut store).expect("instantiated");
    let exports = handler.pugmark_handler_step();
    for (entry, position) in entries.iter().zip(0..) {
        exports
            .call_fold(&mut store, &as_folded(entry, position))
            .expect("called")
            .expect("folded");
    }
    exports.call_decide(&mut store).expect("called").expect("decided").outputs.len()
}

/// An entry as a handler is given it.
pub fn as_folded(entry: &Entry, position: u64) -> types::Entry {
    types::Entry {
        position,
        event: "push".to_owned(),
        hash: entry.hash().to_string(),
        size: entry.size(),
        name: entry.attributes().name.clone(),
        content_type: entry.attributes().content_type.clone(),
        content_encoding: None,
        schema_url: None,
        metadata: Vec::new(),
        data: entry.data().map(|data| data.to_vec()),
        extra: Vec::new(),
    }
}
