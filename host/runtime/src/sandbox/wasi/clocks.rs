//! `wasi:clocks`: the wall clock and the monotonic clock, both of [`Clock`].
//!
//! [`Clock`]: crate::sandbox::clock::Clock

use std::time::Duration;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};

use super::poll::Pollable;
use crate::sandbox::clock::LOOK;
use crate::sandbox::state::GuestState;

fn datetime(time: Duration) -> wall_clock::Datetime {
    wall_clock::Datetime { seconds: time.as_secs(), nanoseconds: time.subsec_nanos() }
}

impl wall_clock::Host for GuestState {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(datetime(self.clock.wall()))
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(datetime(LOOK))
    }
}

impl monotonic_clock::Host for GuestState {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.clock.monotonic_ns())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(u64::from(LOOK.subsec_nanos()))
    }

    fn subscribe_instant(&mut self, deadline_ns: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.hand_out(Pollable::At { deadline_ns })
    }

    fn subscribe_duration(&mut self, wait_ns: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let deadline_ns = self.clock.monotonic_ns().saturating_add(wait_ns);
        self.hand_out(Pollable::At { deadline_ns })
    }
}
