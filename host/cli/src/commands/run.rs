mod http;
mod progress;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pugmark_log::{Bucket, Manifest, NodeCache, Snapshot};
use pugmark_runtime::protocol::duration;
use pugmark_runtime::sandbox::{Level, Limits};
use pugmark_runtime::{
    Context, Fetcher, Handler, Keeper, Lifecycle, Options, Trace, keep_component,
};
use tokio::signal::unix::SignalKind;

use crate::commands::start::{Pin, start};
use crate::completion;
use crate::error::Error;
use crate::fetching::{self, Stores};
use crate::handlers::{self, Manner, Place, Route, Routes};
use crate::open::Workspace;
use crate::output::note;
use crate::stored::{self, Stored, Which};
use http::HttpOptions;
use progress::Progress;

/// Bytes of the log that a loop keeps in memory between its steps.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Run a handler on a session, step by step, until it pauses
///
/// A step gives the handler the log and appends what it answers, all or nothing. The loop ends when
/// the handler pauses or has nothing to add. A handler that is a WebAssembly file runs in the
/// sandbox; one at an address is called over HTTP; any other is a subprocess. Where none is given,
/// the session's own is run, from the bucket.
///
/// With --json, a document for each step goes to standard output, and one for the end.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark run --start -- python agent.py\n  \
    pugmark run --start --handler triage\n  \
    pugmark run --once -- ./agent.wasm --verbose\n  \
    pugmark run --fork -- python agent.py\n  \
    pugmark run --rpc -- python server.py\n  \
    pugmark run -- http://127.0.0.1:8080/agent\n  \
    pugmark run --allow-uri file:///srv/data -- python agent.py\n  \
    pugmark run --allow-http api.example.com --secret api.example.com=API_KEY -- ./agent.wasm\n  \
    pugmark run --handler python='python agent.py' --handler triage=./triage.wasm --start")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Run {
    /// The handler: a program or a WebAssembly file with its arguments, or an http(s) address
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// A handler by name, at hand or in the bucket; the session's handler field chooses. May be
    /// repeated
    ///
    /// NAME alone is the session's own or else the newest in the bucket, NAME@latest the newest,
    /// NAME@3 and NAME@sha256:… a version. With --start the new session is pinned to it, but for
    /// NAME@latest.
    #[arg(long = "handler", value_name = "NAME[=COMMAND]", conflicts_with = "command")]
    #[arg(add = completion::handlers(true))]
    handlers: Vec<String>,

    /// Create a new root session first, and make it the current one
    #[arg(long, conflicts_with_all = ["fork", "session"])]
    start: bool,

    /// Fork the session first, without a seed, and make the child the current one
    #[arg(long)]
    fork: bool,

    /// One step only
    #[arg(long)]
    once: bool,

    /// At most this many steps
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    max_steps: Option<u64>,

    /// How long a step may take, such as 90s or 1h30m [default: 15m; in the sandbox, 1m]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,

    /// A bound of the sandbox, such as memory=512MiB. May be repeated
    ///
    /// Names: memory, table, output, object-reads, read, log-lines, stderr, handles, outputs; for
    /// requests: http-requests, http-request, http-response, http-head, http-held, http-time,
    /// http-connect. Of these, output and outputs bound other handlers, too.
    #[arg(long = "limit", value_name = "NAME=VALUE")]
    limits: Vec<String>,

    /// Give a typed handler in the sandbox a fresh instance for every step
    ///
    /// Otherwise its instance is kept, and each step folds only what is new.
    #[arg(long)]
    cold: bool,

    /// Keep programs between steps, and call them over HTTP on a socket that they get as file
    /// descriptor 3
    ///
    /// In Python: `pugmark.http.serve(WSGIPugmark(handler))`.
    #[arg(long)]
    rpc: bool,

    /// Let handlers outside the sandbox have objects fetched from under this URL. May be repeated
    ///
    /// file://, s3://, gs:// and az:// can be fetched. Objects of the bucket itself always are.
    #[arg(long = "allow-uri", value_name = "PREFIX")]
    allowed_uris: Vec<String>,

    #[command(flatten)]
    http: HttpOptions,

    /// Also tell the handler where its session was started and forked
    #[arg(long)]
    lifecycle: bool,

    /// The session; to fork, also the version after a colon [default: the current one]
    #[arg(short, long, value_name = "SESSION[:VERSION]", add = completion::sessions())]
    session: Option<String>,
}

impl Run {
    pub fn run(self, workspace: Workspace) -> Result<ExitCode, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(
            |source| pugmark_runtime::Error::Io { action: "start a runtime".into(), source },
        )?;
        let ended = runtime.block_on(async {
            tokio::select! {
                ended = self.run_on(workspace) => ended,
                signal = told_to_end() => Err(Error::Interrupted { signal }),
            }
        });
        // A guest that is still on its thread must not keep an interrupted command from ending.
        runtime.shutdown_background();
        ended.map(|()| ExitCode::SUCCESS)
    }

    async fn run_on(self, mut workspace: Workspace) -> Result<(), Error> {
        let limits = bounds(&self.limits, self.timeout)?;
        let fetcher = self.fetcher(&workspace)?;
        let http = self.http.build()?;
        let mut progress = Progress::new()?;
        let basis = if self.start { None } else { Some(self.basis(&workspace).await?) };
        let route = self.route(basis.as_ref().map(|(_, manifest)| manifest))?;
        // The handler is loaded before a session is made for it: a bad one leaves nothing behind.
        let manifest = basis.as_ref().map(|(_, manifest)| manifest);
        let (handler, pin) = self.load(&workspace.bucket, &route, manifest).await?;
        if let Handler::Component { component, .. } = &handler {
            keep_component(&workspace.bucket, component).await?;
        }
        let (tip, manifest) = match basis {
            Some((tip, manifest)) if !self.fork => (tip, manifest),
            basis => {
                let made = create(&mut workspace, basis.map(|(tip, _)| tip), pin).await?;
                let manifest = workspace.bucket.manifest(&made.session).await?;
                (made, manifest)
            }
        };
        let bucket = workspace.bucket;
        let lifecycle =
            if self.lifecycle { Some(Lifecycle::of(&bucket, &manifest).await?) } else { None };
        let context = Context {
            trace: Some(trace(&bucket)),
            bucket,
            manifest,
            agent: route.name,
            handler,
            limits,
            diagnostics: Arc::new(|level, text| note(&format!("{}: {text}", level_name(level)))),
            fetcher: Some(fetcher),
            http,
            lifecycle,
            cache: (!self.once).then(|| Arc::new(NodeCache::new(CACHE_BYTES))),
            keeper: (!self.once && !self.cold).then(Keeper::default),
        };
        let options = Options { once: self.once, max_steps: self.max_steps };
        let ended = pugmark_runtime::run(&context, tip, options, &mut progress).await;
        progress.finish(ended.as_ref().ok()).await?;
        ended?;
        Ok(())
    }

    /// Which handler runs: one that the command line gives, or else the session's own.
    fn route(&self, manifest: Option<&Manifest>) -> Result<Route, Error> {
        let wanted = manifest.and_then(|manifest| manifest.handler.as_deref());
        match wanted {
            Some(wanted) if self.handlers.is_empty() && self.command.is_empty() => {
                Ok(Route { name: wanted.to_owned(), place: Place::Bucket(Which::Own) })
            }
            _ => {
                let routes = Routes::parse(&self.handlers, &self.command)?;
                routes.choose(wanted, !self.handlers.is_empty())
            }
        }
    }

    /// The handler, and what a session that is made for it is pinned to.
    async fn load(
        &self,
        bucket: &Bucket,
        route: &Route,
        manifest: Option<&Manifest>,
    ) -> Result<(Handler, Option<Pin>), Error> {
        let name = route.name.clone();
        let Place::Bucket(which) = &route.place else {
            let manner = Manner { timeout: self.timeout, rpc: self.rpc };
            let handler = handlers::load(route, manner)?;
            let pin = (!self.handlers.is_empty()).then_some(Pin { name, component: None });
            return Ok((handler, pin));
        };
        let stored = Stored { name: name.clone(), which: which.clone() };
        let component = stored::component(bucket, &stored, manifest).await?;
        let handler = stored::load(bucket, &name, component).await?;
        let component = (*which != Which::Latest).then_some(component);
        Ok((handler, Some(Pin { name, component })))
    }

    /// What handlers may have fetched.
    fn fetcher(&self, workspace: &Workspace) -> Result<Fetcher, Error> {
        let bucket = &workspace.context.bucket;
        fetching::check_prefixes(&self.allowed_uris)?;
        Fetcher::new(bucket, &self.allowed_uris, Arc::new(Stores::beside(bucket))).map_err(
            |failure| {
                let message = format!("--allow-uri: {failure}");
                Error::invalid(
                    message,
                    "give a URL that ends with a folder, such as s3://bucket/in",
                )
            },
        )
    }

    /// The snapshot to run or to fork, and its session's manifest.
    async fn basis(&self, workspace: &Workspace) -> Result<(Snapshot, Manifest), Error> {
        let snapshot = workspace.snapshot(self.session.as_deref()).await?;
        if !self.fork && self.session.as_ref().is_some_and(|named| named.contains(':')) {
            return Err(Error::invalid(
                "a handler runs on a session's newest version",
                "add --fork to go on from an older one",
            ));
        }
        let manifest = workspace.bucket.manifest(&snapshot.session).await?;
        Ok((snapshot, manifest))
    }
}

/// The bounds of the sandbox, from `--limit`s and `--timeout`.
pub(super) fn bounds(texts: &[String], timeout: Option<Duration>) -> Result<Limits, Error> {
    let mut limits = Limits::default();
    for text in texts {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            Error::invalid(format!("`{text}` is not a limit"), "write --limit NAME=VALUE")
        })?;
        limits.set(name, value).map_err(|reason| Error::invalid(reason, None))?;
    }
    if let Some(timeout) = timeout {
        limits.time_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    }
    Ok(limits)
}

/// The caller's trace, as its environment has it, or a new one.
fn trace(bucket: &Bucket) -> Trace {
    let variable = |name| std::env::var(name).ok();
    let caller = variable("TRACEPARENT")
        .and_then(|parent| Trace::parse(&parent, variable("TRACESTATE").as_deref()));
    caller.unwrap_or_else(|| {
        let mut random = [0; 16];
        bucket.environment().fill_random(&mut random);
        Trace::begin(random)
    })
}

/// Makes a new session, a root or a fork of `parent`, the current one.
async fn create(
    workspace: &mut Workspace,
    parent: Option<Snapshot>,
    pin: Option<Pin>,
) -> Result<Snapshot, Error> {
    let (made, from) = match parent {
        None => (start(&workspace.bucket, pin, BTreeMap::new()).await?, String::new()),
        Some(parent) => {
            let from = format!(", forked at v{}", parent.version);
            (workspace.bucket.fork(&parent, &[]).await?, from)
        }
    };
    workspace.switch_to(made.session)?;
    note(&format!("session {}{from}", made.session));
    Ok(made)
}

/// Waits for a signal that asks the command to end, and returns its number.
async fn told_to_end() -> u8 {
    let wait = |kind: SignalKind| async move {
        match tokio::signal::unix::signal(kind) {
            Ok(mut signal) => signal.recv().await,
            Err(_) => std::future::pending().await,
        };
        u8::try_from(kind.as_raw_value()).unwrap_or(0)
    };
    tokio::select! {
        signal = wait(SignalKind::interrupt()) => signal,
        signal = wait(SignalKind::terminate()) => signal,
        signal = wait(SignalKind::hangup()) => signal,
    }
}

/// Parses `--timeout`.
pub(super) fn timeout(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(limit) if limit.is_zero() => Err("a step needs some time".to_owned()),
        Ok(limit) => Ok(limit),
        Err(error) => Err(error.to_string()),
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    }
}
