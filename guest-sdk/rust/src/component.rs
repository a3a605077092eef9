//! A handler as a component: the typed world. What [`export!`](crate::export) expands to calls
//! this; nothing else should.

use std::cell::{OnceCell, RefCell};
use std::panic;
use std::process::ExitCode;

use bindings::pugmark::handler::log as host_log;
use bindings::pugmark::handler::{objects, session as host_session, types};

use crate::decision::to_millis;
use crate::log::Level;
use crate::{Event, Handler, Kind, Next, Output, Session};

pub use bindings::exports::pugmark::handler::step::Guest;
pub use types::{Decision as Decided, Entry};

pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "handler",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "pugmark_guest::component::bindings",
    });
}

/// Bytes that are asked for in one call.
const PIECE_LEN: usize = 256 * 1024;

/// The state that a step begins with. Panics are logged from here on.
pub fn start<H: Handler>() -> RefCell<H::State> {
    panic::set_hook(Box::new(|panic| crate::log::error(panic)));
    RefCell::default()
}

/// Takes one entry into the state.
pub fn fold<H: Handler>(state: &mut H::State, entry: Entry) -> Result<(), String> {
    H::fold(state, &event(entry));
    Ok(())
}

/// Decides on the state.
pub fn decide<H: Handler>(state: &H::State) -> Result<Decided, String> {
    let (outputs, next) = H::decide(state).settle()?;
    let next = match next {
        Next::Continue => types::Next::Continue,
        Next::Pause { reason } => types::Next::Pause(reason),
        Next::Sleep { duration, reason } => {
            types::Next::Sleep(types::Nap { duration_ms: to_millis(duration), reason })
        }
    };
    let outputs = outputs.into_iter().map(sent).collect();
    Ok(Decided { outputs, next, extra: Vec::new() })
}

/// There is none: the step is driven through the component's exports.
pub fn run<H: Handler>() -> ExitCode {
    panic!("a component has no main: build the library alone, with `--lib`")
}

fn event(entry: Entry) -> Event {
    Event {
        position: entry.position,
        kind: Kind::named(&entry.event),
        location: entry.hash.clone(),
        hash: entry.hash,
        size: entry.size,
        name: entry.name,
        content_type: entry.content_type,
        content_encoding: entry.content_encoding,
        schema_url: entry.schema_url,
        metadata: entry.metadata.into_iter().collect(),
        body: entry.data.map(OnceCell::from).unwrap_or_default(),
    }
}

fn sent(output: Output) -> types::Output {
    types::Output {
        data: output.body,
        name: output.name,
        content_type: output.content_type,
        content_encoding: output.content_encoding,
        schema_url: output.schema_url,
        metadata: output.metadata.into_iter().collect(),
        extra: Vec::new(),
    }
}

/// Exactly `len` bytes from `offset`, which the object has.
pub(crate) fn read_object(hash: &str, offset: u64, len: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(len);
    while body.len() < len {
        let wanted = (len - body.len()).min(PIECE_LEN);
        let piece = objects::read(hash, offset + body.len() as u64, wanted as u32);
        match piece {
            Ok(piece) if !piece.is_empty() => body.extend(piece),
            Ok(_) => panic!("{hash} is shorter than its entry says"),
            Err(error) => panic!("{hash}: {error}"),
        }
    }
    body
}

pub(crate) fn session() -> Session {
    let info = host_session::get();
    Session {
        id: info.id,
        agent: info.agent,
        snapshot: info.snapshot,
        metadata: info.metadata.into_iter().collect(),
    }
}

pub(crate) fn log(level: Level, message: &str) {
    let level = match level {
        Level::Debug => host_log::Level::Debug,
        Level::Info => host_log::Level::Info,
        Level::Warn => host_log::Level::Warn,
        Level::Error => host_log::Level::Error,
    };
    host_log::log(level, message);
}
