//! A seeded simulation of many clients on one bucket: writers, runners, forkers, removers, collectors
//! and readers; crashes between any two operations; a store that fails, answers wrongly and answers late.
//!
//! Everything follows from a seed. `PUGMARK_SIM_SCHEDULES` is how many schedules each test runs,
//! `PUGMARK_SIM_SEED` the seed of the first; without it, another one is taken each time, and
//! printed. A schedule that fails prints how to run it alone.

mod actors;
mod checks;
mod effects;
mod executor;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the simulation has an environment of its own")]
mod support;
mod world;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt as _;
use pugmark_log::Digest;
use pugmark_log::faults::{Dice, Rates};

use executor::Task;
use support::block_on;
use world::{Actor, Intent, Outcome, Plan, World};

const SCHEDULES: u64 = 3_000;

#[expect(clippy::disallowed_methods, reason = "only here does the environment come in")]
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Creates the sessions of a plan and what they start with.
fn prepare(world: &Arc<World>) {
    let calm = Actor::calm(world);
    for _ in 0..world.plan.sessions {
        let started = block_on(calm.start(Some("agent".into()), BTreeMap::new())).unwrap();
        if world.plan.prefilled > 0 {
            let drafts = world.drafts(world.plan.prefilled);
            let append = world.begin(Intent::Push { session: started.session }, &drafts);
            let result = block_on(calm.push(&started.session, None, &drafts));
            world.end(append, Outcome::of(&result));
        }
        world.add_session(started.session);
    }
    if world.plan.old {
        world.age(&calm);
    }
}

fn tasks(world: &Arc<World>) -> Vec<Task> {
    let mut tasks = Vec::new();
    let plan = &world.plan;
    let kinds = [plan.pushes.len(), plan.forks.len(), plan.removes.len(), plan.collects.len()];
    let kinds = kinds.into_iter().enumerate().flat_map(|(kind, count)| vec![kind; count]);
    for (index, kind) in kinds.enumerate() {
        let world = world.clone();
        tasks.push(Task::new(move || match kind {
            0 => actors::pusher(world.clone(), index).boxed(),
            1 => actors::forker(world.clone(), index).boxed(),
            2 => actors::remover(world.clone(), index).boxed(),
            _ => actors::collector(world.clone(), index).boxed(),
        }));
    }
    for _ in 0..world.plan.runners {
        let world = world.clone();
        tasks.push(Task::new(move || actors::runner(world.clone()).boxed()));
    }
    for _ in 0..world.plan.readers {
        let world = world.clone();
        tasks.push(Task::new(move || actors::reader(world.clone()).boxed()));
    }
    tasks
}

/// Runs the schedule of a plan and checks it.
fn simulate(plan: Plan, dice: &mut Dice) -> Arc<World> {
    let crashes = plan.crashes;
    let world = Arc::new(World::new(plan, Dice::new(dice.bits())));
    prepare(&world);
    executor::run(&world.clock, &mut tasks(&world), Dice::new(dice.bits()), crashes);
    // The checks take no fault and no pause: what they await is ready.
    block_on(checks::all(&world));
    world
}

fn simulate_seed(seed: u64, draw: fn(&mut Dice) -> Plan) -> Arc<World> {
    let mut dice = Dice::new(seed);
    simulate(draw(&mut dice), &mut dice)
}

/// Simulates schedules of the plans that `draw` draws, on all processors.
fn simulate_many(test: &str, schedules: u64, draw: fn(&mut Dice) -> Plan) {
    let schedules = setting("PUGMARK_SIM_SCHEDULES").unwrap_or(schedules);
    let first = setting("PUGMARK_SIM_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 16);
    eprintln!("simulating {schedules} schedules from seed {first}");
    let (next, appends) = (AtomicU64::new(0), AtomicU64::new(0));
    let failing = AtomicU64::new(u64::MAX);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= schedules || failing.load(Ordering::Relaxed) < u64::MAX {
                        return;
                    }
                    let seed = first + index;
                    match catch_unwind(AssertUnwindSafe(|| simulate_seed(seed, draw))) {
                        Ok(world) => {
                            let made = world.history.lock().unwrap().len() as u64;
                            appends.fetch_add(made, Ordering::Relaxed);
                        }
                        Err(_) => {
                            eprintln!("seed {seed}: {:?}", draw(&mut Dice::new(seed)));
                            failing.fetch_min(seed, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let failing = failing.into_inner();
    assert_eq!(
        failing,
        u64::MAX,
        "run it alone: PUGMARK_SIM_SEED={failing} PUGMARK_SIM_SCHEDULES=1 \
         cargo test -p pugmark-log --test simulation {test}"
    );
    eprintln!("{} appends, pushes, steps and forks", appends.into_inner());
}

#[test]
fn the_invariants_hold_in_every_schedule() {
    simulate_many("the_invariants", SCHEDULES, Plan::draw);
}

#[test]
fn the_invariants_hold_where_others_collect() {
    simulate_many("others_collect", SCHEDULES / 20, Plan::draw_with_collections);
}

#[test]
fn nobody_notices_a_collection() {
    simulate_many("nobody_notices", SCHEDULES, Plan::draw_race);
}

#[test]
fn a_seed_gives_one_schedule() {
    let trace = |seed| {
        let draw = if seed % 5 == 0 { Plan::draw_with_collections } else { Plan::draw };
        let world = simulate_seed(seed, draw);
        let writes = world.base().writes();
        Digest::of(format!("{writes:?} {}", world.clock.now_ms()).as_bytes())
    };
    for seed in 0..20 {
        assert_eq!(trace(seed), trace(seed), "seed {seed}");
    }
    assert_ne!(trace(0), trace(1));
}

/// Invariant 6: pushers that never end keep no step from being committed.
#[test]
fn steps_are_committed_while_others_push() {
    let mut most = 0;
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let plan = Plan {
            pushes: vec![60; 6],
            runners: 1,
            forks: Vec::new(),
            removes: Vec::new(),
            collects: Vec::new(),
            sends: 100,
            ids: 100,
            effects: 300,
            readers: 0,
            sessions: 1,
            prefilled: 20,
            old: false,
            rates: Rates::default(),
            faults: 0,
            crashes: 0,
            steps: 200,
            pages: seed % 2 == 0,
        };
        let world = simulate(plan, &mut dice);
        for append in world.history.lock().unwrap().iter() {
            if let Intent::Step(intent) = &append.intent {
                most = most.max(intent.attempts);
            }
        }
    }
    eprintln!("a step took up to {most} attempts");
    assert!(most > 1, "nobody was in the way");
    assert!(most <= checks::MOST_ATTEMPTS / 2, "a step took {most} attempts");
}
