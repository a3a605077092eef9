//! `wasi:io/streams` and `wasi:io/error`.
//!
//! Streams are always ready, permits are constant and reads are full, so that nothing of the host's
//! buffers or timing shows. No stream fails: what goes wrong behind one ends the step, and no guest
//! ever holds a `wasi:io/error`.

use bytes::Bytes;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sync::io::streams;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable, StreamError};
use wasmtime_wasi_io::bindings::wasi::io::error;

use super::http::Charge;
use super::http::Exchange;
use super::poll::Pollable;
use crate::sandbox::log_lines::Stream;
use crate::sandbox::state::GuestState;

/// What one write may carry and one read may bring, in bytes.
const PERMIT: u64 = 64 * 1024;

/// What a write that also flushes may carry, in bytes; WASI's own number.
const FLUSHING_WRITE: u64 = 4096;

/// A guest's handle on a stream that it reads.
pub(super) enum Input {
    /// Its standard input. There is one, however many handles.
    Stdin,
    /// The body of a response.
    Body {
        /// What is not read yet.
        left: Bytes,
        /// What it takes of the host's memory.
        _held: Charge,
    },
}

/// A guest's handle on a stream that it writes to.
#[derive(Clone)]
pub(super) enum Writer {
    /// Standard output or standard error.
    Stream(Stream),
    /// The body of a request.
    Body(Exchange),
}

/// Ends the step: an error as a stream's error, but not for the guest.
fn stop(error: impl Into<wasmtime::Error>) -> StreamError {
    StreamError::Trap(error.into())
}

impl GuestState {
    fn read_stream(
        &mut self,
        handle: &Resource<DynInputStream>,
        len: u64,
    ) -> Result<Vec<u8>, StreamError> {
        let len = usize::try_from(len.min(PERMIT)).map_err(stop)?;
        let input = Resource::<Input>::new_borrow(handle.rep());
        match self.table.get_mut(&input).map_err(stop)? {
            Input::Body { left, .. } if left.is_empty() => Err(StreamError::Closed),
            Input::Body { left, .. } => Ok(left.split_to(len.min(left.len())).into()),
            Input::Stdin => match self.stdin.read(len) {
                Ok(bytes) => bytes.ok_or(StreamError::Closed),
                Err(error) => Err(stop(self.abort(error))),
            },
        }
    }

    fn write_stream(
        &mut self,
        handle: &Resource<DynOutputStream>,
        bytes: &[u8],
        permit: u64,
    ) -> Result<(), StreamError> {
        let writer = self.held(handle).map_err(stop)?;
        if bytes.len() as u64 > permit {
            return Err(StreamError::trap("a write of more bytes than are permitted"));
        }
        match writer {
            Writer::Stream(Stream::Stdout) => self.write_stdout(bytes).map_err(stop),
            Writer::Stream(Stream::Stderr) => {
                self.log_lines.write(Stream::Stderr, bytes).map_err(stop)
            }
            Writer::Body(exchange) => {
                let is_open = exchange.write(bytes).map_err(stop)?;
                if is_open { Ok(()) } else { Err(StreamError::Closed) }
            }
        }
    }

    fn write_zeroes_to(
        &mut self,
        handle: &Resource<DynOutputStream>,
        len: u64,
        permit: u64,
    ) -> Result<(), StreamError> {
        // One more than is permitted is refused like any other length.
        let len = usize::try_from(len.min(permit + 1)).map_err(stop)?;
        self.write_stream(handle, &vec![0; len], permit)
    }
}

impl streams::Host for GuestState {
    fn convert_stream_error(
        &mut self,
        error: StreamError,
    ) -> wasmtime::Result<streams::StreamError> {
        match error {
            StreamError::Closed => Ok(streams::StreamError::Closed),
            StreamError::LastOperationFailed(error) | StreamError::Trap(error) => Err(error),
        }
    }
}

impl streams::HostInputStream for GuestState {
    fn read(&mut self, handle: Resource<DynInputStream>, len: u64) -> Result<Vec<u8>, StreamError> {
        self.read_stream(&handle, len)
    }

    fn blocking_read(
        &mut self,
        handle: Resource<DynInputStream>,
        len: u64,
    ) -> Result<Vec<u8>, StreamError> {
        self.read_stream(&handle, len)
    }

    fn skip(&mut self, handle: Resource<DynInputStream>, len: u64) -> Result<u64, StreamError> {
        self.read_stream(&handle, len).map(|skipped| skipped.len() as u64)
    }

    fn blocking_skip(
        &mut self,
        handle: Resource<DynInputStream>,
        len: u64,
    ) -> Result<u64, StreamError> {
        self.read_stream(&handle, len).map(|skipped| skipped.len() as u64)
    }

    fn subscribe(
        &mut self,
        handle: Resource<DynInputStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        self.table.get(&Resource::<Input>::new_borrow(handle.rep()))?;
        self.hand_out(Pollable::Always)
    }

    fn drop(&mut self, handle: Resource<DynInputStream>) -> wasmtime::Result<()> {
        self.take_back::<Input, _>(&handle)
    }
}

impl streams::HostOutputStream for GuestState {
    fn check_write(&mut self, handle: Resource<DynOutputStream>) -> Result<u64, StreamError> {
        self.held::<Writer, _>(&handle).map_err(stop)?;
        Ok(PERMIT)
    }

    fn write(
        &mut self,
        handle: Resource<DynOutputStream>,
        bytes: Vec<u8>,
    ) -> Result<(), StreamError> {
        self.write_stream(&handle, &bytes, PERMIT)
    }

    fn blocking_write_and_flush(
        &mut self,
        handle: Resource<DynOutputStream>,
        bytes: Vec<u8>,
    ) -> Result<(), StreamError> {
        self.write_stream(&handle, &bytes, FLUSHING_WRITE)
    }

    fn flush(&mut self, handle: Resource<DynOutputStream>) -> Result<(), StreamError> {
        self.write_stream(&handle, &[], PERMIT)
    }

    fn blocking_flush(&mut self, handle: Resource<DynOutputStream>) -> Result<(), StreamError> {
        self.write_stream(&handle, &[], PERMIT)
    }

    fn subscribe(
        &mut self,
        handle: Resource<DynOutputStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        self.held::<Writer, _>(&handle)?;
        self.hand_out(Pollable::Always)
    }

    fn write_zeroes(
        &mut self,
        handle: Resource<DynOutputStream>,
        len: u64,
    ) -> Result<(), StreamError> {
        self.write_zeroes_to(&handle, len, PERMIT)
    }

    fn blocking_write_zeroes_and_flush(
        &mut self,
        handle: Resource<DynOutputStream>,
        len: u64,
    ) -> Result<(), StreamError> {
        self.write_zeroes_to(&handle, len, FLUSHING_WRITE)
    }

    fn splice(
        &mut self,
        to: Resource<DynOutputStream>,
        from: Resource<DynInputStream>,
        len: u64,
    ) -> Result<u64, StreamError> {
        let bytes = self.read_stream(&from, len)?;
        self.write_stream(&to, &bytes, PERMIT)?;
        Ok(bytes.len() as u64)
    }

    fn blocking_splice(
        &mut self,
        to: Resource<DynOutputStream>,
        from: Resource<DynInputStream>,
        len: u64,
    ) -> Result<u64, StreamError> {
        self.splice(to, from, len)
    }

    fn drop(&mut self, handle: Resource<DynOutputStream>) -> wasmtime::Result<()> {
        self.take_back::<Writer, _>(&handle)
    }
}

impl error::Host for GuestState {}

impl error::HostError for GuestState {
    fn to_debug_string(&mut self, _: Resource<wasmtime::Error>) -> wasmtime::Result<String> {
        Ok("error".to_owned())
    }

    fn drop(&mut self, _: Resource<wasmtime::Error>) -> wasmtime::Result<()> {
        Ok(())
    }
}
