//! Files and sockets: there for language runtimes to import, and out of reach.
//!
//! A guest is handed no directory and can make no socket, with constant answers and no call to the
//! operating system. The methods of descriptors and sockets are then beyond it, since a handle can
//! only be used by who was given it; they are linked as `wasmtime-wasi` has them.

use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::sockets::{
    instance_network, ip_name_lookup, network, tcp_create_socket,
};
use wasmtime_wasi::p2::bindings::sync;
use wasmtime_wasi::p2::bindings::sync::sockets::udp_create_socket;
use wasmtime_wasi::p2::{DynPollable, SocketError, TcpSocket, UdpSocket};
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsCtx, WasiSocketsCtxView};

use super::whole;
use crate::sandbox::state::GuestState;

/// What the methods that no guest can call are linked with.
#[derive(Default)]
pub(in crate::sandbox) struct Denied {
    filesystem: WasiFilesystemCtx,
    sockets: WasiSocketsCtx,
}

/// A guest's handle on a network where nothing can be reached.
struct NoNetwork;

/// Adds the interfaces that deny.
pub(super) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    preopens::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    sync::filesystem::types::add_to_linker::<_, WasiFilesystem>(linker, unreachable_files)?;
    let options = network::LinkOptions::default();
    network::add_to_linker::<_, HasSelf<GuestState>>(linker, &options, whole)?;
    instance_network::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    ip_name_lookup::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    tcp_create_socket::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    udp_create_socket::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    sync::sockets::tcp::add_to_linker::<_, WasiSockets>(linker, unreachable_sockets)?;
    sync::sockets::udp::add_to_linker::<_, WasiSockets>(linker, unreachable_sockets)
}

fn unreachable_files(state: &mut GuestState) -> WasiFilesystemCtxView<'_> {
    WasiFilesystemCtxView { ctx: &mut state.denied.filesystem, table: &mut state.table }
}

fn unreachable_sockets(state: &mut GuestState) -> WasiSocketsCtxView<'_> {
    WasiSocketsCtxView { ctx: &mut state.denied.sockets, table: &mut state.table }
}

fn access_denied<T>() -> Result<T, SocketError> {
    Err(network::ErrorCode::AccessDenied.into())
}

impl preopens::Host for GuestState {
    fn get_directories(
        &mut self,
    ) -> wasmtime::Result<Vec<(Resource<preopens::Descriptor>, String)>> {
        Ok(Vec::new())
    }
}

impl network::Host for GuestState {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<network::ErrorCode> {
        error.downcast()
    }

    /// Never called: no guest holds an error.
    fn network_error_code(
        &mut self,
        _: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<network::ErrorCode>> {
        Ok(None)
    }
}

impl network::HostNetwork for GuestState {
    fn drop(&mut self, handle: Resource<network::Network>) -> wasmtime::Result<()> {
        self.take_back::<NoNetwork, _>(&handle)
    }
}

impl instance_network::Host for GuestState {
    fn instance_network(&mut self) -> wasmtime::Result<Resource<network::Network>> {
        self.hand_out(NoNetwork)
    }
}

impl ip_name_lookup::Host for GuestState {
    fn resolve_addresses(
        &mut self,
        _: Resource<network::Network>,
        _: String,
    ) -> Result<Resource<ip_name_lookup::ResolveAddressStream>, SocketError> {
        access_denied()
    }
}

impl ip_name_lookup::HostResolveAddressStream for GuestState {
    /// Never called: no guest holds one.
    fn resolve_next_address(
        &mut self,
        _: Resource<ip_name_lookup::ResolveAddressStream>,
    ) -> Result<Option<network::IpAddress>, SocketError> {
        access_denied()
    }

    /// Never called: no guest holds one.
    fn subscribe(
        &mut self,
        _: Resource<ip_name_lookup::ResolveAddressStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        Err(wasmtime::format_err!("no address is looked up"))
    }

    /// Never called: no guest holds one.
    fn drop(&mut self, _: Resource<ip_name_lookup::ResolveAddressStream>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl tcp_create_socket::Host for GuestState {
    fn create_tcp_socket(
        &mut self,
        _: network::IpAddressFamily,
    ) -> Result<Resource<TcpSocket>, SocketError> {
        access_denied()
    }
}

impl udp_create_socket::Host for GuestState {
    fn create_udp_socket(
        &mut self,
        _: network::IpAddressFamily,
    ) -> Result<Resource<UdpSocket>, SocketError> {
        access_denied()
    }
}
