//! What only servers have a use for. Language runtimes import it with the rest; no guest is ever
//! given a request, and a response that it makes goes nowhere.

use wasmtime::component::Resource;
use wasmtime::format_err;

use super::Plain;
use super::bindings::wasi::http::types::{self, ErrorCode, Method, Scheme};
use super::exchange::Exchange;
use super::fields::Fields;
use super::request::OutgoingBody;
use super::response::IncomingBody;
use crate::sandbox::state::GuestState;

/// No guest holds one.
pub enum IncomingRequest {}

/// No guest holds one.
pub enum ResponseOutparam {}

/// A response that nobody gets.
pub struct OutgoingResponse {
    status: u16,
    fields: Fields,
    exchange: Exchange,
}

fn no_server<T>() -> wasmtime::Result<T> {
    Err(format_err!("a handler serves no requests"))
}

impl types::HostIncomingRequest for GuestState {
    fn method(&mut self, _: Resource<IncomingRequest>) -> wasmtime::Result<Method> {
        no_server()
    }

    fn path_with_query(
        &mut self,
        _: Resource<IncomingRequest>,
    ) -> wasmtime::Result<Option<String>> {
        no_server()
    }

    fn scheme(&mut self, _: Resource<IncomingRequest>) -> wasmtime::Result<Option<Scheme>> {
        no_server()
    }

    fn authority(&mut self, _: Resource<IncomingRequest>) -> wasmtime::Result<Option<String>> {
        no_server()
    }

    fn headers(&mut self, _: Resource<IncomingRequest>) -> wasmtime::Result<Resource<Fields>> {
        no_server()
    }

    fn consume(&mut self, _: Resource<IncomingRequest>) -> Plain<Resource<IncomingBody>> {
        no_server()
    }

    fn drop(&mut self, _: Resource<IncomingRequest>) -> wasmtime::Result<()> {
        no_server()
    }
}

impl types::HostResponseOutparam for GuestState {
    fn set(
        &mut self,
        _: Resource<ResponseOutparam>,
        _: Result<Resource<OutgoingResponse>, ErrorCode>,
    ) -> wasmtime::Result<()> {
        no_server()
    }

    fn drop(&mut self, _: Resource<ResponseOutparam>) -> wasmtime::Result<()> {
        no_server()
    }
}

impl types::HostOutgoingResponse for GuestState {
    fn new(&mut self, headers: Resource<Fields>) -> wasmtime::Result<Resource<OutgoingResponse>> {
        let fields = self.take_fields(headers)?;
        let exchange = Exchange::new(self.http.charge(0)?, self.http.limits.request_bytes);
        self.hand_out(OutgoingResponse { status: 200, fields, exchange })
    }

    fn status_code(&mut self, response: Resource<OutgoingResponse>) -> wasmtime::Result<u16> {
        Ok(self.table.get(&response)?.status)
    }

    fn set_status_code(&mut self, response: Resource<OutgoingResponse>, status: u16) -> Plain<()> {
        let response = self.table.get_mut(&response)?;
        if !(100..1000).contains(&status) {
            return Ok(Err(()));
        }
        response.status = status;
        Ok(Ok(()))
    }

    fn headers(
        &mut self,
        response: Resource<OutgoingResponse>,
    ) -> wasmtime::Result<Resource<Fields>> {
        let entries = self.table.get(&response)?.fields.entries().to_vec();
        self.copy_of_fields(entries, true)
    }

    fn body(&mut self, response: Resource<OutgoingResponse>) -> Plain<Resource<OutgoingBody>> {
        let exchange = self.table.get(&response)?.exchange.clone();
        if !exchange.open() {
            return Ok(Err(()));
        }
        self.hand_out(OutgoingBody::new(exchange)).map(Ok)
    }

    fn drop(&mut self, response: Resource<OutgoingResponse>) -> wasmtime::Result<()> {
        self.table.delete(response)?;
        Ok(())
    }
}
