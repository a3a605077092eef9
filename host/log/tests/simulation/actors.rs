//! Who takes part: pushers, runners of steps, forkers, removers, collectors and readers. Each goes on from the store
//! alone, so that one that crashed is replaced by another like it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::TryStreamExt as _;
use pugmark_log::{
    Collect, Destination, Digest, Entry, Error, Pushed, SessionId, Snapshot, State, Step, StepEnd,
};
use serde_json::value::RawValue;

use crate::effects::Attempt;
use crate::world::{Actor, GRACE_MS, Intent, Outcome, Pending, StepIntent, World, mark};

/// Makes the pushes that are left, then counts itself out.
pub async fn pusher(world: Arc<World>, index: usize) {
    let actor = Actor::new(&world);
    let mut hint = None;
    loop {
        let pending = world.pending.lock().unwrap()[index].clone();
        if let Some(pending) = pending {
            push_once(&actor, index, &pending).await;
            continue;
        }
        if !take(&world, index) {
            break;
        }
        let session = world.any_session();
        let count = if world.below(30) == 0 { 40 } else { 1 + world.below(3) };
        let drafts = world.drafts(count);
        let append = world.begin(Intent::Push { session }, &drafts);
        if world.below(1000) < u64::from(world.plan.ids) {
            let id = format!("push \"{append}\"");
            let pending = Pending { session, id, drafts, append };
            world.pending.lock().unwrap()[index] = Some(pending);
            continue;
        }
        let known = hint.filter(|(known, _)| *known == session).map(|(_, version)| version);
        let result = actor.bucket.push(&session, known, &drafts).await;
        world.end(append, Outcome::of(&result));
        hint = result.ok().map(|made| (session, made.version));
        if world.collects() {
            // As a push does that dies before it commits.
            tolerate(actor.bucket.put_object(world.old_body(0).into()).await);
            actor.rest(world.below(30)).await;
        } else if world.below(2) == 0 {
            actor.sleep(world.below(30)).await;
        }
    }
    world.open.fetch_sub(1, Ordering::Relaxed);
}

/// Pushes what a pusher is repeating; whoever is acknowledged ends that.
async fn push_once(actor: &Actor, index: usize, pending: &Pending) {
    let world = &actor.world;
    let Pending { session, id, drafts, append } = pending;
    let outcome = match actor.bucket.push_once(session, None, id, drafts).await {
        Ok(Pushed { repeated: true, .. }) => Outcome::Held { session: *session },
        Ok(Pushed { snapshot, .. }) => Outcome::of(&Ok(snapshot)),
        Err(Error::SessionRemoved { .. }) => Outcome::Removed,
        Err(Error::Unknown { .. } | Error::Store { .. }) => return,
        Err(other) => panic!("a push failed: {other}"),
    };
    let slot = &mut world.pending.lock().unwrap()[index];
    if slot.as_ref().is_some_and(|now| now.append == *append) {
        *slot = None;
        world.end(*append, outcome);
    }
}

/// Forks what there is, or starts something new, then counts itself out.
pub async fn forker(world: Arc<World>, index: usize) {
    let actor = Actor::new(&world);
    while take(&world, index) {
        actor.rest(world.below(100)).await;
        let Some(tip) = tolerate(actor.bucket.tip(&world.any_session(), None).await) else {
            continue;
        };
        let version = world.below(tip.version + 1);
        let found = actor.bucket.snapshot_named(&tip.session, version).await;
        let Some(parent) = tolerate(found) else { continue };
        let seed = world.drafts(world.below(3));
        let digest = parent.digest();
        let intent = Intent::Fork { parent: parent.session, version, digest };
        let append = world.begin(intent, &seed);
        let result = actor.bucket.fork(&parent, &seed).await;
        world.end(append, Outcome::of(&result));
        if let Ok(child) = result {
            world.add_session(child.session);
        }
    }
    world.open.fetch_sub(1, Ordering::Relaxed);
}

/// Removes sessions, then counts itself out.
pub async fn remover(world: Arc<World>, index: usize) {
    let actor = Actor::new(&world);
    while take(&world, index) {
        actor.rest(world.below(200)).await;
        match actor.bucket.remove(&world.any_session()).await {
            Ok(_) | Err(Error::Unknown { .. } | Error::Store { .. }) => {}
            Err(other) => panic!("a removal failed: {other}"),
        }
    }
    world.open.fetch_sub(1, Ordering::Relaxed);
}

/// Collects, then counts itself out.
pub async fn collector(world: Arc<World>, index: usize) {
    let actor = Actor::new(&world);
    while take(&world, index) {
        let dry_run = world.below(8) == 0;
        tolerate(actor.bucket.collect(Collect { dry_run }).try_collect::<Vec<_>>().await);
        actor.rest(GRACE_MS / 2).await;
    }
    world.open.fetch_sub(1, Ordering::Relaxed);
}

/// Whether there is one more to make.
fn take(world: &World, index: usize) -> bool {
    let left = &world.left[index];
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// Makes steps until all sessions are at rest and nobody is left to change that.
pub async fn runner(world: Arc<World>) {
    let actor = Actor::new(&world);
    loop {
        let open = world.open.load(Ordering::Relaxed);
        let mut quiet = true;
        for session in world.sessions() {
            quiet &= visit(&actor, &session, open).await;
        }
        if quiet && open == 0 {
            return;
        }
        if quiet {
            actor.rest(if world.collects() { GRACE_MS / 4 } else { 5 }).await;
        }
        let index = world.below(world.plan.pushes.len() as u64);
        let index = usize::try_from(index).unwrap();
        let pending = world.pending.lock().unwrap()[index].clone();
        if let Some(pending) = pending.filter(|_| world.below(4) == 0) {
            push_once(&actor, index, &pending).await;
        }
    }
}

/// Does what a session waits for; true if that is nothing.
async fn visit(actor: &Actor, session: &SessionId, open: usize) -> bool {
    let world = &actor.world;
    let tip = match actor.bucket.tip(session, None).await {
        Err(Error::SessionRemoved { .. }) => return true,
        read => tolerate(read),
    };
    let Some(tip) = tip else { return false };
    if !tip.last.outbox.is_empty() {
        deliver(actor, tip).await;
        return false;
    }
    match tip.state() {
        State::AtRest if open == 0 || world.below(8) > 0 => return true,
        State::AtRest | State::Due => step(actor, tip).await,
        State::Sleeping { until } => {
            let now = actor.bucket.environment().now();
            actor.sleep(until.as_millis().saturating_sub(now.as_millis())).await;
            match actor.bucket.wake(session, Some(tip.version)).await {
                Ok(_)
                | Err(Error::Unknown { .. } | Error::Store { .. } | Error::SessionRemoved { .. }) =>
                    {}
                Err(other) => panic!("a wake failed: {other}"),
            }
        }
    }
    false
}

/// Delivers an outbox, and sometimes again when it wakes up, long after others have.
async fn deliver(actor: &Actor, tip: Snapshot) {
    let world = &actor.world;
    let mut times = 1 + world.below(2);
    while times > 0 {
        if world.below(3) == 0 {
            actor.sleep(world.below(60)).await;
        }
        match actor.bucket.deliver(tip.clone()).await {
            Ok(now) => {
                assert!(now.last.version > tip.last.version || now.last.outbox.is_empty());
                times -= 1;
            }
            Err(Error::Unknown { .. } | Error::Store { .. }) => {}
            Err(Error::SessionRemoved { .. }) => return,
            Err(other) => panic!("a delivery failed: {other}"),
        }
    }
    for item in &tip.last.outbox {
        if let Destination::Fork { child } = item.to {
            world.add_session(child);
        }
    }
}

/// Reads the log, gets something from outside, decides, and commits, taking its time in between.
async fn step(actor: &Actor, tip: Snapshot) {
    let world = &actor.world;
    let Some(mut attempt) = Attempt::begin(actor, tip).await else { return };
    let basis = attempt.basis.clone();
    let log = actor.bucket.entries(&basis.log, 0..basis.log.count(), None);
    let Some(input) = tolerate(log.try_collect::<Vec<Entry>>().await) else { return };
    if world.below(2) == 0 {
        actor.sleep(world.below(40)).await;
    }
    if !attempt.get_effects(actor).await {
        return;
    }
    let spent = world.steps.fetch_add(1, Ordering::Relaxed) >= world.plan.steps;
    let outputs = world.drafts(if spent { 0 } else { world.below(4) });
    let outbox = if spent { Vec::new() } else { world.outgoing(basis.session) };
    let end = match world.below(5) {
        _ if spent => StepEnd::Pause,
        0 => StepEnd::Pause,
        1 => StepEnd::Sleep(world.below(200)),
        _ => StepEnd::Continue,
    };
    let intent = StepIntent {
        session: basis.session,
        basis: basis.last.version,
        input: input.iter().map(mark).collect(),
        sent: World::sent(&outbox),
        attempts: 0,
    };
    let append = world.begin(Intent::Step(intent), &outputs);
    let record = RawValue::from_string(attempt.record(append)).unwrap();
    let step = Step { basis, outputs, outbox, end, record: Some(record) };
    let before = actor.weather.versions_tried();
    let result = actor.bucket.commit_step_on(&step, attempt.known).await;
    let attempts = actor.weather.versions_tried() - before;
    if let Intent::Step(intent) = &mut world.history.lock().unwrap()[append].intent {
        intent.attempts = attempts;
    }
    world.end(append, Outcome::of(&result));
}

/// Looks at sessions again and again: tips never go back, and what was read once stays.
pub async fn reader(world: Arc<World>) {
    let actor = Actor::new(&world);
    let mut seen: BTreeMap<(SessionId, u64), Digest> = BTreeMap::new();
    let mut newest: BTreeMap<SessionId, u64> = BTreeMap::new();
    while world.open.load(Ordering::Relaxed) > 0 {
        if world.collects() {
            actor.rest(GRACE_MS / 8).await;
        } else {
            actor.sleep(1 + world.below(20)).await;
        }
        let session = world.any_session();
        let Some(tip) = tolerate(actor.bucket.tip(&session, None).await) else { continue };
        let known = newest.entry(session).or_default();
        assert!(tip.version >= *known, "the tip of {session} went back to {}", tip.version);
        *known = tip.version;
        let digest = *seen.entry((session, tip.version)).or_insert(tip.digest());
        assert_eq!(digest, tip.digest(), "version {} of {session} changed", tip.version);
        let log = actor.bucket.entries(&tip.log, 0..tip.log.count(), None);
        if let Some(entries) = tolerate(log.try_collect::<Vec<Entry>>().await) {
            assert_eq!(entries.len() as u64, tip.log.count());
        }
    }
}

/// What was read, unless a fault kept it from being read, or its session was removed.
pub fn tolerate<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Store { .. } | Error::SessionRemoved { .. }) => None,
        Err(other) => panic!("a read failed: {other}"),
    }
}
