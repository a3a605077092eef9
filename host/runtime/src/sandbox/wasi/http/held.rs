//! Counts what requests and responses take of the host's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sandbox::limits::{HttpExceeded, HttpLimits};

/// What is counted of an instance's requests.
pub(in crate::sandbox) struct HttpState {
    pub(super) limits: HttpLimits,
    held: Arc<AtomicU64>,
    requests: u32,
    waited_ms: u64,
}

/// Bytes that something holds; given back when it is dropped.
pub(in crate::sandbox::wasi) struct Charge {
    held: Arc<AtomicU64>,
    limit: u64,
    bytes: u64,
}

impl HttpState {
    /// Nothing counted yet.
    pub(in crate::sandbox) fn new(limits: &HttpLimits) -> Self {
        Self { limits: limits.clone(), held: Arc::default(), requests: 0, waited_ms: 0 }
    }

    /// Begins another step.
    pub(in crate::sandbox) fn restart(&mut self) {
        self.requests = 0;
        self.waited_ms = 0;
    }

    /// Counts a request.
    pub(super) fn count_request(&mut self) -> Result<(), HttpExceeded> {
        let limit = self.limits.requests;
        if self.requests >= limit {
            return Err(HttpExceeded::Requests { limit });
        }
        self.requests += 1;
        Ok(())
    }

    /// Notes that the guest waited for an answer.
    pub(super) fn waited(&mut self, ms: u64) {
        self.waited_ms = self.waited_ms.saturating_add(ms);
    }

    /// How long it waited since this was last asked.
    pub(in crate::sandbox) fn take_waited_ms(&mut self) -> u64 {
        std::mem::take(&mut self.waited_ms)
    }

    /// Counts `bytes` that something is to hold.
    pub(super) fn charge(&self, bytes: u64) -> Result<Charge, HttpExceeded> {
        let (held, limit) = (Arc::clone(&self.held), self.limits.held_bytes);
        let mut charge = Charge { held, limit, bytes: 0 };
        charge.resize(bytes)?;
        Ok(charge)
    }
}

impl Charge {
    /// Makes it `bytes`.
    pub(super) fn resize(&mut self, bytes: u64) -> Result<(), HttpExceeded> {
        let held = self.held.load(Ordering::Relaxed) - self.bytes;
        if held.saturating_add(bytes) > self.limit {
            return Err(HttpExceeded::Held { limit: self.limit });
        }
        self.held.store(held + bytes, Ordering::Relaxed);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_given_back() {
        let limits = HttpLimits { held_bytes: 10, requests: 1, ..HttpLimits::default() };
        let mut state = HttpState::new(&limits);
        let mut first = state.charge(6).unwrap();
        assert_eq!(state.charge(5).err(), Some(HttpExceeded::Held { limit: 10 }));
        first.resize(2).unwrap();
        let second = state.charge(8).unwrap();
        assert!(first.resize(3).is_err());
        drop(second);
        first.resize(10).unwrap();
        state.count_request().unwrap();
        assert_eq!(state.count_request(), Err(HttpExceeded::Requests { limit: 1 }));
        state.waited(7);
        assert_eq!((state.take_waited_ms(), state.take_waited_ms()), (7, 0));
    }
}
