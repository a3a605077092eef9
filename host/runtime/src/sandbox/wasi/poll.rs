//! `wasi:io/poll` in virtual time: waiting moves the clock, and takes no time.

use wasmtime::component::Resource;
use wasmtime::format_err;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::sync::io::poll;

use super::http::Exchange;
use crate::sandbox::state::GuestState;

/// What a guest can wait for.
#[derive(Clone)]
pub(super) enum Pollable {
    /// Ready whenever it is asked: all streams are.
    Always,
    /// Ready once the monotonic clock reads this.
    At {
        /// In nanoseconds.
        deadline_ns: u64,
    },
    /// Ready once a request is answered, which it is as soon as it is whole.
    Answered(Exchange),
}

impl Pollable {
    /// What the monotonic clock has to read; `None` if no waiting makes it ready.
    fn deadline_ns(&self) -> Option<u64> {
        match self {
            Self::Always => Some(0),
            Self::At { deadline_ns } => Some(*deadline_ns),
            Self::Answered(exchange) => exchange.is_settled().then_some(0),
        }
    }
}

fn waits_for_ever() -> wasmtime::Error {
    format_err!("it waits for the answer to a request whose body it has not finished")
}

impl GuestState {
    fn deadline_ns(&self, handle: &Resource<DynPollable>) -> wasmtime::Result<Option<u64>> {
        self.held::<Pollable, _>(handle).map(|pollable| pollable.deadline_ns())
    }
}

impl poll::Host for GuestState {
    /// What is ready now; where nothing is, what is ready at the earliest deadline.
    fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        let deadlines = pollables
            .iter()
            .map(|handle| self.deadline_ns(handle))
            .collect::<Result<Vec<_>, _>>()?;
        if deadlines.is_empty() {
            return Err(format_err!("poll was called with nothing to wait for"));
        }
        let Some(earliest_ns) = deadlines.iter().copied().flatten().min() else {
            return Err(waits_for_ever());
        };
        let now_ns = self.clock.monotonic_ns().max(earliest_ns);
        self.clock.wait_until(now_ns);
        let is_ready = |deadline_ns: Option<u64>| deadline_ns.is_some_and(|at| at <= now_ns);
        let ready = (0u32..).zip(deadlines).filter(|(_, deadline_ns)| is_ready(*deadline_ns));
        Ok(ready.map(|(index, _)| index).collect())
    }
}

impl poll::HostPollable for GuestState {
    fn ready(&mut self, handle: Resource<DynPollable>) -> wasmtime::Result<bool> {
        let now_ns = self.clock.monotonic_ns();
        Ok(self.deadline_ns(&handle)?.is_some_and(|deadline_ns| deadline_ns <= now_ns))
    }

    fn block(&mut self, handle: Resource<DynPollable>) -> wasmtime::Result<()> {
        let deadline_ns = self.deadline_ns(&handle)?.ok_or_else(waits_for_ever)?;
        let now_ns = self.clock.monotonic_ns();
        self.clock.wait_until(now_ns.max(deadline_ns));
        Ok(())
    }

    fn drop(&mut self, handle: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.take_back::<Pollable, _>(&handle)
    }
}
