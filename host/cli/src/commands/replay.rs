mod bisect;
mod bundled;
mod document;
mod meter;
mod show;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pugmark_log::{Bucket, Snapshot};
use pugmark_runtime::Handler;
use pugmark_runtime::process::ProcessSpec;
use pugmark_runtime::replay::{Options, Outcome, Progress, Report, replay};
use pugmark_runtime::sandbox::{Code, Component, Limits, Sandbox};

use crate::bundles::BundleLimits;
use crate::commands::run::{bounds, timeout};
use crate::completion;
use crate::error::{Error, exit};
use crate::handlers::{self, Manner, Routes};
use crate::open::Workspace;
use crate::stores::is_remote;
use meter::Meter;

/// Run the recorded steps again, and compare what comes out with what is recorded
///
/// Every step that ran in the sandbox is run from its record, inherited ones too: the same
/// component on the same log has to answer the same, to the byte. Nothing is written and nothing
/// fetched. The first step that answers something else is shown, and the exit code is 20; it is 21
/// if none does, but not all could be replayed.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark replay\n  \
    pugmark replay -s 019a8c:40 --from 20\n  \
    pugmark replay --with target/triage.wasm\n  \
    pugmark replay --bisect build-1.wasm build-2.wasm build-3.wasm\n  \
    pugmark replay run.pug tests/pins\n  \
    pugmark replay --process agent='python agent.py' --json")]
pub struct Replay {
    /// Bundles, or folders of pinned ones, to replay in place of a session of the bucket
    #[arg(value_name = "BUNDLE", conflicts_with_all = ["session", "from"])]
    bundles: Vec<PathBuf>,

    /// The session and, after a colon, the last version [default: the current one, the newest]
    #[arg(short, long, value_name = "SESSION[:VERSION]", add = completion::sessions())]
    session: Option<String>,

    /// Only the session's own steps from this version on
    #[arg(long, value_name = "VERSION")]
    from: Option<u64>,

    /// Only the steps of the handler with this name
    #[arg(long, value_name = "NAME")]
    handler: Option<String>,

    /// Run this component in place of the recorded ones, on all steps, and count those that differ
    #[arg(long, value_name = "FILE", conflicts_with = "bisect")]
    with: Option<PathBuf>,

    /// Try these components in this order, and name the first that differs from what is recorded
    #[arg(long, value_name = "FILE", num_args = 1..)]
    bisect: Vec<PathBuf>,

    /// Start every step afresh, instead of keeping an instance and checking where it differs
    #[arg(long)]
    cold: bool,

    /// Run components in an interpreter in place of machine code: slower, and another witness
    #[arg(long)]
    interpreted: bool,

    /// Run the steps of a process again, too, with this command. May be repeated
    #[arg(long = "process", value_name = "NAME=COMMAND")]
    processes: Vec<String>,

    /// How long a step may take, such as 90s or 1h30m [default: 15m; in the sandbox, 1m]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,

    /// A bound of the sandbox, such as memory=512MiB. May be repeated
    ///
    /// Names: memory, table, output, object-reads, read, log-lines, stderr, handles, outputs.
    #[arg(long = "limit", value_name = "NAME=VALUE")]
    limits: Vec<String>,

    /// How many handlers run at a time [default: one for each processor]
    #[arg(long, value_name = "COUNT")]
    jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    bundle_limits: BundleLimits,
}

/// What a replay runs with.
struct Bench {
    sandbox: Arc<Sandbox>,
    limits: Limits,
    processes: BTreeMap<String, ProcessSpec>,
    jobs: NonZeroUsize,
}

/// What is replayed.
struct Target {
    bucket: Bucket,
    upto: Snapshot,
    /// Whether the bucket is read without a network.
    local: bool,
}

impl Replay {
    pub fn run(self, bucket: Option<&str>) -> Result<ExitCode, Error> {
        let bench = self.bench()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(bench.jobs.get())
            .enable_all()
            .build()
            .map_err(|source| pugmark_runtime::Error::Io {
                action: "start a runtime".into(),
                source,
            })?;
        let ended = runtime.block_on(async {
            if !self.bundles.is_empty() {
                return self.run_bundles(&bench).await;
            }
            let workspace = Workspace::open(bucket)?;
            let upto = workspace.snapshot(self.session.as_deref()).await?;
            let local = !is_remote(&workspace.context.bucket);
            let target = Target { bucket: workspace.bucket.clone(), upto, local };
            self.run_on(&target, &bench).await.map(ExitCode::from)
        });
        // After an error, a guest that is still on its thread must not keep the command from ending.
        runtime.shutdown_background();
        ended
    }

    async fn run_on(&self, target: &Target, bench: &Bench) -> Result<u8, Error> {
        if let Some(from) = self.from.filter(|from| *from > target.upto.version) {
            let last = target.upto.version;
            let message = format!("--from {from} is behind the last version, {last}");
            return Err(Error::invalid(message, None));
        }
        if self.bisect.is_empty() {
            let with = self.with.as_deref().map(|file| bench.load(file)).transpose()?;
            let report = self.replay(bench, target, with.as_ref(), with.is_some()).await?;
            show::report(&report, self.with.as_deref())?;
            return Ok(exit_code(&report));
        }
        let mut builds = Vec::new();
        for file in &self.bisect {
            let build = bench.load(file)?;
            let report = self.replay(bench, target, Some(&build), false).await?;
            let differs = report.outcome() == Outcome::Different;
            builds.push(bisect::Build { file: file.clone(), report });
            if differs {
                break;
            }
        }
        bisect::show(&builds, &self.bisect)?;
        let code = builds.last().map_or(0, |build| exit_code(&build.report));
        let incomplete = builds.iter().any(|build| build.report.outcome() == Outcome::Incomplete);
        Ok(if code == 0 && incomplete { exit::INCOMPLETE } else { code })
    }

    /// Replays all steps, or those up to the first that differs.
    async fn replay(
        &self,
        bench: &Bench,
        target: &Target,
        with: Option<&Component>,
        all: bool,
    ) -> Result<Report, Error> {
        let progress = Arc::new(Progress::default());
        let _meter = Meter::new(&progress);
        let options = Options {
            from: self.from,
            handler: self.handler.clone(),
            cold: self.cold,
            with: with.cloned(),
            all,
            processes: bench.processes.clone(),
            limits: bench.limits.clone(),
            jobs: bench.jobs,
            local: target.local,
        };
        Ok(replay(&target.bucket, &target.upto, &bench.sandbox, options, &progress).await?)
    }

    fn bench(&self) -> Result<Bench, Error> {
        let unusable = |source| Error::Load { path: "the sandbox".to_owned(), source };
        let mut processes = BTreeMap::new();
        if !self.processes.is_empty() {
            let manner = Manner { timeout: self.timeout, rpc: false };
            for route in Routes::parse(&self.processes, &[])?.into_vec() {
                let Handler::Process(spec) = handlers::load(&route, manner)? else {
                    return Err(Error::invalid(
                        format!("--process {} is not a program", route.name),
                        "--with runs another component",
                    ));
                };
                processes.insert(route.name, spec);
            }
        }
        let mut settings = handlers::settings();
        if self.interpreted {
            settings.tuning.code = Code::Interpreted;
        }
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Ok(Bench {
            sandbox: Arc::new(Sandbox::new(settings).map_err(unusable)?),
            limits: bounds(&self.limits, self.timeout)?,
            processes,
            jobs: self.jobs.unwrap_or(cores),
        })
    }
}

impl Bench {
    fn load(&self, file: &Path) -> Result<Component, Error> {
        self.sandbox
            .load_file(file)
            .map_err(|source| Error::Load { path: file.display().to_string(), source })
    }
}

/// The exit code that a report comes to.
fn exit_code(report: &Report) -> u8 {
    match report.outcome() {
        Outcome::Identical => 0,
        Outcome::Different => exit::DIFFERENT,
        Outcome::Incomplete => exit::INCOMPLETE,
    }
}
