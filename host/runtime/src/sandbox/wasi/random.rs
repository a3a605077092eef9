//! `wasi:random`: all three interfaces, from [`Random`].
//!
//! [`Random`]: crate::sandbox::random::Random

use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};

use crate::sandbox::random::Generator;
use crate::sandbox::state::GuestState;

impl GuestState {
    /// A buffer for so many random bytes; none of a length that would hurt the host.
    fn random_buffer(&self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.check_read(len)?;
        Ok(vec![0; usize::try_from(len)?])
    }
}

fn filled(mut buffer: Vec<u8>, generator: &mut Generator) -> Vec<u8> {
    generator.fill(&mut buffer);
    buffer
}

impl random::Host for GuestState {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        Ok(filled(self.random_buffer(len)?, self.random.secure()))
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.random.secure().next_u64())
    }
}

impl insecure::Host for GuestState {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        Ok(filled(self.random_buffer(len)?, self.random.insecure()))
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.random.insecure().next_u64())
    }
}

impl insecure_seed::Host for GuestState {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok(self.random.insecure_seed())
    }
}
