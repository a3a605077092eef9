//! `wasi:http` for who makes requests. Requests are made in the order in which they become whole,
//! each answered before the guest goes on: so answers are there at once, and streams are full.
//!
//! Only while a handler decides are requests made. All else that a guest can see here is constant;
//! who answers is [`Outside`](crate::sandbox::outside::Outside).

mod exchange;
mod fields;
mod handler;
mod held;
mod request;
mod response;
mod server;
pub(in crate::sandbox) mod syntax;

use wasmtime::component::{HasSelf, Linker};

use self::bindings::wasi::http::{outgoing_handler, types};
use super::whole;
use crate::sandbox::state::GuestState;

pub(super) use self::exchange::Exchange;
pub(super) use self::held::Charge;
pub(in crate::sandbox) use self::held::HttpState;

/// Generated from WASI's interfaces in `wit/deps`.
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package pugmark:host;
            world http {
                import wasi:http/types@0.2.0;
                import wasi:http/outgoing-handler@0.2.0;
            }
        ",
        world: "pugmark:host/http",
        imports: { default: trappable },
        with: {
            "wasi:io/error": wasmtime_wasi_io::bindings::wasi::io::error,
            "wasi:io/poll": wasmtime_wasi::p2::bindings::sync::io::poll,
            "wasi:io/streams": wasmtime_wasi::p2::bindings::sync::io::streams,
            "wasi:clocks": wasmtime_wasi::p2::bindings::clocks,
            "wasi:http/types.fields": super::fields::Fields,
            "wasi:http/types.incoming-request": super::server::IncomingRequest,
            "wasi:http/types.response-outparam": super::server::ResponseOutparam,
            "wasi:http/types.outgoing-response": super::server::OutgoingResponse,
            "wasi:http/types.outgoing-request": super::request::OutgoingRequest,
            "wasi:http/types.request-options": super::request::RequestOptions,
            "wasi:http/types.outgoing-body": super::request::OutgoingBody,
            "wasi:http/types.incoming-response": super::response::IncomingResponse,
            "wasi:http/types.incoming-body": super::response::IncomingBody,
            "wasi:http/types.future-trailers": super::response::FutureTrailers,
            "wasi:http/types.future-incoming-response": super::response::FutureIncomingResponse,
        },
    });
}

/// What a function of WASI's gives that fails without saying why.
type Plain<T> = wasmtime::Result<Result<T, ()>>;

/// Adds the interfaces.
pub(super) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    outgoing_handler::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)
}
