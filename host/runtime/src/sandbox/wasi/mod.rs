//! WASI 0.2 for guests, without the machine under it.
//!
//! Streams, poll, clocks, random numbers and the command line are served from the guest's own
//! state; HTTP by who answers for the outside. Files, sockets and terminals are there because language runtimes import them, and deny.
//! Nothing in here makes a call to the operating system.

mod cli;
mod clocks;
pub(super) mod denied;
pub(super) mod http;
mod io;
mod poll;
mod random;
pub(super) mod stdin;
#[cfg(test)]
mod tests;

use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::bindings::{self, sync};

use super::imports;
use super::state::GuestState;

/// Adds all that a component of either world may import. What is not added is refused when the
/// component is linked.
///
/// # Errors
/// Only if an interface is there already.
pub fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    imports::add_to_linker(linker)?;
    add_io(linker)?;
    http::add_to_linker(linker)?;
    add_command_line(linker)?;
    denied::add_to_linker(linker)
}

/// The identity, in the form that the generated code asks for.
pub(super) fn whole(state: &mut GuestState) -> &mut GuestState {
    state
}

fn add_io(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    use bindings::clocks::{monotonic_clock, wall_clock};
    use bindings::random::{insecure, insecure_seed, random};
    use wasmtime_wasi_io::bindings::wasi::io::error;

    error::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    sync::io::poll::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    sync::io::streams::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    monotonic_clock::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    wall_clock::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    random::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    insecure::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    insecure_seed::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)
}

fn add_command_line(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    use bindings::cli::{
        environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr,
        terminal_stdin, terminal_stdout,
    };

    environment::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    exit::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    stdin::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    stdout::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    stderr::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    terminal_input::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    terminal_output::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    terminal_stdin::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    terminal_stdout::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    terminal_stderr::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)
}
