//! Counts what a guest's instances take of memory and tables.
//!
//! The limits are on sums, so many small memories are no way around them. A guest never learns of
//! a limit: to exceed one ends the step. It does learn that a memory is at the maximum that it
//! declares itself, which is the same on every host.

use wasmtime::ResourceLimiter;

use super::limits::{Exceeded, Limits};

/// Instances, memories and tables that one step may have, each. Components that are built of many
/// modules have some dozens.
const MAX_COUNT: usize = 1_000;

/// What the instances of one step have taken so far.
#[derive(Debug)]
pub struct Meter {
    memory_limit: usize,
    memory_bytes: usize,
    table_limit: usize,
    table_elements: usize,
}

impl Meter {
    /// Nothing taken yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            memory_limit: limits.memory_bytes,
            memory_bytes: 0,
            table_limit: limits.table_elements,
            table_elements: 0,
        }
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let total = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        if total > self.memory_limit {
            return Err(Exceeded::Memory { limit: self.memory_limit }.into());
        }
        self.memory_bytes = total;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(refused_by_system(&error))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let total = self.table_elements.saturating_add(desired.saturating_sub(current));
        if total > self.table_limit {
            return Err(Exceeded::Table { limit: self.table_limit }.into());
        }
        self.table_elements = total;
        Ok(true)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(refused_by_system(&error))
    }

    fn instances(&self) -> usize {
        MAX_COUNT
    }

    fn tables(&self) -> usize {
        MAX_COUNT
    }

    fn memories(&self) -> usize {
        MAX_COUNT
    }
}

fn refused_by_system(error: &wasmtime::Error) -> wasmtime::Error {
    Exceeded::SystemMemory { reason: error.root_cause().to_string() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter() -> Meter {
        Meter::new(&Limits { memory_bytes: 300, table_elements: 30, ..Limits::default() })
    }

    #[test]
    fn sums_all_memories() {
        let mut meter = meter();
        assert!(meter.memory_growing(0, 200, None).unwrap());
        assert!(meter.memory_growing(0, 50, None).unwrap());
        assert!(meter.memory_growing(50, 100, None).unwrap());
        let error = meter.memory_growing(200, 201, None).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Exceeded::Memory { limit: 300 }));
    }

    #[test]
    fn sums_all_tables() {
        let mut meter = meter();
        assert!(meter.table_growing(0, 30, None).unwrap());
        let error = meter.table_growing(0, 1, None).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Exceeded::Table { limit: 30 }));
    }

    #[test]
    fn growth_beyond_the_declared_maximum_is_the_guests_own_affair() {
        let mut meter = meter();
        assert!(!meter.memory_growing(0, 500, Some(400)).unwrap());
        assert!(meter.memory_growing(0, 300, Some(400)).unwrap());
        assert!(!meter.table_growing(0, 50, Some(40)).unwrap());
    }

    #[test]
    fn a_system_without_memory_ends_the_step() {
        let error = meter().memory_grow_failed(wasmtime::Error::msg("no memory")).unwrap_err();
        let expected = Exceeded::SystemMemory { reason: "no memory".into() };
        assert_eq!(error.downcast_ref(), Some(&expected));
    }
}
