//! What the actors of a schedule share: the store and how it fails, the clock, the dice, and the
//! history that is checked in the end.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use object_store::memory::InMemory;
use object_store::path::Path;
use pugmark_log::faults::{Action, Calm, Dice, Fate, FaultyStore, Operation, Rates, Schedule};
use pugmark_log::{
    Attributes, Bucket, Digest, Draft, Environment, Error, SessionId, Snapshot, Timestamp,
    TipLookup, object_store,
};

use crate::executor::{Clock, Sleep, give_way};

/// Who does what in a schedule, and how much goes wrong.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many pushes each pusher makes.
    pub pushes: Vec<u32>,
    pub runners: u64,
    /// How many forks each forker makes.
    pub forks: Vec<u32>,
    pub readers: u64,
    pub sessions: u64,
    /// Entries that each session starts with.
    pub prefilled: u64,
    pub rates: Rates,
    pub faults: u32,
    pub crashes: u64,
    /// Steps after which handlers only pause.
    pub steps: u32,
    pub pages: bool,
}

impl Plan {
    pub fn draw(dice: &mut Dice) -> Self {
        let small = |dice: &mut Dice, limit| u32::try_from(dice.below(limit)).unwrap();
        let rates = match dice.below(4) {
            0 => Rates::default(),
            1 => Rates { read_fail: 20, cut: 20, ..Rates::creates(100) },
            2 => Rates { read_fail: 100, cut: 50, ..Rates::creates(300) },
            _ => Rates::creates(800),
        };
        let prefilled = match dice.below(100) {
            0 => 1015 + dice.below(12),
            1..=30 => 24 + dice.below(10),
            _ => 0,
        };
        Self {
            pushes: (0..=dice.below(4)).map(|_| 1 + small(dice, 5)).collect(),
            runners: 1 + dice.below(3),
            forks: (0..dice.below(3)).map(|_| 1 + small(dice, 2)).collect(),
            readers: dice.below(2),
            sessions: 1 + dice.below(2),
            prefilled,
            rates,
            faults: small(dice, 60),
            crashes: dice.below(7),
            steps: 3 + small(dice, 12),
            pages: dice.below(2) == 0,
        }
    }
}

/// What came of an append.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Under way, or its actor crashed.
    Open,
    /// Acknowledged as this snapshot.
    Done { session: SessionId, version: u64, digest: Digest },
    /// Reported as not done.
    NotDone,
    /// Reported as lost to the step of this version.
    Superseded { version: u64 },
    /// Reported as unknown.
    Unknown,
}

impl Outcome {
    /// What a result says. Anything but an injected fault fails the schedule.
    pub fn of(result: &Result<Snapshot, Error>) -> Self {
        match result {
            Ok(made) => {
                Self::Done { session: made.session, version: made.version, digest: made.digest() }
            }
            Err(Error::Superseded { version, .. }) => Self::Superseded { version: *version },
            Err(Error::Unknown { .. }) => Self::Unknown,
            Err(Error::Store { .. }) => Self::NotDone,
            Err(other) => panic!("an append failed: {other}"),
        }
    }
}

/// What an actor wanted to append.
#[derive(Clone, Debug)]
pub enum Intent {
    Push,
    Step(StepIntent),
    Fork { parent: SessionId, version: u64, digest: Digest },
}

/// A step as its runner sees it.
#[derive(Clone, Debug)]
pub struct StepIntent {
    pub session: SessionId,
    /// The version of the last step before it.
    pub basis: u64,
    /// The hashes of the entries that it saw.
    pub input: Vec<Digest>,
    /// How many versions it tried to make.
    pub attempts: u32,
}

/// An append, in the order they were begun.
#[derive(Clone, Debug)]
pub struct Append {
    pub intent: Intent,
    /// The hashes of what it appends; no other append has them.
    pub bodies: Vec<Digest>,
    pub outcome: Outcome,
}

pub struct World {
    pub clock: Arc<Clock>,
    pub plan: Plan,
    pub history: Mutex<Vec<Append>>,
    /// Pushes and forks that are left to each pusher and forker.
    pub left: Vec<AtomicU32>,
    /// Pushers and forkers that have not finished.
    pub open: AtomicUsize,
    pub steps: AtomicU32,
    sessions: Mutex<Vec<SessionId>>,
    dice: Mutex<Dice>,
    faults: AtomicU32,
    bodies: AtomicU64,
    base: FaultyStore,
}

impl World {
    pub fn new(plan: Plan, dice: Dice) -> Self {
        let left: Vec<AtomicU32> =
            plan.pushes.iter().chain(&plan.forks).map(|left| AtomicU32::new(*left)).collect();
        Self {
            clock: Arc::new(Clock::new()),
            history: Mutex::default(),
            open: AtomicUsize::new(left.len()),
            left,
            steps: AtomicU32::new(0),
            sessions: Mutex::default(),
            dice: Mutex::new(dice),
            faults: AtomicU32::new(plan.faults),
            bodies: AtomicU64::new(0),
            base: FaultyStore::new(Arc::new(InMemory::new()), Arc::new(Calm)),
            plan,
        }
    }

    /// The store without faults.
    pub fn base(&self) -> &FaultyStore {
        &self.base
    }

    pub fn below(&self, limit: u64) -> u64 {
        self.dice.lock().unwrap().below(limit)
    }

    pub fn sessions(&self) -> Vec<SessionId> {
        self.sessions.lock().unwrap().clone()
    }

    pub fn add_session(&self, session: SessionId) {
        self.sessions.lock().unwrap().push(session);
    }

    pub fn any_session(&self) -> SessionId {
        let sessions = self.sessions();
        sessions[usize::try_from(self.below(sessions.len() as u64)).unwrap()]
    }

    /// Drafts that no other append makes: small ones, sometimes a large one or many.
    pub fn drafts(&self, count: u64) -> Vec<Draft> {
        let draft = |_| {
            let number = self.bodies.fetch_add(1, Ordering::Relaxed);
            let padding = if self.below(12) == 0 { 1100 } else { self.below(60) };
            let padding = "x".repeat(usize::try_from(padding).unwrap());
            Draft::push(format!("body {number} {padding}"), Attributes::default())
        };
        (0..count).map(draft).collect()
    }

    /// Writes down what an actor is about to append; the answer is where its outcome goes.
    pub fn begin(&self, intent: Intent, drafts: &[Draft]) -> usize {
        let bodies = drafts.iter().map(|draft| Digest::of(&draft.body)).collect();
        let mut history = self.history.lock().unwrap();
        history.push(Append { intent, bodies, outcome: Outcome::Open });
        history.len() - 1
    }

    pub fn end(&self, append: usize, outcome: Outcome) {
        self.history.lock().unwrap()[append].outcome = outcome;
    }

    fn fate(&self, action: Action) -> Fate {
        let fate = self.plan.rates.draw(action, &mut self.dice.lock().unwrap());
        if fate == Fate::Pass {
            return fate;
        }
        let left = self
            .faults
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_ok() { fate } else { Fate::Pass }
    }
}

/// One client of the store: with its own clock, which is off by a little, and its own faults.
#[derive(Clone)]
pub struct Actor {
    pub world: Arc<World>,
    pub bucket: Bucket,
    pub weather: Arc<Weather>,
}

impl Actor {
    pub fn new(world: &Arc<World>) -> Self {
        let weather = Arc::new(Weather { world: world.clone(), tried: Mutex::default() });
        let store = Arc::new(world.base.with_schedule(weather.clone()));
        let tips = if world.plan.pages { TipLookup::Page(store.clone()) } else { TipLookup::Probe };
        let environment = Arc::new(Skewed { world: world.clone(), ahead_ms: world.below(50) });
        Self { world: world.clone(), bucket: Bucket::new(store, tips, environment), weather }
    }

    /// One that nothing happens to.
    pub fn calm(world: &Arc<World>) -> Bucket {
        let environment = Arc::new(Skewed { world: world.clone(), ahead_ms: 0 });
        Bucket::new(Arc::new(world.base.clone()), TipLookup::Probe, environment)
    }

    pub async fn sleep(&self, ms: u64) {
        self.bucket.environment().sleep(Duration::from_millis(ms)).await;
    }
}

/// Lets others in before and after each operation takes effect, and makes some of them fail.
pub struct Weather {
    world: Arc<World>,
    tried: Mutex<(u32, Option<Path>)>,
}

impl Weather {
    /// How many versions this client has tried to make; repetitions of one write count once.
    pub fn versions_tried(&self) -> u32 {
        self.tried.lock().unwrap().0
    }

    fn note(&self, operation: Operation<'_>) {
        if operation.action == Action::Create && operation.key.as_ref().contains("/snapshots/") {
            let mut tried = self.tried.lock().unwrap();
            if tried.1.as_ref() != Some(operation.key) {
                *tried = (tried.0 + 1, Some(operation.key.clone()));
            }
        }
    }
}

impl std::fmt::Debug for Weather {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Weather")
    }
}

impl Schedule for Weather {
    fn before<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Fate> {
        async move {
            give_way().await;
            self.note(operation);
            self.world.fate(operation.action)
        }
        .boxed()
    }

    fn after<'a>(&'a self, _operation: Operation<'a>) -> BoxFuture<'a, ()> {
        give_way().boxed()
    }
}

struct Skewed {
    world: Arc<World>,
    ahead_ms: u64,
}

impl Environment for Skewed {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.world.clock.now_ms() + self.ahead_ms)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut dice = self.world.dice.lock().unwrap();
        bytes.fill_with(|| dice.bits().to_le_bytes()[0]);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let ms = u64::try_from(duration.as_millis()).unwrap();
        let deadline_ms = self.world.clock.now_ms() + ms;
        Sleep { clock: self.world.clock.clone(), deadline_ms }.boxed()
    }
}
