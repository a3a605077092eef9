//! An instance of a typed handler that is kept from one step of a session to the next, and takes
//! only what is new into its state.
//!
//! Until `decide`, what a guest sees does not depend on the step: so the state of an instance that
//! was kept is that of one that starts over, if `decide` changes nothing. Whoever keeps instances
//! has to reckon with handlers whose `decide` does.

use pugmark_log::{Digest, SessionId, Timestamp};
use wasmtime::Store;

use super::component::{Component, Program, StepSetup};
use super::failure::StepError;
use super::outside::Outside;
use super::state::GuestState;
use super::typed::{self, TypedHandler};
use super::{random, watchdog};
use crate::handler::{LogSource, Output};

/// What of all that a step shows to its handler differs from one step of a session to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Version of the snapshot that the step began on.
    pub snapshot: u64,
    /// When that snapshot was created.
    pub clock: Timestamp,
    /// The digest of the log that the step sees.
    pub log_digest: Digest,
}

/// A handler with the state that it folded so far.
pub struct Instance {
    component: Component,
    session: SessionId,
    time_ms: u64,
    /// Whether it has made no step yet: the time that its instantiation took is the first one's.
    is_new: bool,
    store: Store<GuestState>,
    handler: TypedHandler,
}

impl Component {
    /// Instantiates a typed handler, for the steps of one session that differ in nothing but their
    /// [`Moment`]. `None` for a program, which has no state between steps. Blocks; the calling
    /// thread needs 2 MiB of stack.
    ///
    /// # Errors
    /// As [`Component::step`].
    pub fn instance(&self, setup: StepSetup) -> Result<Option<Instance>, StepError> {
        let Program::Typed(program) = &*self.program else { return Ok(None) };
        let (session, time_ms) = (setup.frame.session, setup.limits.time_ms);
        let mut store = self.store(setup);
        let running = self.core.watchdog.watch();
        // Before anything of the guest runs: instantiation may run for ever, too.
        store.set_epoch_deadline(watchdog::ticks(time_ms));
        let handler = program.instantiate(&mut store)?;
        drop(running);
        let component = self.clone();
        Ok(Some(Instance { component, session, time_ms, is_new: true, store, handler }))
    }
}

impl Instance {
    /// Has `outside` answer what the next step asks by HTTP; `None` denies all of it.
    pub fn set_outside(&mut self, outside: Option<Box<dyn Outside>>) {
        self.store.data_mut().outside = outside;
    }

    /// Folds `lines`, those that are new since the last step, and decides. The limits hold for each
    /// step anew; those on memory, tables and handles hold for all steps together. Blocks.
    ///
    /// An instance that fails is gone: its state is undefined.
    ///
    /// # Errors
    /// As [`Component::step`].
    pub fn step(
        mut self,
        moment: &Moment,
        lines: &mut dyn LogSource,
    ) -> Result<(Self, Vec<Output>), StepError> {
        let seed = random::secure_seed(self.session, moment.log_digest, self.component.seed);
        self.store.data_mut().begin_step(moment, seed);
        let running = self.component.core.watchdog.watch();
        if !std::mem::take(&mut self.is_new) {
            self.store.set_epoch_deadline(watchdog::ticks(self.time_ms));
        }
        let outputs = typed::step(&self.handler, &mut self.store, lines)?;
        self.store.data_mut().finish_outside()?;
        drop(running);
        Ok((self, outputs))
    }
}
