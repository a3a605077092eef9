//! A session in memory, and the loop that a handler runs in.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::clock;
use super::current::seeing;
use super::turn::Turn;
use crate::{Decision, Event, Handler, Kind, Next, Output};

/// Steps after which a loop is taken for one that never ends.
const MOST_STEPS: u64 = 10_000;

/// Every step before this one is also decided on a state that is folded afresh; of those behind it,
/// the ones whose number is a power of two: a long loop must not take the square of its length.
const COMPARED_STEPS: u64 = 256;

/// A session in memory that `H` runs on.
///
/// Every step is decided twice: on a state that is kept from step to step, as `pugmark run` does in
/// the sandbox, and on one that is folded afresh. Where they differ, `decide` depends on something
/// that is not in the log, and the test panics.
pub struct Session<H: Handler> {
    events: Vec<Event>,
    /// The position of the next event. A pause has one, too.
    position: u64,
    /// What was folded, and how many events that were.
    kept: Option<(H::State, usize)>,
    steps: u64,
    info: crate::Session,
    now: Duration,
    wakes_at: Option<Duration>,
    handler: PhantomData<H>,
}

impl<H: Handler> Default for Session<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Handler> Session<H> {
    /// A session without events. A handler that runs on it gets a `start` event, as it does from the
    /// runtime.
    #[must_use]
    pub fn new() -> Self {
        let info = crate::Session {
            id: "00dc6acf-ac00-7000-8000-000000000000".to_owned(),
            agent: "handler".to_owned(),
            snapshot: 0,
            metadata: [].into(),
        };
        Self {
            events: Vec::new(),
            position: 0,
            kept: None,
            steps: 0,
            info,
            now: Duration::ZERO,
            wakes_at: None,
            handler: PhantomData,
        }
    }

    /// A session with these events.
    #[must_use]
    pub fn of(events: impl IntoIterator<Item = Output>) -> Self {
        let mut session = Self::new();
        for event in events {
            session.push(event);
        }
        session
    }

    /// Adds to the session's metadata, which [`session`](crate::session()) shows to the handler.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.info.metadata.insert(name.into(), value.into());
        self
    }

    /// Pushes an event from outside. A session that sleeps is due then.
    pub fn push(&mut self, event: Output) {
        self.append(Kind::Push, &event);
        self.info.snapshot += 1;
        self.wakes_at = None;
    }

    /// All events so far, as the handler is sent them.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Makes one step. What it decides is appended, unless it fails.
    ///
    /// # Panics
    /// If `decide` depends on something that is not in the log.
    pub fn step(&mut self) -> Decision {
        let decision = self.decide();
        self.steps += 1;
        if decision.failure().is_some() {
            // Nothing is committed, and no instance is kept.
            self.kept = None;
            return decision;
        }
        for output in decision.outputs() {
            self.append(Kind::Push, output);
        }
        self.wakes_at = None;
        if let Next::Sleep { duration, .. } = decision.next() {
            self.wakes_at = Some(self.now.saturating_add(*duration));
        }
        self.position += u64::from(*decision.next() != Next::Continue);
        self.info.snapshot += 1;
        decision
    }

    /// Makes steps until one pauses, sleeps, fails or appends nothing; at least one.
    ///
    /// # Panics
    /// If that does not come within 10,000 steps, and as [`Session::step`].
    pub fn run(&mut self) -> Turn {
        let mut decisions = Vec::new();
        for _ in 0..MOST_STEPS {
            let decision = self.step();
            let goes_on = decision.failure().is_none()
                && *decision.next() == Next::Continue
                && !decision.outputs().is_empty();
            decisions.push(decision);
            if !goes_on {
                return Turn::new(decisions);
            }
        }
        panic!("the handler has not come to rest within {MOST_STEPS} steps")
    }

    /// Lets time pass. If the session sleeps and its time comes, it gets a `wake` event.
    pub fn advance(&mut self, duration: Duration) {
        self.now = self.now.saturating_add(duration);
        let Some(time) = self.wakes_at.filter(|time| *time <= self.now) else { return };
        self.wakes_at = None;
        let body = format!(r#"{{"kind":"wake","time":"{}"}}"#, clock::time(time));
        self.append(Kind::Wake, &Output::text(body).content_type("application/json"));
        self.info.snapshot += 1;
    }

    /// Whether the session sleeps.
    #[must_use]
    pub fn sleeps(&self) -> bool {
        self.wakes_at.is_some()
    }

    fn append(&mut self, kind: Kind, output: &Output) {
        self.events.push(super::event(self.position, kind, output));
        self.position += 1;
    }

    /// What the handler decides now.
    fn decide(&mut self) -> Decision {
        if self.events.is_empty() {
            let body = Output::text(r#"{"kind":"start"}"#).content_type("application/json");
            let start = super::event(0, Kind::Start, &body);
            // It is not how a log with events begins: the state is not kept.
            return self.decided(&mut H::State::default(), &[start]);
        }
        let (mut state, folded) = self.kept.take().unwrap_or_default();
        let decision = self.decided(&mut state, &self.events[folded..]);
        let is_compared = self.steps < COMPARED_STEPS || self.steps.is_power_of_two();
        if folded > 0 && is_compared {
            let afresh = self.decided(&mut H::State::default(), &self.events);
            assert!(
                afresh == decision,
                "`decide` depends on something that is not in the log: after {} events it decided\n\
                 {decision:?}\nand on the same log, folded afresh,\n{afresh:?}",
                self.events.len()
            );
        }
        self.kept = Some((state, self.events.len()));
        decision
    }

    fn decided(&self, state: &mut H::State, events: &[Event]) -> Decision {
        // What an entry is folded into does not depend on the step that folds it.
        let folding = crate::Session { snapshot: 0, ..self.info.clone() };
        seeing(&folding, || events.iter().for_each(|event| H::fold(state, event)));
        seeing(&self.info, || H::decide(state))
    }
}

impl<H: Handler> fmt::Debug for Session<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("events", &self.events)
            .field("now", &self.now)
            .field("wakes_at", &self.wakes_at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Counts down from the number in the last event, and sleeps at 1.
    struct Countdown;

    impl Handler for Countdown {
        type State = (u64, Vec<(u64, Kind)>);

        fn fold((number, seen): &mut Self::State, event: &Event) {
            *number = event.json().unwrap_or(*number);
            seen.push((event.position(), event.kind()));
        }

        fn decide((number, seen): &Self::State) -> Decision {
            match number {
                0 => Decision::pause(format!("{seen:?}")),
                1 if seen.last().is_some_and(|(_, kind)| *kind != Kind::Wake) => {
                    Decision::sleep(Duration::from_secs(90), "one to go")
                }
                number => Decision::append(Output::json(&(number - 1))),
            }
        }
    }

    #[test]
    fn goes_on_until_it_rests() {
        let mut session = Session::<Countdown>::of([Output::json(&3)]);
        let turn = session.run();
        assert_eq!((turn.json::<u64>(), turn.reason()), (vec![2, 1], Some("one to go")));
        session.advance(Duration::from_secs(89));
        assert!(session.sleeps());
        session.advance(Duration::from_secs(1));
        let wake = session.events().last().unwrap();
        assert_eq!((wake.position(), wake.kind()), (4, Kind::Wake));
        let body = r#"{"kind":"wake","time":"2000-01-01T00:01:30.000Z"}"#;
        assert_eq!(wake.text().unwrap(), body);
        let turn = session.run();
        assert_eq!(turn.json::<u64>(), [0]);
        let seen = "[(0, Push), (1, Push), (2, Push), (4, Wake), (5, Push)]";
        assert_eq!(turn.reason(), Some(seen));
        session.push(Output::json(&0));
        assert_eq!(
            session.step().next(),
            &Next::Pause { reason: format!("{}, (7, Push)]", &seen[..seen.len() - 1]) }
        );
    }

    #[test]
    fn a_push_ends_a_sleep() {
        let mut session = Session::<Countdown>::of([Output::json(&1)]);
        assert_eq!(session.run().reason(), Some("one to go"));
        session.push(Output::json(&0));
        assert!(!session.sleeps());
        session.advance(Duration::from_secs(1_000));
        assert_eq!(session.events().len(), 2);
    }

    #[test]
    fn an_empty_log_shows_a_start() {
        let turn = Session::<Countdown>::new().run();
        assert_eq!(turn.reason(), Some("[(0, Start)]"));
    }

    /// Fails once it has said something.
    struct Failing;

    impl Handler for Failing {
        type State = u64;

        fn fold(count: &mut u64, _: &Event) {
            *count += 1;
        }

        fn decide(count: &u64) -> Decision {
            let said = Decision::append(Output::text("said"));
            if *count < 2 { said } else { said.and(Output::json(&Unprintable)) }
        }
    }

    struct Unprintable;

    impl serde::Serialize for Unprintable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no words"))
        }
    }

    #[test]
    fn a_step_that_fails_appends_nothing() {
        let mut session = Session::<Failing>::of([Output::text("go")]);
        let turn = session.run();
        assert_eq!(turn.failure(), Some("an output has no JSON form: no words"));
        assert_eq!((turn.outputs(), turn.reason()), (vec![Output::text("said")], None));
        assert_eq!((session.events().len(), turn.decisions().len()), (2, 2));
    }

    thread_local! {
        static ASKED: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts in a place of its own how often it was asked.
    struct Impure;

    impl Handler for Impure {
        type State = ();

        fn fold((): &mut (), _: &Event) {}

        fn decide((): &()) -> Decision {
            ASKED.set(ASKED.get() + 1);
            Decision::append(Output::json(&ASKED.get()))
        }
    }

    #[test]
    #[should_panic(expected = "depends on something that is not in the log: after 2 events")]
    fn an_impure_decide_is_found_out() {
        let _ = Session::<Impure>::of([Output::text("go")]).run();
    }

    /// Never rests.
    struct Endless;

    impl Handler for Endless {
        type State = ();

        fn fold((): &mut (), _: &Event) {}

        fn decide((): &()) -> Decision {
            Decision::append(Output::text("more"))
        }
    }

    #[test]
    #[should_panic(expected = "has not come to rest within 10000 steps")]
    fn an_endless_loop_ends() {
        let _ = Session::<Endless>::of([Output::text("go")]).run();
    }

    /// Says what session it runs on.
    struct Who;

    impl Handler for Who {
        type State = u64;

        fn fold(count: &mut u64, _: &Event) {
            *count += 1;
        }

        fn decide(count: &u64) -> Decision {
            let session = crate::session();
            let said = format!("{} {:?}", session.snapshot, session.metadata.get("team"));
            if *count > 2 { Decision::pause(said) } else { Decision::append(Output::text(said)) }
        }
    }

    #[test]
    fn shows_its_metadata_and_its_version() {
        let mut session = Session::<Who>::new().metadata("team", "core");
        session.push(Output::text("who?"));
        let turn = session.run();
        let said: Vec<&[u8]> =
            turn.decisions()[..2].iter().map(|d| d.outputs()[0].body()).collect();
        assert_eq!(said, [&br#"1 Some("core")"#[..], br#"2 Some("core")"#]);
        assert_eq!(turn.reason(), Some(r#"3 Some("core")"#));
        assert_eq!(crate::session().metadata, [].into());
    }
}
