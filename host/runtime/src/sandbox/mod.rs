//! Runs handlers that are WebAssembly components.
//!
//! A step in the sandbox is a function of what is recorded: the component, the log, the frame. The
//! guest sees no clock, environment, file or network of the machine, and no limit either: whatever
//! it meets of these is the same everywhere, or ends the step.
//!
//! [`Sandbox`] loads components: `inspect` tells what a file is (and [`report`] shows it), `adapt` makes core modules
//! components, `compile` compiles in a child process, `cache` and `stamp` make the second time
//! fast. [`Component::step`] runs one, and [`Component::instance`] keeps one; what the guest then sees is in `state` and the modules
//! around it. Nothing here knows of buckets or sessions' histories.

mod adapt;
mod cache;
mod clock;
mod command;
mod compile;
mod component;
mod engine;
mod failure;
mod http_limits;
mod imports;
mod inspect;
mod instance;
mod limits;
mod load;
mod load_error;
mod log_lines;
mod meter;
mod outside;
mod random;
mod report;
mod settings;
mod stamp;
mod state;
#[cfg(test)]
mod tests;
mod trim;
mod tuning;
mod typed;
mod wasi;
mod watchdog;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pugmark_log::Digest;

pub use compile::compile_child;
pub use component::{Component, StepSetup, World};
pub use failure::{Failure, StepError};
pub use inspect::{Access, is_wasm};
pub use instance::{Instance, Moment};
pub use limits::{Exceeded, HttpExceeded, HttpLimits, Limits};
pub use load_error::LoadError;
pub use log_lines::{Diagnostics, Level, escape};
pub use outside::{Answer, Outside, Refusal, Request, Response, Scheme};
pub use report::{Import, Producer, Report, report};
pub use settings::Settings;
pub use tuning::{Code, Optimisation, Tuning};
pub use wasi::http::syntax::authority;
pub(crate) use wasi::http::syntax::is_of_connection;

use load::Core;

/// The number of everything that a guest can see and our host decides: clocks, random numbers, the
/// form of the log, the answers of what denies. Raised with every change of it; recorded with each
/// step.
pub const ABI: u32 = 1;

/// Loads components. The engine is made when the first one is loaded.
pub struct Sandbox {
    settings: Settings,
    core: OnceLock<Arc<Core>>,
}

impl Sandbox {
    /// A sandbox that has loaded nothing yet. Cheap.
    ///
    /// # Errors
    /// If the settings name a compiler without a program.
    pub fn new(settings: Settings) -> Result<Self, LoadError> {
        if settings.compiler.as_ref().is_some_and(Vec::is_empty) {
            return Err(LoadError::Engine { reason: "the compiler has no name".to_owned() });
        }
        Ok(Self { settings, core: OnceLock::new() })
    }

    /// Loads a component, or a core module that can be made one, from a file. With a warm cache the
    /// file is not read.
    ///
    /// # Errors
    /// [`LoadError`]
    pub fn load_file(&self, path: &Path) -> Result<Component, LoadError> {
        self.core()?.load_file(path)
    }

    /// Loads a component, or a core module that can be made one. `name` is for messages.
    ///
    /// # Errors
    /// [`LoadError`]
    pub fn load_bytes(&self, name: &str, bytes: Bytes) -> Result<Component, LoadError> {
        self.core()?.load_bytes(name, bytes)
    }

    /// Loads the component with a digest. Its bytes are fetched only if its compiled code is not in
    /// the cache.
    ///
    /// # Errors
    /// [`LoadError`], or whatever `fetch` answers.
    pub fn load_digest<E: From<LoadError>>(
        &self,
        digest: Digest,
        fetch: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Component, E> {
        self.core()?.load_digest(digest, fetch)
    }

    fn core(&self) -> Result<&Arc<Core>, LoadError> {
        if let Some(core) = self.core.get() {
            return Ok(core);
        }
        let core = Arc::new(Core::new(self.settings.clone())?);
        Ok(self.core.get_or_init(|| core))
    }
}
