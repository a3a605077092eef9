//! From a file, bytes or a digest to a component that can run.
//!
//! With a warm cache a file is neither read nor hashed: a record says which component it holds, and
//! the component's digest says which compiled code is its own.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use pugmark_log::Digest;
use wasmtime::Engine;
use wasmtime::component::{Component as Compiled, Linker};

use super::adapt::{Prepared, prepare};
use super::cache::{Cache, Hit};
use super::command::CommandPre;
use super::component::{Component, Program};
use super::load_error::LoadError;
use super::settings::Settings;
use super::stamp::Identity;
use super::state::GuestState;
use super::typed::TypedPre;
use super::watchdog::Watchdog;
use super::{World, compile, engine, wasi};

/// What all components share: one engine, one linker, one watchdog, one cache.
pub(super) struct Core {
    pub engine: Engine,
    pub watchdog: Watchdog,
    pub cache: Option<Cache>,
    pub settings: Settings,
    linker: Linker<GuestState>,
}

/// Where a component's bytes are to be had again.
#[derive(Clone)]
pub(super) enum Source {
    /// Here.
    Memory(Bytes),
    /// In the file that it was loaded from.
    File(PathBuf),
    /// Where its digest came from.
    Elsewhere,
}

impl Core {
    pub(super) fn new(settings: Settings) -> Result<Self, LoadError> {
        let failed = |reason: String| LoadError::Engine { reason };
        let engine =
            engine::build(&settings.tuning).map_err(|error| failed(format!("{error:#}")))?;
        let mut linker = Linker::new(&engine);
        wasi::add_to_linker(&mut linker).map_err(|error| failed(format!("{error:#}")))?;
        let watchdog = Watchdog::start(&engine).map_err(|error| failed(error.to_string()))?;
        let cache = settings.cache_dir.as_deref().and_then(|directory| {
            Cache::open(directory, engine::configuration(&engine))
                .inspect_err(|reason| {
                    let directory = directory.display();
                    (settings.notice)(&format!(
                        "compiled code is not kept in {directory}: {reason}"
                    ));
                })
                .ok()
        });
        Ok(Self { engine, watchdog, cache, settings, linker })
    }

    pub(super) fn load_file(self: &Arc<Self>, path: &Path) -> Result<Component, LoadError> {
        let name = path.display().to_string();
        let failed = |source| LoadError::Io { path: name.clone(), source };
        let canonical = fs::canonicalize(path).map_err(failed)?;
        let before = Identity::of(&fs::metadata(&canonical).map_err(failed)?);
        let recalled = self.cache.as_ref().and_then(|cache| cache.recall(&canonical, &before));
        let source = Source::File(canonical.clone());
        if let Some(digest) = recalled
            && let Some((compiled, world)) = self.cached(&digest)
        {
            return self.finish(&name, digest, source, &compiled, world);
        }
        let prepared = self.prepare_file(&name, &canonical)?;
        let digest = Digest::of(&prepared.bytes);
        // A file that changes while it is read is not recorded.
        let after = fs::metadata(&canonical).map(|metadata| Identity::of(&metadata));
        if let Some(cache) = &self.cache
            && after.is_ok_and(|after| after == before)
        {
            cache.remember(&canonical, &before, digest);
        }
        self.load_prepared(&name, digest, &prepared, source)
    }

    pub(super) fn load_bytes(
        self: &Arc<Self>,
        name: &str,
        bytes: Bytes,
    ) -> Result<Component, LoadError> {
        let prepared = prepare(name, bytes, &self.settings)?;
        let source = Source::Memory(prepared.bytes.clone());
        self.load_prepared(name, Digest::of(&prepared.bytes), &prepared, source)
    }

    pub(super) fn load_digest<E: From<LoadError>>(
        self: &Arc<Self>,
        digest: Digest,
        fetch: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Component, E> {
        let name = format!("component {digest}");
        if let Some((compiled, world)) = self.cached(&digest) {
            return Ok(self.finish(&name, digest, Source::Elsewhere, &compiled, world)?);
        }
        let prepared = prepare(&name, fetch()?, &self.settings)?;
        let found = Digest::of(&prepared.bytes);
        if found != digest {
            let reason = format!("its digest is {found}");
            return Err(LoadError::Invalid { name, reason }.into());
        }
        let source = Source::Memory(prepared.bytes.clone());
        Ok(self.load_prepared(&name, digest, &prepared, source)?)
    }

    /// Reads a file and makes of it a component that can run.
    pub(super) fn prepare_file(&self, name: &str, path: &Path) -> Result<Prepared, LoadError> {
        let limit = self.settings.max_component_bytes;
        let failed = |source| LoadError::Io { path: name.to_owned(), source };
        // Opening a pipe waits for whoever writes to it.
        if !fs::metadata(path).map_err(failed)?.is_file() {
            return Err(failed(io::Error::other("it is no regular file")));
        }
        let file = File::open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        prepare(name, bytes.into(), &self.settings)
    }

    fn load_prepared(
        self: &Arc<Self>,
        name: &str,
        digest: Digest,
        prepared: &Prepared,
        source: Source,
    ) -> Result<Component, LoadError> {
        if prepared.adapted
            && let Some(cache) = &self.cache
        {
            cache.keep_component(&digest, &prepared.bytes);
        }
        let compiled = match self.cached(&digest) {
            Some((compiled, _)) => compiled,
            None => self.compile(name, &digest, prepared)?,
        };
        self.finish(name, digest, source, &compiled, prepared.world)
    }

    /// Compiled code from the cache; `None` if there is none that can be used.
    fn cached(&self, digest: &Digest) -> Option<(Compiled, World)> {
        let cache = self.cache.as_ref()?;
        let hit = cache.find(digest)?;
        let compiled = self.map(&hit).inspect_err(|_| cache.discard(digest)).ok()?;
        Some((compiled, hit.world))
    }

    fn compile(
        &self,
        name: &str,
        digest: &Digest,
        prepared: &Prepared,
    ) -> Result<Compiled, LoadError> {
        let code = compile::compile(&self.engine, &self.settings, name, &prepared.bytes)?;
        let kept = self.cache.as_ref().and_then(|cache| cache.keep(digest, prepared.world, &code));
        if let Some(hit) = kept
            && let Ok(compiled) = self.map(&hit)
        {
            return Ok(compiled);
        }
        // SAFETY: `code` is what this program, or a child that is this program, has just compiled;
        // it has been in nobody else's hands.
        let compiled = unsafe { Compiled::deserialize(&self.engine, &code) };
        compiled.map_err(|error| LoadError::Compile {
            name: name.to_owned(),
            reason: format!("{error:#}"),
        })
    }

    fn map(&self, hit: &Hit) -> wasmtime::Result<Compiled> {
        // SAFETY: a hit is a file that this program compiled under this very configuration: it is
        // in a directory that only this user can reach, was written whole and renamed into place,
        // and either has not changed since, by its inode and times, or was hashed again. Nothing
        // changes such a file in place: it is replaced or removed, which leaves the mapping be.
        unsafe { Compiled::deserialize_file(&self.engine, &hit.path) }
    }

    fn finish(
        self: &Arc<Self>,
        name: &str,
        digest: Digest,
        source: Source,
        compiled: &Compiled,
        world: World,
    ) -> Result<Component, LoadError> {
        let link = || -> wasmtime::Result<Program> {
            let linked = self.linker.instantiate_pre(compiled)?;
            Ok(match world {
                World::Typed => Program::Typed(TypedPre::new(linked)?),
                World::Command => Program::Command(CommandPre::new(linked)?),
            })
        };
        let program = link().map_err(|error| LoadError::Invalid {
            name: name.to_owned(),
            reason: format!("{error:#}"),
        })?;
        let core = Arc::clone(self);
        let program = Arc::new(program);
        Ok(Component { core, name: name.to_owned(), digest, seed: digest, source, program })
    }
}
