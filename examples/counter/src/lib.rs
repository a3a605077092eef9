//! Counts the events of its session: the smallest handler that does something.
//!
//! Each step appends `{"count":N}`, until N has reached `until` of the first event, if that is
//! `{"until":…}`. Else it goes on for ever, so bound it: `pugmark run --max-steps 100`.

use pugmark_guest::{Decision, Event, Handler, Output};
use serde::{Deserialize, Serialize};

/// The handler.
pub struct Counter;

/// What the log comes to.
#[derive(Default)]
pub struct State {
    count: u64,
    until: Option<u64>,
}

#[derive(Deserialize)]
struct Limit {
    until: Option<u64>,
}

#[derive(Serialize)]
struct Count {
    count: u64,
}

impl Handler for Counter {
    type State = State;

    fn fold(state: &mut State, event: &Event) {
        if state.count == 0 {
            state.until = event.json().ok().and_then(|limit: Limit| limit.until);
        }
        state.count += 1;
    }

    fn decide(state: &State) -> Decision {
        match state.until {
            Some(until) if state.count >= until => Decision::pause(format!("counted to {until}")),
            _ => Decision::append(Output::json(&Count { count: state.count })),
        }
    }
}

pugmark_guest::export!(Counter);

#[cfg(test)]
mod tests {
    use pugmark_guest::testing::decide;

    use super::*;

    #[test]
    fn counts_up_to_the_limit() {
        let limit = || Output::text(r#"{"until":3}"#);
        let other = || Output::text("anything");
        assert_eq!(decide::<Counter>([limit()]).outputs()[0].body(), br#"{"count":1}"#);
        assert_eq!(decide::<Counter>([limit(), other()]).outputs()[0].body(), br#"{"count":2}"#);
        let third = decide::<Counter>([limit(), other(), other()]);
        assert_eq!(third, Decision::pause("counted to 3"));
        let unlimited = decide::<Counter>([other(), other(), other(), other()]);
        assert_eq!(unlimited.outputs()[0].body(), br#"{"count":4}"#);
    }
}
