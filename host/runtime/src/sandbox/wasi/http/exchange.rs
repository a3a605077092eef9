//! A request on its way to its answer: shared by the request, its body, the streams into that, and
//! the future that the guest waits on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::held::Charge;
use crate::sandbox::limits::HttpExceeded;
use crate::sandbox::outside::{Request, Response};

use super::bindings::wasi::http::types::ErrorCode;

/// What a request came to, and what its response takes of the host's memory.
pub(super) type Settled = Result<(Response, Charge), ErrorCode>;

/// Shared by all that have to do with one request.
#[derive(Clone)]
pub(in crate::sandbox::wasi) struct Exchange(Arc<Mutex<State>>);

struct State {
    body: Vec<u8>,
    charge: Charge,
    limit: u64,
    stage: Stage,
    /// All but the body, once the request is handed over.
    head: Option<Request>,
    answer: Answer,
}

/// How far a body is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It was not asked for: it is empty.
    Untouched,
    /// It is written.
    Open,
    /// It is whole.
    Finished,
    /// It was dropped before.
    Abandoned,
}

enum Answer {
    Awaited,
    There(Box<Settled>),
    Taken,
}

impl Exchange {
    /// A request that is being made. `charge` counts its body, whose bytes `limit` bounds.
    pub(super) fn new(charge: Charge, limit: u64) -> Self {
        let (body, stage, head, answer) = (Vec::new(), Stage::Untouched, None, Answer::Awaited);
        Self(Arc::new(Mutex::new(State { body, charge, limit, stage, head, answer })))
    }

    /// No panic can leave it half changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the body; false if that was done before.
    pub(super) fn open(&self) -> bool {
        let mut state = self.state();
        let is_first = state.stage == Stage::Untouched;
        if is_first {
            state.stage = Stage::Open;
        }
        is_first
    }

    /// Appends to the body; false if it is not written any more.
    pub(in crate::sandbox::wasi) fn write(&self, bytes: &[u8]) -> Result<bool, HttpExceeded> {
        let mut state = self.state();
        if state.stage != Stage::Open {
            return Ok(false);
        }
        let len = (state.body.len() + bytes.len()) as u64;
        if len > state.limit {
            return Err(HttpExceeded::Request { limit: state.limit });
        }
        state.charge.resize(len)?;
        state.body.extend_from_slice(bytes);
        Ok(true)
    }

    /// Ends the body, if it is open.
    pub(super) fn close(&self, stage: Stage) {
        let mut state = self.state();
        if state.stage == Stage::Open {
            state.stage = stage;
        }
    }

    /// Hands the request over.
    pub(super) fn hand_over(&self, head: Request) {
        self.state().head = Some(head);
    }

    /// The request, once it is handed over and its body is over: then what is to be made of it is
    /// due. Only once.
    pub(super) fn take_due(&self) -> Option<Result<Request, ErrorCode>> {
        let mut state = self.state();
        if state.stage == Stage::Open {
            return None;
        }
        let mut request = state.head.take()?;
        if state.stage == Stage::Abandoned {
            return Some(Err(ErrorCode::HttpRequestBodySize(None)));
        }
        request.body = std::mem::take(&mut state.body).into();
        Some(Ok(request))
    }

    /// Sets what it came to.
    pub(super) fn settle(&self, settled: Settled) {
        self.state().answer = Answer::There(Box::new(settled));
    }

    /// Whether it has come to something.
    pub(in crate::sandbox::wasi) fn is_settled(&self) -> bool {
        !matches!(self.state().answer, Answer::Awaited)
    }

    /// What it came to: `None` if nothing yet, an error if that was taken before.
    pub(super) fn take_settled(&self) -> Option<Result<Settled, ()>> {
        let mut state = self.state();
        match std::mem::replace(&mut state.answer, Answer::Taken) {
            Answer::Awaited => {
                state.answer = Answer::Awaited;
                None
            }
            Answer::There(settled) => Some(Ok(*settled)),
            Answer::Taken => Some(Err(())),
        }
    }
}
