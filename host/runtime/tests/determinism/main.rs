//! The same component and the same log under other compilers, optimisations and layouts of memory:
//! the bucket that comes out has to be the same, byte for byte, and has to replay under all of them.
//!
//! What these tests find is the first table of `docs/determinism.md`. A table that is not the one in
//! the file fails them; with `PUGMARK_BLESS=1` they write it instead.

mod document;
mod guests;
mod session;
mod variants;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread;

use pugmark_runtime::replay::{Options, Outcome};

use document::Table;
use guests::{Guest, guests};
use session::{Instances, Recorded, record, replayed};
use variants::{VARIANTS, Variant};

/// What each guest's sessions came to under each variant, by their places.
type Cells = BTreeMap<(usize, usize), String>;

#[test]
fn the_same_component_on_the_same_log_gives_the_same_bytes() {
    let guests = guests();
    let cells = Mutex::new(Cells::new());
    let next = Mutex::new(0..guests.len());
    let work = || {
        while let Some(row) = { next.lock().unwrap().next() } {
            let found = compare(&guests[row]);
            let mut cells = cells.lock().unwrap();
            for (column, cell) in found.into_iter().enumerate() {
                cells.insert((row, column), cell);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZeroUsize::get) {
            scope.spawn(work);
        }
    });
    let cells = cells.into_inner().unwrap();
    let mut table = Table::new("guest", VARIANTS.iter().map(|variant| variant.letter));
    for (row, guest) in guests.iter().enumerate() {
        let of_row = (0..VARIANTS.len()).map(|column| cells[&(row, column)].clone());
        table.row(guest.name, guest.bytes().map(|_| of_row.collect()));
    }
    let wrong: Vec<_> = cells.iter().filter(|(_, cell)| cell.contains("differ")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    document::check("engines", &format!("{}\n{table}", variants::legend()));
}

/// What a guest's sessions came to under each variant.
fn compare(guest: &Guest) -> Vec<String> {
    let Some(bytes) = guest.bytes() else {
        return VARIANTS.iter().map(|_| "–".to_owned()).collect();
    };
    let first = record(guest, &bytes, &VARIANTS[0], Instances::Kept);
    VARIANTS.iter().map(|variant| cell(guest, &bytes, &first, variant)).collect()
}

/// The variants under which sessions are also replayed cold, some steps at a time.
const COLD: &str = "AD";

fn cell(guest: &Guest, bytes: &bytes::Bytes, first: &Recorded, variant: &Variant) -> String {
    if !guest.under.contains(variant.letter) {
        return "–".to_owned();
    }
    let recorded = record(guest, bytes, variant, Instances::Kept);
    if let Some(what) = recorded.difference(first) {
        return format!("differs: {what}");
    }
    // What is recorded under the first variant is what is recorded under this one: so it is enough
    // that the first variant's sessions replay under this one.
    let manners: &[(bool, usize)] =
        if COLD.contains(variant.letter) { &[(false, 1), (true, 4)] } else { &[(false, 1)] };
    for &(cold, jobs) in manners {
        let jobs = NonZeroUsize::new(jobs).unwrap();
        let options = || Options { cold, jobs, ..Options::default() };
        for report in replayed(first, variant, options) {
            if report.outcome() != Outcome::Identical || report.identical == 0 {
                return format!("replay differs (cold: {cold}): {report:?}");
            }
        }
    }
    "same".to_owned()
}

/// The answers of guests that no compiler makes: the same everywhere, and what they have always been.
const ANSWERS: [(&str, &str); 3] = [
    ("floats", "sha256:2ea529748a9737bf26c8dce53656ccd48f37924da4de477ef693592883828224"),
    ("relaxed-simd", "sha256:1020226d1283124200f2f58e1bedf846c2a1c30366c672f7ab3a4ab001599cc0"),
    ("growth", "sha256:cd829f7ed28ba51efe46aa5bafe59d051f716f2aca19a51fc5692a31e447c66a"),
];

#[test]
fn answers_are_those_of_this_abi() {
    let mut found = Vec::new();
    for guest in guests().into_iter().filter(Guest::is_text) {
        let recorded = record(&guest, &guest.bytes().unwrap(), &VARIANTS[0], Instances::Kept);
        assert_eq!(recorded.failures(), [""; 0], "{}", guest.name);
        found.push((guest.name, recorded.answers().to_string()));
    }
    let found: Vec<_> = found.iter().map(|(name, digest)| (*name, digest.as_str())).collect();
    assert_eq!(found, ANSWERS);
}

/// Records say at which version an instance began, so buckets are not the same; logs are.
#[test]
fn an_instance_that_is_kept_writes_the_log_that_fresh_ones_write() {
    for guest in guests().into_iter().filter(|guest| ["triage", "counter"].contains(&guest.name)) {
        let bytes = guest.bytes().unwrap();
        for variant in VARIANTS.iter().filter(|variant| COLD.contains(variant.letter)) {
            let recorded = |instances| record(&guest, &bytes, variant, instances).answers();
            assert_eq!(recorded(Instances::Kept), recorded(Instances::Fresh), "{}", guest.name);
        }
    }
}

/// A recursion that ends under one variant and does not under another is a limit met, and no answer.
#[test]
fn what_overflows_the_stack_commits_nothing_under_any_variant() {
    let text = r#"(module
        (import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))
        (memory (export "memory") 1)
        (func $deeper (param i32) (result i32)
            (i32.add (call $deeper (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
        (func (export "_start") (drop (call $deeper (i32.const 0)))))"#;
    let bytes = bytes::Bytes::from(wat::parse_str(text).unwrap());
    let guest = Guest::named("stack");
    for variant in &VARIANTS {
        let recorded = record(&guest, &bytes, variant, Instances::Kept);
        let reason = "over the call stack limit of 1MiB, which is fixed";
        assert_eq!(recorded.failures(), [reason], "{}", variant.name);
    }
}
