//! For a handler's own tests: steps without a runtime.

use std::cell::OnceCell;

use crate::{Decision, Event, Handler, Kind, Output};

/// What the handler decides on a log of these events.
pub fn decide<H: Handler>(log: impl IntoIterator<Item = Output>) -> Decision {
    let mut state = H::State::default();
    for (position, output) in (0..).zip(log) {
        H::fold(&mut state, &event(position, Kind::Push, &output));
    }
    H::decide(&state)
}

/// The event that an output becomes in the log. Its hash is empty.
#[must_use]
pub fn event(position: u64, kind: Kind, output: &Output) -> Event {
    Event {
        position,
        kind,
        hash: String::new(),
        size: output.body.len() as u64,
        name: output.name.clone(),
        content_type: output.content_type.clone(),
        content_encoding: output.content_encoding.clone(),
        schema_url: output.schema_url.clone(),
        metadata: output.metadata.clone(),
        location: String::new(),
        body: OnceCell::from(output.body.clone()),
    }
}
