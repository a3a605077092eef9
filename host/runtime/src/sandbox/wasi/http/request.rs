//! Requests that a guest makes, and their bodies.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::DynOutputStream;

use super::Plain;
use super::bindings::wasi::http::types::{self, ErrorCode, Method, Scheme};
use super::exchange::{Exchange, Stage};
use super::fields::Fields;
use super::syntax;
use crate::sandbox::state::GuestState;
use crate::sandbox::wasi::io::Writer;

/// A request in the making.
pub struct OutgoingRequest {
    pub(super) method: Method,
    pub(super) path: Option<String>,
    pub(super) scheme: Option<Scheme>,
    pub(super) authority: Option<String>,
    pub(super) fields: Fields,
    pub(super) exchange: Exchange,
}

/// Time-outs, which a guest can set and read, and which do nothing: an answer takes no time.
#[derive(Default)]
pub struct RequestOptions {
    connect: Option<u64>,
    first_byte: Option<u64>,
    between_bytes: Option<u64>,
}

/// The body of a request, or of a response that nobody gets.
pub struct OutgoingBody {
    pub(super) exchange: Exchange,
    is_written: bool,
}

impl OutgoingBody {
    pub(super) fn new(exchange: Exchange) -> Self {
        Self { exchange, is_written: false }
    }
}

impl types::HostOutgoingRequest for GuestState {
    fn new(&mut self, headers: Resource<Fields>) -> wasmtime::Result<Resource<OutgoingRequest>> {
        let fields = self.take_fields(headers)?;
        let exchange = Exchange::new(self.http.charge(0)?, self.http.limits.request_bytes);
        self.hand_out(OutgoingRequest {
            method: Method::Get,
            path: None,
            scheme: None,
            authority: None,
            fields,
            exchange,
        })
    }

    fn body(&mut self, request: Resource<OutgoingRequest>) -> Plain<Resource<OutgoingBody>> {
        let exchange = self.table.get(&request)?.exchange.clone();
        if !exchange.open() {
            return Ok(Err(()));
        }
        self.hand_out(OutgoingBody::new(exchange)).map(Ok)
    }

    fn method(&mut self, request: Resource<OutgoingRequest>) -> wasmtime::Result<Method> {
        Ok(self.table.get(&request)?.method.clone())
    }

    fn set_method(&mut self, request: Resource<OutgoingRequest>, method: Method) -> Plain<()> {
        let request = self.table.get_mut(&request)?;
        if matches!(&method, Method::Other(name) if !syntax::is_method(name)) {
            return Ok(Err(()));
        }
        request.method = method;
        Ok(Ok(()))
    }

    fn path_with_query(
        &mut self,
        request: Resource<OutgoingRequest>,
    ) -> wasmtime::Result<Option<String>> {
        Ok(self.table.get(&request)?.path.clone())
    }

    fn set_path_with_query(
        &mut self,
        request: Resource<OutgoingRequest>,
        path: Option<String>,
    ) -> Plain<()> {
        let request = self.table.get_mut(&request)?;
        if path.as_ref().is_some_and(|path| !syntax::is_path(path)) {
            return Ok(Err(()));
        }
        request.path = path;
        Ok(Ok(()))
    }

    fn scheme(&mut self, request: Resource<OutgoingRequest>) -> wasmtime::Result<Option<Scheme>> {
        Ok(self.table.get(&request)?.scheme.clone())
    }

    fn set_scheme(
        &mut self,
        request: Resource<OutgoingRequest>,
        scheme: Option<Scheme>,
    ) -> Plain<()> {
        let request = self.table.get_mut(&request)?;
        if matches!(scheme, Some(Scheme::Other(_))) {
            return Ok(Err(()));
        }
        request.scheme = scheme;
        Ok(Ok(()))
    }

    fn authority(
        &mut self,
        request: Resource<OutgoingRequest>,
    ) -> wasmtime::Result<Option<String>> {
        Ok(self.table.get(&request)?.authority.clone())
    }

    fn set_authority(
        &mut self,
        request: Resource<OutgoingRequest>,
        authority: Option<String>,
    ) -> Plain<()> {
        let request = self.table.get_mut(&request)?;
        if authority.as_ref().is_some_and(|text| syntax::authority(text).is_none()) {
            return Ok(Err(()));
        }
        request.authority = authority;
        Ok(Ok(()))
    }

    fn headers(
        &mut self,
        request: Resource<OutgoingRequest>,
    ) -> wasmtime::Result<Resource<Fields>> {
        let entries = self.table.get(&request)?.fields.entries().to_vec();
        self.copy_of_fields(entries, true)
    }

    fn drop(&mut self, request: Resource<OutgoingRequest>) -> wasmtime::Result<()> {
        self.table.delete(request)?;
        Ok(())
    }
}

impl types::HostRequestOptions for GuestState {
    fn new(&mut self) -> wasmtime::Result<Resource<RequestOptions>> {
        self.hand_out(RequestOptions::default())
    }

    fn connect_timeout(
        &mut self,
        options: Resource<RequestOptions>,
    ) -> wasmtime::Result<Option<u64>> {
        Ok(self.table.get(&options)?.connect)
    }

    fn set_connect_timeout(
        &mut self,
        options: Resource<RequestOptions>,
        ns: Option<u64>,
    ) -> Plain<()> {
        self.table.get_mut(&options)?.connect = ns;
        Ok(Ok(()))
    }

    fn first_byte_timeout(
        &mut self,
        options: Resource<RequestOptions>,
    ) -> wasmtime::Result<Option<u64>> {
        Ok(self.table.get(&options)?.first_byte)
    }

    fn set_first_byte_timeout(
        &mut self,
        options: Resource<RequestOptions>,
        ns: Option<u64>,
    ) -> Plain<()> {
        self.table.get_mut(&options)?.first_byte = ns;
        Ok(Ok(()))
    }

    fn between_bytes_timeout(
        &mut self,
        options: Resource<RequestOptions>,
    ) -> wasmtime::Result<Option<u64>> {
        Ok(self.table.get(&options)?.between_bytes)
    }

    fn set_between_bytes_timeout(
        &mut self,
        options: Resource<RequestOptions>,
        ns: Option<u64>,
    ) -> Plain<()> {
        self.table.get_mut(&options)?.between_bytes = ns;
        Ok(Ok(()))
    }

    fn drop(&mut self, options: Resource<RequestOptions>) -> wasmtime::Result<()> {
        self.table.delete(options)?;
        Ok(())
    }
}

impl types::HostOutgoingBody for GuestState {
    fn write(&mut self, body: Resource<OutgoingBody>) -> Plain<Resource<DynOutputStream>> {
        let body = self.table.get_mut(&body)?;
        if std::mem::replace(&mut body.is_written, true) {
            return Ok(Err(()));
        }
        let writer = Writer::Body(body.exchange.clone());
        self.hand_out(writer).map(Ok)
    }

    /// The request goes out now if it was handed over before. Trailers are not sent.
    fn finish(
        &mut self,
        body: Resource<OutgoingBody>,
        trailers: Option<Resource<Fields>>,
    ) -> wasmtime::Result<Result<(), ErrorCode>> {
        let exchange = self.table.delete(body)?.exchange;
        let trailers = trailers.map(|trailers| self.take_fields(trailers)).transpose()?;
        let refused = trailers.is_some_and(|trailers| !trailers.entries().is_empty());
        exchange.close(if refused { Stage::Abandoned } else { Stage::Finished });
        self.answer_if_due(&exchange)?;
        if refused {
            return Ok(Err(ErrorCode::HttpRequestTrailerSectionSize(Some(0))));
        }
        Ok(Ok(()))
    }

    fn drop(&mut self, body: Resource<OutgoingBody>) -> wasmtime::Result<()> {
        let exchange = self.table.delete(body)?.exchange;
        exchange.close(Stage::Abandoned);
        self.answer_if_due(&exchange)
    }
}
