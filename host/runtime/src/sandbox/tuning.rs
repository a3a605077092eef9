//! How code is made and where memories lie: what may differ from one machine to the next.
//!
//! Nothing in here may change what a guest computes. `tests/determinism` holds that it does not.

use serde::{Deserialize, Serialize};

/// The engine's own choices, which no guest can see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tuning {
    /// What components are compiled to. Default: [`Code::Machine`].
    pub code: Code,
    /// What is optimised for. Default: [`Optimisation::Speed`].
    pub optimisation: Optimisation,
    /// Whether guarded memory and the processor catch what a guest must not do; else compiled code
    /// checks it. Interpreted code always checks. Default: `true`.
    pub hardware_traps: bool,
    /// Whether one component is compiled on several threads. Default: `true`.
    pub parallel: bool,
    /// Bytes of address space (not of memory) that each linear memory reserves. With all that 32
    /// bits can address reserved, compiled code needs no bounds checks and a memory never moves.
    /// Nothing is pooled, so a step reserves this once for each of its memories and no more.
    /// Default: 4 GiB.
    pub reservation_bytes: u64,
    /// Bytes that a memory reserves besides, when it has to move to grow. Default: 2 GiB.
    pub growth_bytes: u64,
    /// Bytes of address space behind each memory that belong to nobody. Default: 32 MiB.
    pub guard_bytes: u64,
    /// Whether a memory begins as a copy-on-write view of the component's file; else its data is
    /// copied into it. Default: `true`.
    pub copy_on_write: bool,
}

/// What components are compiled to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The machine's own instructions.
    Machine,
    /// Instructions that an interpreter carries out: several times slower, and an independent
    /// witness to what a component does.
    Interpreted,
}

/// What machine code is optimised for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimisation {
    /// Nothing.
    None,
    /// Speed.
    Speed,
    /// Speed, and size.
    SpeedAndSize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            code: Code::Machine,
            optimisation: Optimisation::Speed,
            hardware_traps: true,
            parallel: true,
            reservation_bytes: 4 << 30,
            growth_bytes: 2 << 30,
            guard_bytes: 32 << 20,
            copy_on_write: true,
        }
    }
}
