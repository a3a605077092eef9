//! The `pugmark` command line. A file of `commands/` is a command, and its doc comments are its
//! help. Only this crate reads the environment and prints.

mod commands;
mod context;
mod environment;
mod error;
mod handlers;
mod open;
mod output;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;

/// Branch, replay and inspect agent runs.
///
/// A session is an append-only log of events in a bucket. A handler reads the log and writes the
/// next event. From any point a session can be forked.
#[derive(Parser)]
#[command(name = "pugmark", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Exit codes:\n  \
    0 done   1 defect of pugmark   2 wrong arguments or input   3 not found\n  \
    4 another writer was first   5 stored bytes are damaged   6 bucket unavailable\n  \
    7 unknown whether it was written\n  \
    10 handler failed   11 handler met a limit   12 handler cannot be used\n  \
    128 and a signal's number: ended by it, such as 130 from the keyboard")]
struct Cli {
    /// The bucket: a folder or a URL [default: the one of the context]
    #[arg(short, long, global = true, value_name = "URL", env = "PUGMARK_BUCKET")]
    bucket: Option<String>,

    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command.run(cli.bucket.as_deref()) {
        Ok(code) => code,
        Err(error) => {
            output::note(&error.report());
            ExitCode::from(error.exit_code())
        }
    }
}
