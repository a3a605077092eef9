//! A component that can run, and one step of it.

use std::sync::Arc;

use bytes::Bytes;
use pugmark_log::Digest;
use serde::{Deserialize, Serialize};
use wasmtime::{Store, UpdateDeadline};

use super::command::CommandPre;
use super::failure::StepError;
use super::limits::Limits;
use super::load::{Core, Source};
use super::load_error::LoadError;
use super::log_lines::Diagnostics;
use super::outside::Outside;
use super::random;
use super::state::{self, GuestState};
use super::typed::TypedPre;
use super::watchdog;
use crate::handler::{Frame, LogSource, ObjectSource, Output};

/// How a component is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// By the two functions of `pugmark:handler/step`.
    Typed,
    /// As a program that reads the log from its standard input.
    Command,
}

/// A component, loaded and linked. Each step is an instance of its own. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    pub(super) core: Arc<Core>,
    pub(super) name: String,
    pub(super) digest: Digest,
    /// What random numbers derive from: the digest, unless it stands in for another component.
    pub(super) seed: Digest,
    pub(super) source: Source,
    pub(super) program: Arc<Program>,
}

/// What is called of a component.
pub(super) enum Program {
    /// `pugmark:handler/step`.
    Typed(TypedPre),
    /// `wasi:cli/run`.
    Command(CommandPre),
}

/// What one step is made with.
pub struct StepSetup {
    /// What the handler sees of its step.
    pub frame: Frame,
    /// The digest of the log that the handler sees.
    pub log_digest: Digest,
    /// The bodies that the log names.
    pub objects: Arc<dyn ObjectSource>,
    /// What the step may use.
    pub limits: Limits,
    /// Where the handler's diagnostics go.
    pub diagnostics: Diagnostics,
    /// Who answers what it asks by HTTP; `None` if all of that is denied.
    pub outside: Option<Box<dyn Outside>>,
}

impl Component {
    /// The digest of the component as it runs: of a core module, after adaptation.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The same component, drawing the random numbers that `other` draws: two builds of a handler
    /// are compared by what they do, not by what they draw.
    #[must_use]
    pub fn drawing_as(&self, other: Digest) -> Self {
        Self { seed: other, ..self.clone() }
    }

    /// How the component is called.
    #[must_use]
    pub fn world(&self) -> World {
        match *self.program {
            Program::Typed(_) => World::Typed,
            Program::Command(_) => World::Command,
        }
    }

    /// The component's bytes, whose digest is [`Self::digest`]. Read again where they are not at
    /// hand.
    ///
    /// # Errors
    /// If the file is gone or has changed, or the component was loaded by its digest from a warm
    /// cache: then they are where the digest came from.
    pub fn bytes(&self) -> Result<Bytes, LoadError> {
        if let Source::Memory(bytes) = &self.source {
            return Ok(bytes.clone());
        }
        let kept = self.core.cache.as_ref().and_then(|cache| cache.component(&self.digest));
        if let Some(kept) = kept.filter(|bytes| Digest::of(bytes) == self.digest) {
            return Ok(kept);
        }
        if let Source::File(path) = &self.source {
            let prepared = self.core.prepare_file(&self.name, path)?;
            if Digest::of(&prepared.bytes) == self.digest {
                return Ok(prepared.bytes);
            }
        }
        Err(LoadError::Changed { name: self.name.clone() })
    }

    /// Runs one step, from instantiation to its outputs. Blocks, for as long as the time limit
    /// allows. The calling thread needs 2 MiB of stack.
    ///
    /// # Errors
    /// [`StepError::Failure`] if the handler fails or meets a limit, [`StepError::Host`] if the log
    /// or an object cannot be read.
    pub fn step(
        &self,
        setup: StepSetup,
        lines: &mut dyn LogSource,
    ) -> Result<Vec<Output>, StepError> {
        let time_ms = setup.limits.time_ms;
        let mut store = self.store(setup);
        let _running = self.core.watchdog.watch();
        // Before anything of the guest runs: instantiation may run for ever, too.
        store.set_epoch_deadline(watchdog::ticks(time_ms));
        let outputs = match &*self.program {
            Program::Typed(program) => program.run(&mut store, lines)?,
            Program::Command(program) => program.run(&mut store, lines)?,
        };
        store.data_mut().finish_outside()?;
        Ok(outputs)
    }

    /// A store for one instance, in which nothing has run yet.
    pub(super) fn store(&self, setup: StepSetup) -> Store<GuestState> {
        let secure_seed = random::secure_seed(setup.frame.session, setup.log_digest, self.seed);
        let state = GuestState::new(state::Setup {
            limits: setup.limits,
            frame: setup.frame,
            objects: setup.objects,
            component: self.seed,
            secure_seed,
            diagnostics: setup.diagnostics,
            outside: setup.outside,
        });
        let mut store = Store::new(&self.core.engine, state);
        store.limiter(|state| &mut state.meter);
        store.epoch_deadline_callback(|mut store| {
            // Time that it waited for answers is not its own.
            Ok(match store.data_mut().http.take_waited_ms() {
                0 => UpdateDeadline::Interrupt,
                waited_ms => UpdateDeadline::Continue(watchdog::ticks(waited_ms)),
            })
        });
        store
    }
}
