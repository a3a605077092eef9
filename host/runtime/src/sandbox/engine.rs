//! The one configuration of WebAssembly that handlers run under.
//!
//! What is on or off here decides what a guest computes, so it is the same on every machine.
//! Whatever has more than one right answer by the standard (NaN bits, relaxed SIMD, threads) is
//! fixed or off, and so is what a handler has no use for. What decides nothing is [`Tuning`].

use std::fmt::Write as _;
use std::hash::{Hash, Hasher as _};
use std::num::NonZeroUsize;

use pugmark_log::{Digest, Hasher};
use wasmtime::{Config, Engine, OptLevel, WasmBacktraceDetails, WasmFeatures};

use super::tuning::{Code, Optimisation, Tuning};
use super::{ABI, adapt, inspect};

/// Bytes of stack that a guest may use: enough for interpreters that recurse deeply, and no more
/// than half of the 2 MiB that a thread commonly has.
pub(super) const WASM_STACK_BYTES: usize = 1 << 20;

/// How the engine calls the interpreter of this machine's kind.
const INTERPRETER: &str = if cfg!(target_endian = "big") { "pulley64be" } else { "pulley64" };

/// Functions of a trapped guest that are remembered.
const MAX_FRAMES: NonZeroUsize = NonZeroUsize::new(16).expect("16 is not 0");

/// Proposals that are off: those with more than one right answer, those that let a guest see its
/// host's limits in new ways, and those that the sandbox does not serve.
const OFF: [WasmFeatures; 17] = [
    WasmFeatures::THREADS,
    WasmFeatures::SHARED_EVERYTHING_THREADS,
    WasmFeatures::MEMORY64,
    WasmFeatures::GC,
    WasmFeatures::GC_TYPES,
    WasmFeatures::FUNCTION_REFERENCES,
    WasmFeatures::EXCEPTIONS,
    WasmFeatures::LEGACY_EXCEPTIONS,
    WasmFeatures::STACK_SWITCHING,
    WasmFeatures::CUSTOM_PAGE_SIZES,
    WasmFeatures::WIDE_ARITHMETIC,
    WasmFeatures::CM_ASYNC,
    WasmFeatures::CM_ASYNC_STACKFUL,
    WasmFeatures::CM_MORE_ASYNC_BUILTINS,
    WasmFeatures::CM_THREADING,
    WasmFeatures::CM_ERROR_CONTEXT,
    WasmFeatures::CM_GC,
];

/// An engine of that configuration.
///
/// # Errors
/// If this machine cannot run one.
pub(super) fn build(tuning: &Tuning) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .generate_address_map(false)
        .native_unwind_info(false)
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(Some(MAX_FRAMES));
    for feature in OFF {
        config.wasm_features(feature, false);
    }
    tune(&mut config, tuning)?;
    Engine::new(&config)
}

fn tune(config: &mut Config, tuning: &Tuning) -> wasmtime::Result<()> {
    config
        .cranelift_opt_level(match tuning.optimisation {
            Optimisation::None => OptLevel::None,
            Optimisation::Speed => OptLevel::Speed,
            Optimisation::SpeedAndSize => OptLevel::SpeedAndSize,
        })
        .parallel_compilation(tuning.parallel)
        .memory_reservation(tuning.reservation_bytes)
        .memory_reservation_for_growth(tuning.growth_bytes)
        .memory_guard_size(tuning.guard_bytes)
        .memory_init_cow(tuning.copy_on_write);
    match tuning.code {
        Code::Machine => {
            config.signals_based_traps(tuning.hardware_traps);
        }
        Code::Interpreted => {
            config.target(INTERPRETER)?.signals_based_traps(false);
        }
    }
    Ok(())
}

/// What compiled code depends on besides the component: the compiler and its version, the machine,
/// the configuration, and what the sandbox serves. Code that was made under another one is not
/// used.
pub(super) fn configuration(engine: &Engine) -> Digest {
    let mut text = format!("pugmark {} abi {ABI}\n", env!("CARGO_PKG_VERSION"));
    for name in inspect::SERVED.iter().chain(&inspect::DENIED) {
        let _ = writeln!(text, "{name}");
    }
    let mut sink = Sink(Hasher::default());
    engine.precompile_compatibility_hash().hash(&mut sink);
    sink.write(text.as_bytes());
    sink.write(adapt::configuration().as_bytes());
    sink.0.finish()
}

/// Takes what is hashed into a digest instead of 64 bits.
struct Sink(Hasher);

impl std::hash::Hasher for Sink {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_the_same_each_time() {
        let built = |tuning| configuration(&build(&tuning).unwrap());
        let first = built(Tuning::default());
        assert_eq!(first, built(Tuning::default()));
        assert_ne!(first, configuration(&Engine::default()));
        assert_ne!(first, built(Tuning { code: Code::Interpreted, ..Tuning::default() }));
    }

    #[test]
    fn what_is_off_does_not_compile() {
        let engine = build(&Tuning::default()).unwrap();
        for (text, proposal) in [
            ("(module (memory i64 1))", "memory64"),
            ("(module (memory 1 1 shared))", "threads"),
            ("(module (tag))", "exceptions"),
            ("(module (type (struct)))", "gc"),
        ] {
            let bytes = wat::parse_str(text).unwrap();
            assert!(engine.precompile_module(&bytes).is_err(), "{proposal}");
        }
    }
}
