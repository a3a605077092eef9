//! What one instance of a guest holds on the host's side.
//!
//! All that a guest can see comes from here, and all of it follows from what is recorded: no host
//! function looks at the machine's clocks, environment, files or network.

use std::sync::Arc;

use pugmark_log::Digest;
use wasmtime::component::{Resource, ResourceTable, ResourceTableError};
use wasmtime::{Store, format_err};

use super::clock::{self, Clock};
use super::failure::{Failure, StepError, classify};
use super::instance::Moment;
use super::limits::{Exceeded, Limits, Meter};
use super::log_lines::{Diagnostics, LogLines, Stream};
use super::outside::Outside;
use super::random::Random;
use super::wasi::denied::Denied;
use super::wasi::http::HttpState;
use super::wasi::stdin::Stdin;
use crate::handler::{Frame, ObjectSource};
use crate::protocol::output::{OutputError, OutputErrorKind, Parser};

/// What an instance is made with.
pub struct Setup {
    /// What the step may use.
    pub limits: Limits,
    /// What the guest sees of its step.
    pub frame: Frame,
    /// The bodies that the log names.
    pub objects: Arc<dyn ObjectSource>,
    /// The digest of the component, as it runs.
    pub component: Digest,
    /// The key of secure random, from [`super::random::secure_seed`].
    pub secure_seed: [u8; 32],
    /// Where the guest's diagnostics go.
    pub diagnostics: Diagnostics,
    /// Who answers its requests; `None` if all are denied.
    pub outside: Option<Box<dyn Outside>>,
}

/// Which of its functions a guest runs: clocks and random numbers depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// A typed handler is instantiated.
    Instantiate,
    /// A typed handler takes an entry.
    Fold {
        /// Where the entry stands in the log.
        position: u64,
    },
    /// A typed handler decides.
    Decide,
    /// A command, from its instantiation to its end.
    Command,
}

/// Where a guest's standard output goes.
pub(super) enum Stdout {
    /// Read as outputs.
    Outputs(Parser),
    /// To the diagnostics.
    Diagnostics,
}

/// The data of a guest's store.
pub struct GuestState {
    /// Counts memories and tables.
    pub meter: Meter,
    pub(super) limits: Limits,
    pub(super) frame: Frame,
    pub(super) objects: Arc<dyn ObjectSource>,
    pub(super) phase: Phase,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) stdin: Stdin,
    pub(super) stdout: Stdout,
    pub(super) log_lines: LogLines,
    pub(super) table: ResourceTable,
    pub(super) denied: Denied,
    pub(super) http: HttpState,
    pub(super) outside: Option<Box<dyn Outside>>,
    object_read_bytes: u64,
    /// Why a host function ended the step, where the error that unwinds the guest cannot say it.
    abort: Option<StepError>,
}

impl GuestState {
    /// The state of an instance that has not run yet.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(setup.limits.handles);
        let http = HttpState::new(&setup.limits.http);
        Self {
            meter: Meter::new(&setup.limits),
            log_lines: LogLines::new(setup.diagnostics, &setup.limits),
            limits: setup.limits,
            frame: setup.frame,
            objects: setup.objects,
            phase: Phase::Instantiate,
            clock: Clock::starting_at(clock::instantiation_start()),
            random: Random::new(setup.component, setup.secure_seed),
            stdin: Stdin::empty(),
            stdout: Stdout::Diagnostics,
            table,
            denied: Denied::default(),
            http,
            outside: setup.outside,
            object_read_bytes: 0,
            abort: None,
        }
    }

    /// Has an instance that is kept go on with another step of its session: what a guest can see of
    /// the step, and what is counted for each step, starts over.
    pub(super) fn begin_step(&mut self, moment: &Moment, secure_seed: [u8; 32]) {
        self.frame.snapshot = moment.snapshot;
        self.frame.clock = moment.clock;
        self.random.reseed(secure_seed);
        self.log_lines.restart();
        self.http.restart();
        self.object_read_bytes = 0;
    }

    /// Sets clocks and random numbers for the call that comes next.
    pub(super) fn begin(&mut self, phase: Phase) {
        self.phase = phase;
        self.random.begin(phase);
        match phase {
            Phase::Instantiate => self.clock = Clock::starting_at(clock::instantiation_start()),
            Phase::Fold { position } => self.clock.restart(clock::fold_start(position)),
            Phase::Decide => self.clock.restart(self.frame.clock),
            Phase::Command => self.clock = Clock::starting_at(self.frame.clock),
        }
    }

    /// A new handle for the guest: it holds `T`, and the guest knows it as a `Tag`.
    pub(super) fn hand_out<T: Send + 'static, Tag: 'static>(
        &mut self,
        held: T,
    ) -> wasmtime::Result<Resource<Tag>> {
        match self.table.push(held) {
            Ok(resource) => Ok(Resource::new_own(resource.rep())),
            Err(ResourceTableError::Full) => {
                Err(Exceeded::Handles { limit: self.limits.handles }.into())
            }
            Err(other) => Err(other.into()),
        }
    }

    /// What a handle of the guest's holds.
    pub(super) fn held<T: Clone + 'static, Tag: 'static>(
        &self,
        handle: &Resource<Tag>,
    ) -> wasmtime::Result<T> {
        Ok(self.table.get(&Resource::<T>::new_borrow(handle.rep()))?.clone())
    }

    /// Ends a handle that holds `T`.
    pub(super) fn take_back<T: 'static, Tag: 'static>(
        &mut self,
        handle: &Resource<Tag>,
    ) -> wasmtime::Result<()> {
        self.table.delete(Resource::<T>::new_own(handle.rep()))?;
        Ok(())
    }

    /// Whether one request may ask for `asked` bytes.
    pub(super) fn check_read(&self, asked: u64) -> Result<(), Exceeded> {
        let limit = self.limits.read_bytes;
        if asked > limit { Err(Exceeded::Read { limit, asked }) } else { Ok(()) }
    }

    /// Counts a read of `len` bytes of an object.
    pub(super) fn count_object_read(&mut self, len: u64) -> Result<(), Exceeded> {
        self.check_read(len)?;
        let limit = self.limits.object_read_bytes;
        self.object_read_bytes = self.object_read_bytes.saturating_add(len);
        if self.object_read_bytes > limit { Err(Exceeded::ObjectReads { limit }) } else { Ok(()) }
    }

    /// The guest has answered well: fails if it asked less of the outside than is recorded.
    pub(super) fn finish_outside(&mut self) -> Result<(), StepError> {
        self.outside.as_mut().map_or(Ok(()), |outside| outside.finish())
    }

    /// Takes what the guest wrote to its standard output.
    pub(super) fn write_stdout(&mut self, bytes: &[u8]) -> wasmtime::Result<()> {
        match &mut self.stdout {
            Stdout::Diagnostics => Ok(self.log_lines.write(Stream::Stdout, bytes)?),
            Stdout::Outputs(parser) => match parser.push(bytes) {
                Ok(()) => Ok(()),
                Err(error) => Err(self.abort(self.unusable(&error))),
            },
        }
    }

    /// What a line of the guest's output that cannot be used means for the step.
    pub(super) fn unusable(&self, error: &OutputError) -> StepError {
        match error.kind {
            OutputErrorKind::TooMany { .. } => {
                Exceeded::Outputs { limit: self.limits.outputs }.into()
            }
            OutputErrorKind::TotalTooLong { .. } | OutputErrorKind::LineTooLong { .. } => {
                Exceeded::Output { limit: self.limits.output_bytes }.into()
            }
            ref kind => Failure::Output { line: error.line, message: format!("it {kind}") }.into(),
        }
    }

    /// Ends the step for `reason`: the answer is to be returned from the host function.
    pub(super) fn abort(&mut self, reason: impl Into<StepError>) -> wasmtime::Error {
        self.abort = Some(reason.into());
        format_err!("the host ended the step")
    }

    /// How a guest ended whose call came back with `error`.
    pub(super) fn ended_by(&mut self, error: wasmtime::Error) -> StepError {
        classify(error, self.abort.take(), &self.limits)
    }
}

/// Bounds what the engine itself does for the guest in `store`, so that no single call makes the
/// host copy more than a step may write, and no handles pile up on its side.
pub(super) fn bound(store: &mut Store<GuestState>) {
    let limits = &store.data().limits;
    let (handles, call_bytes) = (limits.handles, limits.call_bytes());
    store.set_max_component_handles(handles);
    store.set_hostcall_fuel(usize::try_from(call_bytes).unwrap_or(usize::MAX));
}
