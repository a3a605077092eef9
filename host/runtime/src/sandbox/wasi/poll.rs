//! `wasi:io/poll` in virtual time: waiting moves the clock, and takes no time.

use wasmtime::component::Resource;
use wasmtime::format_err;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::sync::io::poll;

use crate::sandbox::state::GuestState;

/// What a guest can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pollable {
    /// Ready whenever it is asked: all streams are.
    Always,
    /// Ready once the monotonic clock reads this.
    At {
        /// In nanoseconds.
        deadline_ns: u64,
    },
}

impl Pollable {
    fn deadline_ns(self) -> u64 {
        match self {
            Self::Always => 0,
            Self::At { deadline_ns } => deadline_ns,
        }
    }
}

impl GuestState {
    fn deadline_ns(&self, handle: &Resource<DynPollable>) -> wasmtime::Result<u64> {
        self.held::<Pollable, _>(handle).map(Pollable::deadline_ns)
    }
}

impl poll::Host for GuestState {
    /// What is ready now; where nothing is, what is ready at the earliest deadline.
    fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        let deadlines = pollables
            .iter()
            .map(|handle| self.deadline_ns(handle))
            .collect::<Result<Vec<_>, _>>()?;
        let Some(earliest_ns) = deadlines.iter().copied().min() else {
            return Err(format_err!("poll was called with nothing to wait for"));
        };
        let now_ns = self.clock.monotonic_ns().max(earliest_ns);
        self.clock.wait_until(now_ns);
        let ready = (0u32..).zip(deadlines).filter(|(_, deadline_ns)| *deadline_ns <= now_ns);
        Ok(ready.map(|(index, _)| index).collect())
    }
}

impl poll::HostPollable for GuestState {
    fn ready(&mut self, handle: Resource<DynPollable>) -> wasmtime::Result<bool> {
        Ok(self.deadline_ns(&handle)? <= self.clock.monotonic_ns())
    }

    fn block(&mut self, handle: Resource<DynPollable>) -> wasmtime::Result<()> {
        let deadline_ns = self.deadline_ns(&handle)?;
        let now_ns = self.clock.monotonic_ns();
        self.clock.wait_until(now_ns.max(deadline_ns));
        Ok(())
    }

    fn drop(&mut self, handle: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.take_back::<Pollable, _>(&handle)
    }
}
