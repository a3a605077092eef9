//! The interfaces of `pugmark:handler` that a guest may call.

use pugmark_log::Digest;
use wasmtime::component::{HasSelf, Linker};

use super::log_lines::Level;
use super::state::{GuestState, Phase};
use super::wasi::whole;

use self::bindings::pugmark::handler::{log, objects, session};

/// Generated from the contract in `wit/`.
pub(super) mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "pugmark:handler/handler",
        imports: { default: trappable },
    });
}

/// What a guest is told of an object that its log does not name.
const NOT_IN_LOG: &str = "not in this session's log";

/// Adds the interfaces of `pugmark:handler`.
pub(super) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    objects::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    session::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)?;
    log::add_to_linker::<_, HasSelf<GuestState>>(linker, whole)
}

/// What a guest gets from an interface whose errors are text.
type Answer<T> = wasmtime::Result<Result<T, String>>;

fn not_in_log<T>() -> Result<T, String> {
    Err(NOT_IN_LOG.to_owned())
}

impl GuestState {
    /// An object's address and length; `None` if the log does not name it.
    fn find(&mut self, hash: &str) -> wasmtime::Result<Option<(Digest, u64)>> {
        let Ok(hash) = hash.parse() else { return Ok(None) };
        match self.objects.size(&hash) {
            Ok(size) => Ok(size.map(|size| (hash, size))),
            Err(error) => Err(self.abort(error)),
        }
    }
}

impl objects::Host for GuestState {
    fn size(&mut self, hash: String) -> Answer<u64> {
        match self.find(&hash)? {
            Some((_, size)) => Ok(Ok(size)),
            None => Ok(not_in_log()),
        }
    }

    fn read(&mut self, hash: String, offset: u64, len: u32) -> Answer<Vec<u8>> {
        let Some((hash, size)) = self.find(&hash)? else { return Ok(not_in_log()) };
        let len = u64::from(len).min(size.saturating_sub(offset));
        self.count_object_read(len)?;
        if len == 0 {
            return Ok(Ok(Vec::new()));
        }
        match self.objects.read(&hash, offset, len) {
            Ok(Some(bytes)) => Ok(Ok(bytes.into())),
            Ok(None) => Ok(not_in_log()),
            Err(error) => Err(self.abort(error)),
        }
    }
}

impl session::Host for GuestState {
    fn get(&mut self) -> wasmtime::Result<session::Info> {
        let frame = &self.frame;
        Ok(session::Info {
            id: frame.session.to_string(),
            agent: frame.agent.clone(),
            // An instance that is kept folds under one snapshot and decides under others, so what
            // it folds must not depend on which.
            snapshot: match self.phase {
                Phase::Instantiate | Phase::Fold { .. } => 0,
                Phase::Decide | Phase::Command => frame.snapshot,
            },
            metadata: frame.metadata.clone().into_iter().collect(),
            extra: Vec::new(),
        })
    }
}

impl log::Host for GuestState {
    fn log(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        };
        Ok(self.log_lines.log(level, &message)?)
    }
}
