//! For a handler's own tests: steps without a runtime, in memory and in no time.
//!
//! [`decide`] asks for one decision on a log. A [`Session`] goes on with what was decided, as `pugmark
//! run` does, and has a clock that only [`advance`](Session::advance) moves:
//!
//! ```
//! use std::time::Duration;
//!
//! use pugmark_guest::{Decision, Event, Handler, Kind, Output, testing};
//!
//! /// Says something, waits a minute, says the next thing.
//! struct Slow;
//!
//! impl Handler for Slow {
//!     type State = (u32, Option<Kind>);
//!
//!     fn fold((said, last): &mut Self::State, event: &Event) {
//!         *said += u32::from(event.text().is_ok_and(|text| text.starts_with("said")));
//!         *last = Some(event.kind());
//!     }
//!
//!     fn decide((said, last): &Self::State) -> Decision {
//!         match (said, last) {
//!             (2.., _) => Decision::pause("all is said"),
//!             (_, Some(Kind::Wake | Kind::Start)) => {
//!                 Decision::append(Output::text(format!("said {said}")))
//!             }
//!             _ => Decision::sleep(Duration::from_secs(60), "taking my time"),
//!         }
//!     }
//! }
//!
//! let mut session = testing::Session::<Slow>::new();
//! assert_eq!(session.run().outputs(), [Output::text("said 0")]);
//! session.advance(Duration::from_secs(59));
//! assert!(session.sleeps());
//! session.advance(Duration::from_secs(1));
//! let turn = session.run();
//! assert_eq!(turn.outputs(), [Output::text("said 1")]);
//! assert_eq!(turn.reason(), Some("all is said"));
//! ```

mod clock;
mod current;
mod session;
mod turn;

use std::cell::OnceCell;

use crate::{Decision, Event, Handler, Kind, Output};

#[cfg(not(target_family = "wasm"))]
pub(crate) use current::current;
pub use session::Session;
pub use turn::Turn;

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
