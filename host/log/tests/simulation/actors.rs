//! Who takes part: pushers, runners of steps, forkers and readers. Each goes on from the store
//! alone, so that one that crashed is replaced by another like it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::TryStreamExt as _;
use pugmark_log::{Digest, Entry, Error, SessionId, Snapshot, State, Step, StepEnd};
use serde_json::value::RawValue;

use crate::world::{Actor, Intent, Outcome, StepIntent, World};

/// Makes the pushes that are left, then counts itself out.
pub async fn pusher(world: Arc<World>, index: usize) {
    let actor = Actor::new(&world);
    let mut hint = None;
    while take(&world, index) {
        if world.below(2) == 0 {
            actor.sleep(world.below(30)).await;
        }
        let session = world.any_session();
        let count = if world.below(30) == 0 { 40 } else { 1 + world.below(3) };
        let drafts = world.drafts(count);
        let append = world.begin(Intent::Push, &drafts);
        let known = hint.filter(|(known, _)| *known == session).map(|(_, version)| version);
        let result = actor.bucket.push(&session, known, &drafts).await;
        world.end(append, Outcome::of(&result));
        hint = result.ok().map(|made| (session, made.version));
    }
    world.open.fetch_sub(1, Ordering::Relaxed);
}

/// Forks what there is, or starts something new, then counts itself out.
pub async fn forker(world: Arc<World>, index: usize) {
    let actor = Actor::new(&world);
    while take(&world, index) {
        actor.sleep(world.below(100)).await;
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
            actor.sleep(5).await;
        }
    }
}

/// Does what a session waits for; true if that is nothing.
async fn visit(actor: &Actor, session: &SessionId, open: usize) -> bool {
    let world = &actor.world;
    let Some(tip) = tolerate(actor.bucket.tip(session, None).await) else { return false };
    match tip.state() {
        State::AtRest if open == 0 || world.below(8) > 0 => return true,
        State::AtRest | State::Due => step(actor, tip).await,
        State::Sleeping { until } => {
            let now = actor.bucket.environment().now();
            actor.sleep(until.as_millis().saturating_sub(now.as_millis())).await;
            match actor.bucket.wake(session, Some(tip.version)).await {
                Ok(_) | Err(Error::Unknown { .. } | Error::Store { .. }) => {}
                Err(other) => panic!("a wake failed: {other}"),
            }
        }
    }
    false
}

/// Reads the log, decides, and commits, taking its time in between.
async fn step(actor: &Actor, basis: Snapshot) {
    let world = &actor.world;
    let log = actor.bucket.entries(&basis.log, 0..basis.log.count(), None);
    let Some(input) = tolerate(log.try_collect::<Vec<Entry>>().await) else { return };
    if world.below(2) == 0 {
        actor.sleep(world.below(40)).await;
    }
    let spent = world.steps.fetch_add(1, Ordering::Relaxed) >= world.plan.steps;
    let outputs = world.drafts(if spent { 0 } else { world.below(4) });
    let end = match world.below(5) {
        _ if spent => StepEnd::Pause,
        0 => StepEnd::Pause,
        1 => StepEnd::Sleep(world.below(200)),
        _ => StepEnd::Continue,
    };
    let intent = StepIntent {
        session: basis.session,
        basis: basis.last.version,
        input: input.iter().map(Entry::hash).collect(),
        attempts: 0,
    };
    let append = world.begin(Intent::Step(intent), &outputs);
    let record = RawValue::from_string(format!("{{\"append\":{append}}}")).unwrap();
    let step = Step { basis, outputs, end, record: Some(record) };
    let before = actor.weather.versions_tried();
    let result = actor.bucket.commit_step(&step).await;
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
        actor.sleep(1 + world.below(20)).await;
    }
}

/// What was read, unless a fault kept it from being read.
fn tolerate<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Store { .. }) => None,
        Err(other) => panic!("a read failed: {other}"),
    }
}
