//! `wasi:cli`: the arguments of the frame, standard streams, and how a guest ends.
//!
//! There is no environment, no working directory and no terminal.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::cli::{
    environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr,
    terminal_stdin, terminal_stdout,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use super::io::{Input, Writer};
use crate::sandbox::failure::Failure;
use crate::sandbox::log_lines::Stream;
use crate::sandbox::state::GuestState;

impl environment::Host for GuestState {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// The handler's name, then its arguments.
    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        let name = std::iter::once(&self.frame.agent);
        Ok(name.chain(&self.frame.args).cloned().collect())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(None)
    }
}

impl exit::Host for GuestState {
    fn exit(&mut self, status: Result<(), ()>) -> wasmtime::Result<()> {
        self.exit_with_code(u8::from(status.is_err()))
    }

    fn exit_with_code(&mut self, code: u8) -> wasmtime::Result<()> {
        Err(self.abort(Failure::Exit { code }))
    }
}

impl stdin::Host for GuestState {
    fn get_stdin(&mut self) -> wasmtime::Result<Resource<DynInputStream>> {
        self.hand_out(Input::Stdin)
    }
}

impl stdout::Host for GuestState {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.hand_out(Writer::Stream(Stream::Stdout))
    }
}

impl stderr::Host for GuestState {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.hand_out(Writer::Stream(Stream::Stderr))
    }
}

impl terminal_input::Host for GuestState {}

impl terminal_input::HostTerminalInput for GuestState {
    /// Never called: no guest holds one.
    fn drop(&mut self, _: Resource<terminal_input::TerminalInput>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl terminal_output::Host for GuestState {}

impl terminal_output::HostTerminalOutput for GuestState {
    /// Never called: no guest holds one.
    fn drop(&mut self, _: Resource<terminal_output::TerminalOutput>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl terminal_stdin::Host for GuestState {
    fn get_terminal_stdin(
        &mut self,
    ) -> wasmtime::Result<Option<Resource<terminal_input::TerminalInput>>> {
        Ok(None)
    }
}

impl terminal_stdout::Host for GuestState {
    fn get_terminal_stdout(
        &mut self,
    ) -> wasmtime::Result<Option<Resource<terminal_output::TerminalOutput>>> {
        Ok(None)
    }
}

impl terminal_stderr::Host for GuestState {
    fn get_terminal_stderr(
        &mut self,
    ) -> wasmtime::Result<Option<Resource<terminal_output::TerminalOutput>>> {
        Ok(None)
    }
}
