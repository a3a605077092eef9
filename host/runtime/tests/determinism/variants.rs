//! The engines that are compared: the first is the one that the command line runs.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pugmark_runtime::sandbox::{Code, Optimisation, Sandbox, Settings, Tuning};

/// One of them.
pub struct Variant {
    /// Its column.
    pub letter: &'static str,
    /// What it is, for the reader.
    pub name: &'static str,
    tuning: fn() -> Tuning,
    sandbox: OnceLock<Arc<Sandbox>>,
}

const fn variant(letter: &'static str, name: &'static str, tuning: fn() -> Tuning) -> Variant {
    Variant { letter, name, tuning, sandbox: OnceLock::new() }
}

/// All of them.
pub static VARIANTS: [Variant; 11] = [
    variant("A", "machine code, optimised for speed, as the command line has it", || {
        Tuning::default()
    }),
    variant("B", "machine code, not optimised", || Tuning {
        optimisation: Optimisation::None,
        ..Tuning::default()
    }),
    variant("C", "machine code, optimised for speed and size", || Tuning {
        optimisation: Optimisation::SpeedAndSize,
        ..Tuning::default()
    }),
    variant("D", "Wasmtime's interpreter, Pulley (`replay --interpreted`)", || Tuning {
        code: Code::Interpreted,
        ..Tuning::default()
    }),
    variant(
        "E",
        "memories that reserve nothing, have no guard and move whenever they grow",
        no_room,
    ),
    variant("F", "memories that reserve 1 MiB with a guard of 64 KiB", || Tuning {
        reservation_bytes: 1 << 20,
        growth_bytes: 64 << 10,
        guard_bytes: 64 << 10,
        ..Tuning::default()
    }),
    variant("G", "memories that reserve 4 GiB, without a guard", || Tuning {
        guard_bytes: 0,
        ..Tuning::default()
    }),
    variant("H", "memories that are copied, not mapped", || Tuning {
        copy_on_write: false,
        ..Tuning::default()
    }),
    variant("I", "checks in the code, no traps of the processor's", || Tuning {
        hardware_traps: false,
        ..Tuning::default()
    }),
    variant("J", "compiled on one thread", || Tuning { parallel: false, ..Tuning::default() }),
    variant("K", "D and E together, without optimisation", || Tuning {
        code: Code::Interpreted,
        optimisation: Optimisation::None,
        ..no_room()
    }),
];

fn no_room() -> Tuning {
    Tuning { reservation_bytes: 0, growth_bytes: 0, guard_bytes: 0, ..Tuning::default() }
}

impl Variant {
    /// Its sandbox. Compiled code is kept from one run of the tests to the next.
    pub fn sandbox(&self) -> Arc<Sandbox> {
        let make = || {
            let cache_dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("components");
            let tuning = (self.tuning)();
            let settings = Settings { cache_dir: Some(cache_dir), tuning, ..Settings::default() };
            Arc::new(Sandbox::new(settings).unwrap())
        };
        Arc::clone(self.sandbox.get_or_init(make))
    }
}

/// What the letters stand for.
pub fn legend() -> String {
    let mut text = "| | engine |\n|---|---|\n".to_owned();
    for Variant { letter, name, .. } in &VARIANTS {
        text += &format!("| {letter} | {name} |\n");
    }
    text
}
