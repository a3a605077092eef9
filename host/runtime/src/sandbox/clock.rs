//! Virtual time: what a guest sees of the clock.
//!
//! Nothing here looks at the machine's clocks. Both guest clocks are one: the time that a call
//! starts at, plus what has elapsed in it; and time elapses only when the guest looks at a clock or
//! waits.

use std::time::Duration;

use pugmark_log::Timestamp;

/// How far every look at a clock moves it, and the resolution that guests are told.
pub const LOOK: Duration = Duration::from_micros(1);

/// 2000-01-01T00:00:00Z, when typed handlers are instantiated.
const TYPED_START_MS: u64 = 946_684_800_000;

/// When a typed handler is instantiated: the same instant for all of them.
#[must_use]
pub fn instantiation_start() -> Timestamp {
    Timestamp::from_millis(TYPED_START_MS)
}

/// When a typed handler folds the entry at `position`: a second after the one before it, the first
/// a second after [`instantiation_start`].
#[must_use]
pub fn fold_start(position: u64) -> Timestamp {
    instantiation_start().plus_millis(position.saturating_add(1).saturating_mul(1000))
}

/// A guest's wall clock and monotonic clock.
#[derive(Debug)]
pub struct Clock {
    /// Where the monotonic clock reads zero, since 1970.
    origin: Duration,
    /// When the current call started, since 1970.
    start: Duration,
    /// What has passed in the current call.
    elapsed: Duration,
}

impl Clock {
    /// A clock at `start`, where its monotonic side reads zero.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        let start = Duration::from_millis(start.as_millis());
        Self { origin: start, start, elapsed: Duration::ZERO }
    }

    /// Moves the clock to `start` for the next call; what elapsed in the one before is forgotten,
    /// so that the time in a call depends on no other call.
    pub fn restart(&mut self, start: Timestamp) {
        self.start = Duration::from_millis(start.as_millis());
        self.elapsed = Duration::ZERO;
    }

    /// The wall clock, since 1970. A look.
    pub fn wall(&mut self) -> Duration {
        let now = self.start + self.elapsed;
        self.elapsed = self.elapsed.saturating_add(LOOK);
        now
    }

    /// The monotonic clock, in nanoseconds since the instantiation. A look.
    pub fn monotonic_ns(&mut self) -> u64 {
        let now = self.peek_ns();
        self.elapsed = self.elapsed.saturating_add(LOOK);
        now
    }

    /// Waits until the monotonic clock reads `deadline_ns`; not at all if it has passed.
    pub fn wait_until(&mut self, deadline_ns: u64) {
        let missing_ns = deadline_ns.saturating_sub(self.peek_ns());
        self.elapsed = self.elapsed.saturating_add(Duration::from_nanos(missing_ns));
    }

    fn peek_ns(&self) -> u64 {
        let since_origin = self.start.saturating_sub(self.origin) + self.elapsed;
        u64::try_from(since_origin.as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_look_moves_both_clocks() {
        let mut clock = Clock::starting_at(Timestamp::from_millis(1_764_515_782_007));
        assert_eq!(clock.wall(), Duration::from_millis(1_764_515_782_007));
        assert_eq!(clock.monotonic_ns(), 1_000);
        assert_eq!(clock.monotonic_ns(), 2_000);
        assert_eq!(clock.wall(), Duration::from_micros(1_764_515_782_007_003));
    }

    #[test]
    fn waiting_moves_both_clocks_and_never_back() {
        let mut clock = Clock::starting_at(Timestamp::from_millis(5_000));
        clock.wait_until(2_500_000_000);
        assert_eq!(clock.wall(), Duration::from_millis(7_500));
        clock.wait_until(1);
        assert_eq!(clock.monotonic_ns(), 2_500_001_000);
        clock.wait_until(u64::MAX);
        assert_eq!(clock.monotonic_ns(), u64::MAX);
        assert_eq!(clock.monotonic_ns(), u64::MAX);
    }

    #[test]
    fn a_call_sees_nothing_of_the_one_before() {
        let mut clock = Clock::starting_at(instantiation_start());
        clock.wait_until(10_000_000_000);
        clock.restart(fold_start(0));
        assert_eq!(clock.wall(), Duration::from_secs(946_684_801));
        clock.restart(fold_start(41));
        assert_eq!(clock.monotonic_ns(), 42_000_000_000);
    }

    #[test]
    fn a_step_before_the_origin_still_has_a_running_clock() {
        let mut clock = Clock::starting_at(instantiation_start());
        clock.restart(Timestamp::from_millis(0));
        assert_eq!(clock.wall(), Duration::ZERO);
        assert_eq!(clock.monotonic_ns(), 1_000);
    }
}
