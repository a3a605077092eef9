//! Responses that a guest gets, whole.

use bytes::Bytes;
use wasmtime::component::Resource;
use wasmtime::format_err;
use wasmtime_wasi::p2::{DynInputStream, DynPollable};

use super::Plain;
use super::bindings::wasi::http::types::{self, ErrorCode};
use super::exchange::Exchange;
use super::fields::Fields;
use super::held::Charge;
use crate::sandbox::outside::Response;
use crate::sandbox::state::GuestState;
use crate::sandbox::wasi::io::Input;
use crate::sandbox::wasi::poll::Pollable;

/// A response that will be there: once the request is whole, at once.
pub struct FutureIncomingResponse(pub(super) Exchange);

/// A response.
pub struct IncomingResponse {
    response: Response,
    /// What its body takes, until that is consumed.
    charge: Option<Charge>,
}

/// A response's body: what of it is not read yet.
pub struct IncomingBody(Option<(Bytes, Charge)>);

/// There are none.
pub struct FutureTrailers {
    is_taken: bool,
}

impl types::HostFutureIncomingResponse for GuestState {
    fn subscribe(
        &mut self,
        future: Resource<FutureIncomingResponse>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        let exchange = self.table.get(&future)?.0.clone();
        self.hand_out(Pollable::Answered(exchange))
    }

    fn get(
        &mut self,
        future: Resource<FutureIncomingResponse>,
    ) -> wasmtime::Result<Option<Result<Result<Resource<IncomingResponse>, ErrorCode>, ()>>> {
        let exchange = self.table.get(&future)?.0.clone();
        Ok(match exchange.take_settled() {
            None => None,
            Some(Err(())) => Some(Err(())),
            Some(Ok(Err(code))) => Some(Ok(Err(code))),
            Some(Ok(Ok((response, charge)))) => {
                let charge = Some(charge);
                Some(Ok(Ok(self.hand_out(IncomingResponse { response, charge })?)))
            }
        })
    }

    fn drop(&mut self, future: Resource<FutureIncomingResponse>) -> wasmtime::Result<()> {
        self.table.delete(future)?;
        Ok(())
    }
}

impl types::HostIncomingResponse for GuestState {
    fn status(&mut self, response: Resource<IncomingResponse>) -> wasmtime::Result<u16> {
        Ok(self.table.get(&response)?.response.status)
    }

    fn headers(
        &mut self,
        response: Resource<IncomingResponse>,
    ) -> wasmtime::Result<Resource<Fields>> {
        let fields = &self.table.get(&response)?.response.headers;
        let entries = fields.iter().map(|(name, value)| (name.clone(), value.to_vec())).collect();
        self.copy_of_fields(entries, true)
    }

    fn consume(&mut self, response: Resource<IncomingResponse>) -> Plain<Resource<IncomingBody>> {
        let response = self.table.get_mut(&response)?;
        let Some(charge) = response.charge.take() else { return Ok(Err(())) };
        let body = std::mem::take(&mut response.response.body);
        self.hand_out(IncomingBody(Some((body, charge)))).map(Ok)
    }

    fn drop(&mut self, response: Resource<IncomingResponse>) -> wasmtime::Result<()> {
        self.table.delete(response)?;
        Ok(())
    }
}

impl types::HostIncomingBody for GuestState {
    fn stream(&mut self, body: Resource<IncomingBody>) -> Plain<Resource<DynInputStream>> {
        let Some((left, charge)) = self.table.get_mut(&body)?.0.take() else { return Ok(Err(())) };
        self.hand_out(Input::Body { left, _held: charge }).map(Ok)
    }

    fn finish(
        &mut self,
        body: Resource<IncomingBody>,
    ) -> wasmtime::Result<Resource<FutureTrailers>> {
        self.table.delete(body)?;
        self.hand_out(FutureTrailers { is_taken: false })
    }

    fn drop(&mut self, body: Resource<IncomingBody>) -> wasmtime::Result<()> {
        self.table.delete(body)?;
        Ok(())
    }
}

impl types::HostFutureTrailers for GuestState {
    fn subscribe(
        &mut self,
        trailers: Resource<FutureTrailers>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        self.table.get(&trailers)?;
        self.hand_out(Pollable::Always)
    }

    fn get(
        &mut self,
        trailers: Resource<FutureTrailers>,
    ) -> wasmtime::Result<Option<Result<Result<Option<Resource<Fields>>, ErrorCode>, ()>>> {
        let trailers = self.table.get_mut(&trailers)?;
        let is_taken = std::mem::replace(&mut trailers.is_taken, true);
        Ok(Some(if is_taken { Err(()) } else { Ok(Ok(None)) }))
    }

    fn drop(&mut self, trailers: Resource<FutureTrailers>) -> wasmtime::Result<()> {
        self.table.delete(trailers)?;
        Ok(())
    }
}

impl types::Host for GuestState {
    /// Never called: no guest holds an error of a stream.
    fn http_error_code(
        &mut self,
        _: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        Err(format_err!("no stream fails here"))
    }
}
