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
    Attributes, Bucket, Digest, Draft, Entry, Environment, Error, Outgoing, SessionId, Snapshot,
    Target, Timestamp, TipLookup, object_store,
};

use crate::executor::{Clock, Sleep, give_way};
use crate::support::block_on;

/// How long what nothing refers to is kept. Long beside anything that an actor does in one go, and
/// short beside how long actors rest where there are collections.
pub const GRACE_MS: u64 = 3_600_000;
const GRACE: Duration = Duration::from_millis(GRACE_MS);
/// Actors rest until a multiple of this, so that they come back together.
const BELL_MS: u64 = GRACE_MS * 2 / 5;
/// After so many bells something is older than the grace window.
const COLLECTABLE_BELLS: u64 = 3;

/// Who does what in a schedule, and how much goes wrong.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many pushes each pusher makes.
    pub pushes: Vec<u32>,
    pub runners: u64,
    /// How many forks each forker makes.
    pub forks: Vec<u32>,
    /// How many sessions each remover removes.
    pub removes: Vec<u32>,
    /// How many collections each collector makes.
    pub collects: Vec<u32>,
    /// Of a thousand steps, this many send something elsewhere.
    pub sends: u32,
    /// Of a thousand steps, this many get something from outside.
    pub effects: u32,
    /// Of a thousand pushes, this many have an id.
    pub ids: u32,
    pub readers: u64,
    pub sessions: u64,
    /// Entries that each session starts with.
    pub prefilled: u64,
    /// Whether all that sessions start with is old, and old bodies lie about.
    pub old: bool,
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
            removes: if dice.below(4) == 0 { vec![1 + small(dice, 2)] } else { Vec::new() },
            collects: Vec::new(),
            sends: [0, 200, 600][usize::try_from(dice.below(3)).unwrap()],
            ids: [0, 500][usize::try_from(dice.below(2)).unwrap()],
            effects: [0, 300, 700][usize::try_from(dice.below(3)).unwrap()],
            readers: dice.below(2),
            sessions: 1 + dice.below(2),
            prefilled,
            old: false,
            rates,
            faults: small(dice, 60),
            crashes: dice.below(7),
            steps: 3 + small(dice, 12),
            pages: dice.below(2) == 0,
        }
    }
}

impl Plan {
    /// One with little but collections, and those who must not notice.
    pub fn draw_race(dice: &mut Dice) -> Self {
        let forks = usize::try_from(dice.below(3)).unwrap();
        Self {
            pushes: vec![1; 1 + usize::try_from(dice.below(2)).unwrap()],
            runners: 1,
            forks: vec![1; forks],
            removes: vec![1; forks.min(1)],
            collects: vec![2],
            sends: 0,
            ids: 0,
            effects: 300,
            readers: 0,
            sessions: 1,
            prefilled: if forks > 0 { 33 } else { 0 },
            old: true,
            rates: Rates::default(),
            faults: 0,
            crashes: dice.below(2),
            steps: 0,
            pages: true,
        }
    }

    /// One with collections: all rest for long, and come back at the same time.
    pub fn draw_with_collections(dice: &mut Dice) -> Self {
        let pushers = 2 + usize::try_from(dice.below(2)).unwrap();
        let plan = Self::draw(dice);
        Self {
            pushes: vec![9; pushers],
            forks: vec![3],
            removes: if dice.below(2) == 0 { vec![2] } else { Vec::new() },
            collects: if dice.below(3) == 0 { vec![8, 6] } else { vec![9] },
            prefilled: plan.prefilled.min(40),
            old: dice.below(2) == 0,
            steps: plan.steps.min(6),
            ..plan
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
    /// Reported as being there already.
    Held { session: SessionId },
    /// Reported as being of a session that was removed.
    Removed,
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
            Err(Error::SessionRemoved { .. }) => Self::Removed,
            Err(Error::Store { .. } | Error::OutboxTarget { .. }) => Self::NotDone,
            Err(other) => panic!("an append failed: {other}"),
        }
    }
}

/// What an actor wanted to append.
#[derive(Clone, Debug)]
pub enum Intent {
    Push { session: SessionId },
    Step(StepIntent),
    Fork { parent: SessionId, version: u64, digest: Digest },
}

/// A step as its runner sees it.
#[derive(Clone, Debug)]
pub struct StepIntent {
    pub session: SessionId,
    /// The version of the last step before it.
    pub basis: u64,
    /// The entries that it saw, by their marks.
    pub input: Vec<Digest>,
    /// What it sends elsewhere.
    pub sent: Vec<(Digest, Target)>,
    /// How many versions it tried to make.
    pub attempts: u32,
}

/// An append, in the order they were begun.
#[derive(Clone, Debug)]
pub struct Append {
    pub intent: Intent,
    /// What it appends, by its marks; no other append has them.
    pub bodies: Vec<Digest>,
    pub outcome: Outcome,
}

/// What tells an entry from all others, whatever session it is in: its body or, as large bodies may
/// be shared, its name.
pub fn mark(entry: &Entry) -> Digest {
    match (entry.data(), &entry.attributes().name) {
        (None, Some(name)) => Digest::of(name.as_bytes()),
        _ => entry.hash(),
    }
}

fn mark_of_draft(draft: &Draft) -> Digest {
    mark(&draft.build().unwrap())
}

/// Something that a runner got from outside for a step, in the order they were got.
#[derive(Clone, Debug)]
pub struct Effect {
    pub session: SessionId,
    /// Which of the handlers runs, and the version that its attempt began on.
    pub attempt: (u64, u64),
    /// Its place among those of the attempt.
    pub index: usize,
    /// The version that the runner knew then.
    pub known: u64,
}

/// A push with an id that is repeated until it is acknowledged.
#[derive(Clone)]
pub struct Pending {
    pub session: SessionId,
    pub id: String,
    pub drafts: Vec<Draft>,
    pub append: usize,
}

pub struct World {
    pub clock: Arc<Clock>,
    pub plan: Plan,
    pub history: Mutex<Vec<Append>>,
    pub effects: Mutex<Vec<Effect>>,
    /// What is left to do to each pusher, forker, remover and collector.
    pub left: Vec<AtomicU32>,
    /// The push that each pusher is repeating.
    pub pending: Mutex<Vec<Option<Pending>>>,
    /// Those of them that have not finished.
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
        let all = [&plan.pushes, &plan.forks, &plan.removes, &plan.collects];
        let left: Vec<AtomicU32> =
            all.into_iter().flatten().map(|left| AtomicU32::new(*left)).collect();
        let clock = Arc::new(Clock::new());
        let base = FaultyStore::new(Arc::new(InMemory::new()), Arc::new(Calm));
        let base = base.with_clock({
            let clock = clock.clone();
            move || clock.now_ms()
        });
        Self {
            clock,
            pending: Mutex::new(vec![None; plan.pushes.len()]),
            history: Mutex::default(),
            effects: Mutex::default(),
            open: AtomicUsize::new(left.len()),
            left,
            steps: AtomicU32::new(0),
            sessions: Mutex::default(),
            dice: Mutex::new(dice),
            faults: AtomicU32::new(plan.faults),
            bodies: AtomicU64::new(0),
            base,
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
        let mut sessions = self.sessions.lock().unwrap();
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }

    /// Whether there are collections, and so hours of rest.
    pub fn collects(&self) -> bool {
        !self.plan.collects.is_empty()
    }

    pub fn any_session(&self) -> SessionId {
        let sessions = self.sessions();
        sessions[usize::try_from(self.below(sessions.len() as u64)).unwrap()]
    }

    /// A large body that was stored long ago, and that nothing refers to, unless `age` is 0: then
    /// it is one that will be so.
    pub fn old_body(&self, age: u64) -> String {
        let era = (self.clock.now_ms() / BELL_MS).saturating_sub(age);
        format!("era {era} {} {}", self.below(3), "x".repeat(1100))
    }

    /// Makes all that is there old, and stores bodies that drafts will have.
    pub fn age(&self, bucket: &Bucket) {
        for _ in 0..3 {
            block_on(bucket.put_object(self.old_body(0).into())).unwrap();
        }
        self.clock.advance(COLLECTABLE_BELLS * BELL_MS);
    }

    /// Drafts that no other append makes: small ones, sometimes a large one or many. Where there
    /// are collections, large ones have bodies that are just old enough to be collected.
    pub fn drafts(&self, count: u64) -> Vec<Draft> {
        let draft = |_| {
            let number = self.bodies.fetch_add(1, Ordering::Relaxed);
            let large = self.below(if self.collects() { 3 } else { 12 }) == 0;
            let name = Some(format!("n{number}"));
            let attributes = Attributes { name, ..Attributes::default() };
            if large && self.collects() {
                return Draft::push(self.old_body(COLLECTABLE_BELLS), attributes);
            }
            let padding = if large { 1100 } else { self.below(60) };
            let padding = "x".repeat(usize::try_from(padding).unwrap());
            Draft::push(format!("body {number} {padding}"), attributes)
        };
        (0..count).map(draft).collect()
    }

    /// What a step sends elsewhere, to a few targets.
    pub fn outgoing(&self, session: SessionId) -> Vec<Outgoing> {
        if self.below(1000) >= u64::from(self.plan.sends) {
            return Vec::new();
        }
        let drafts = self.drafts(1 + self.below(3));
        let target = || match self.any_session() {
            _ if self.below(3) == 0 => Target::Fork,
            own if own == session => Target::Fork,
            other => Target::Session(other),
        };
        drafts.into_iter().map(|draft| Outgoing { draft, target: target() }).collect()
    }

    /// Writes down what an actor is about to append; the answer is where its outcome goes.
    pub fn begin(&self, intent: Intent, drafts: &[Draft]) -> usize {
        let bodies = drafts.iter().map(mark_of_draft).collect();
        let mut history = self.history.lock().unwrap();
        history.push(Append { intent, bodies, outcome: Outcome::Open });
        history.len() - 1
    }

    pub fn sent(outgoing: &[Outgoing]) -> Vec<(Digest, Target)> {
        outgoing.iter().map(|output| (mark_of_draft(&output.draft), output.target)).collect()
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
        let bucket = Bucket::new(store, tips, environment).with_grace(GRACE);
        Self { world: world.clone(), bucket, weather }
    }

    /// One that nothing happens to.
    pub fn calm(world: &Arc<World>) -> Bucket {
        let environment = Arc::new(Skewed { world: world.clone(), ahead_ms: 0 });
        Bucket::new(Arc::new(world.base.clone()), TipLookup::Probe, environment).with_grace(GRACE)
    }

    /// Where there are collections, rests for long; else for `ms`.
    pub async fn rest(&self, ms: u64) {
        if self.world.collects() && self.world.below(8) > 0 {
            let now_ms = self.world.clock.now_ms();
            self.sleep(BELL_MS - now_ms % BELL_MS + self.world.below(6)).await;
        } else {
            self.sleep(ms).await;
        }
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
