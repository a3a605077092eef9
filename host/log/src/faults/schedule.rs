//! What decides how an operation goes: chance from a seed, or a crash at a certain point.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt as _, ready};
use object_store::path::Path;

/// What happens to an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It goes through.
    Pass,
    /// An error, and nothing is done.
    Fail,
    /// It is done, and answered with an error.
    DoneButFails,
    /// Of a create: `AlreadyExists`, and nothing is done. S3 answers so, with status 409, to writes
    /// that meet.
    Conflict,
    /// Of a create: it is done, and answered with `AlreadyExists`. A client that repeats a create
    /// whose answer was lost is told so of its own bytes.
    DoneButExists,
    /// Of a create: an error, and it is done all the same, this many operations later.
    Late(u32),
    /// Of a body or a listing: it breaks off with an error.
    Cut,
    /// No answer ever, and nothing is done: what a process sees that dies before the operation.
    Hang,
    /// It is done, and never answered: what a process sees that dies after the operation.
    DoneButHangs,
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Puts if absent.
    Create,
    /// Puts in place of what is there.
    Replace,
    /// Reads a body or its head.
    Read,
    /// Lists.
    List,
    /// Deletes.
    Delete,
}

/// An operation that is about to happen.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// What it does.
    pub action: Action,
    /// Where; the folder of a listing.
    pub key: &'a Path,
}

/// What decides how operations go. Both methods may wait, to let others in.
pub trait Schedule: fmt::Debug + Send + Sync + 'static {
    /// Decides on an operation before it takes effect.
    fn before<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Fate>;

    /// Called when an operation has taken effect, or not, before it is answered.
    fn after<'a>(&'a self, _operation: Operation<'a>) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }
}

/// Lets everything through.
#[derive(Debug)]
pub struct Calm;

impl Schedule for Calm {
    fn before<'a>(&'a self, _operation: Operation<'a>) -> BoxFuture<'a, Fate> {
        ready(Fate::Pass).boxed()
    }
}

/// Random numbers that follow from a seed, the same on every machine (the generator is `SplitMix64`).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice that fall as `seed` says.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.bits() % limit }
    }

    /// True this many times in a thousand.
    pub fn per_mille(&mut self, chance: u32) -> bool {
        self.below(1000) < u64::from(chance)
    }
}

/// How often operations go wrong, each per thousand operations that it applies to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// [`Fate::Fail`], of creates.
    pub fail: u32,
    /// [`Fate::DoneButFails`], of creates.
    pub done_but_fails: u32,
    /// [`Fate::Conflict`].
    pub conflict: u32,
    /// [`Fate::DoneButExists`].
    pub done_but_exists: u32,
    /// [`Fate::Late`], by up to eight operations.
    pub late: u32,
    /// [`Fate::Fail`], of reads and listings.
    pub read_fail: u32,
    /// [`Fate::Cut`], of reads and listings.
    pub cut: u32,
    /// [`Fate::Fail`], of replacements and deletions.
    pub replace_fail: u32,
}

impl Rates {
    /// Of a thousand creates, this many go wrong, in all ways alike; no read does.
    #[must_use]
    pub fn creates(per_mille: u32) -> Self {
        let each = per_mille / 5;
        Self {
            fail: each,
            done_but_fails: each,
            conflict: each,
            done_but_exists: each,
            late: each,
            ..Self::default()
        }
    }

    /// Draws a fate.
    pub fn draw(&self, action: Action, dice: &mut Dice) -> Fate {
        let late = Fate::Late(u32::try_from(1 + dice.below(8)).unwrap_or(1));
        let chances: &[(u32, Fate)] = match action {
            Action::Create => &[
                (self.fail, Fate::Fail),
                (self.done_but_fails, Fate::DoneButFails),
                (self.conflict, Fate::Conflict),
                (self.done_but_exists, Fate::DoneButExists),
                (self.late, late),
            ],
            Action::Read | Action::List => &[(self.read_fail, Fate::Fail), (self.cut, Fate::Cut)],
            Action::Replace | Action::Delete => &[(self.replace_fail, Fate::Fail)],
        };
        let mut drawn = dice.below(1000);
        for (chance, fate) in chances {
            if drawn < u64::from(*chance) {
                return *fate;
            }
            drawn -= u64::from(*chance);
        }
        Fate::Pass
    }
}

/// Operations go wrong by chance, but never more than `in_a_row` one after the other.
#[derive(Debug)]
pub struct Seeded {
    rates: Rates,
    in_a_row: u32,
    state: Mutex<(Dice, u32)>,
}

impl Seeded {
    /// Fates drawn from a seed.
    #[must_use]
    pub fn new(seed: u64, rates: Rates, in_a_row: u32) -> Self {
        Self { rates, in_a_row, state: Mutex::new((Dice::new(seed), 0)) }
    }
}

impl Schedule for Seeded {
    fn before<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Fate> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (dice, faults) = &mut *state;
        let drawn = self.rates.draw(operation.action, dice);
        let fate = if *faults < self.in_a_row { drawn } else { Fate::Pass };
        *faults = match fate {
            // A read in between does not make a create that keeps failing a new one.
            Fate::Pass if operation.action != Action::Create => *faults,
            Fate::Pass => 0,
            _ => *faults + 1,
        };
        ready(fate).boxed()
    }
}

/// Whoever uses the store dies at one of its operations: that one is never answered.
#[derive(Debug)]
pub struct CrashAt {
    left: AtomicU64,
    done: bool,
}

impl CrashAt {
    /// Lets `operations` pass; the next one hangs, and takes effect before it does if `done`.
    #[must_use]
    pub fn new(operations: u64, done: bool) -> Self {
        Self { left: AtomicU64::new(operations), done }
    }
}

impl Schedule for CrashAt {
    fn before<'a>(&'a self, _operation: Operation<'a>) -> BoxFuture<'a, Fate> {
        let left =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let fate = match left {
            Ok(_) => Fate::Pass,
            Err(_) if self.done => Fate::DoneButHangs,
            Err(_) => Fate::Hang,
        };
        ready(fate).boxed()
    }
}
