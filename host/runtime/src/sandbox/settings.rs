//! How components are compiled and where compiled code is kept.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::tuning::Tuning;

/// What a sandbox is made with. Bounds of steps are not here but in [`super::Limits`].
#[derive(Clone)]
pub struct Settings {
    /// Where compiled code is kept; made if it is not there. Compiled code is kept nowhere where
    /// this is `None`, or names what others could write to. Default: `None`.
    pub cache_dir: Option<PathBuf>,
    /// Program and arguments of the child that compiles, and that makes components of core
    /// modules; it calls [`super::compile_child`]. In this process and without limits where this
    /// is `None`, for modules that are trusted: another may end the process. Default: `None`.
    pub compiler: Option<Vec<OsString>>,
    /// Takes what a person may want to know while it goes on. Default: nobody is told.
    pub notice: Arc<dyn Fn(&str) + Send + Sync>,
    /// Bytes of memory that a compilation may take. Default: 2 GiB.
    pub compile_memory_bytes: u64,
    /// Milliseconds that a compilation may take. Default: 120,000.
    pub compile_time_ms: u64,
    /// Bytes of the largest component, and of the largest file, that is loaded. Default: 64 MiB.
    pub max_component_bytes: u64,
    /// How the engine goes about it, which no guest can see. Default: as each field says.
    pub tuning: Tuning,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cache_dir: None,
            compiler: None,
            notice: Arc::new(|_| {}),
            compile_memory_bytes: 2 << 30,
            compile_time_ms: 120_000,
            max_component_bytes: 64 << 20,
            tuning: Tuning::default(),
        }
    }
}
