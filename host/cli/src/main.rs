//! The `pugmark` command line. A file of `commands/` is a command, and its doc comments are its
//! help. Only this crate reads the environment and prints.

mod bundles;
mod commands;
mod completion;
mod context;
mod environment;
mod error;
mod fetching;
mod handlers;
mod json_text;
mod open;
#[cfg(feature = "otel")]
mod otel;
mod output;
mod pager;
mod pins;
mod progress;
mod stored;
mod stores;
mod style;
mod view;

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;
use crate::error::{Error, exit};
use crate::output::Mode;

/// Where `--help` lists the flags that every command has.
const GLOBAL: &str = "Global options";

/// Branch, replay and inspect agent runs.
///
/// A session is an append-only log of events in a bucket. A handler reads the log and writes the
/// next event. From any point a session can be forked.
#[derive(Parser)]
#[command(name = "pugmark", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Examples:\n  \
    pugmark start\n  \
    pugmark push <<<'{\"kind\":\"user_message\",\"text\":\"hi\"}'\n  \
    pugmark run -- python agent.py\n  \
    pugmark log -A\n\
    \n\
    Exit codes:\n  \
    0 done   1 defect of pugmark   2 wrong arguments or input   3 not found\n  \
    4 another writer was first   5 stored bytes are damaged   6 bucket unavailable\n  \
    7 unknown whether it was written\n  \
    10 handler failed   11 handler met a limit   12 handler cannot be used\n  \
    20 different, where asked to tell   21 not all could be replayed\n  \
    128 and a signal's number: ended by it, such as 130 from the keyboard")]
pub struct Cli {
    /// The bucket: a folder or a URL [default: the one of the context]
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    #[arg(value_name = "URL", env = "PUGMARK_BUCKET")]
    bucket: Option<String>,

    /// Print JSON: a document, or one a line where a list streams; errors, too
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,

    /// Print nothing on standard error but errors
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    quiet: bool,

    /// Print straight to the terminal, without a pager
    #[arg(long, global = true, help_heading = GLOBAL)]
    no_pager: bool,

    #[command(flatten, next_help_heading = GLOBAL)]
    connection: stores::Connection,

    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    completion::answer();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    output::configure(Mode { json: cli.json, quiet: cli.quiet, no_pager: cli.no_pager });
    open::configure(cli.connection);
    let ended = cli.command.run(cli.bucket.as_deref());
    pager::finish();
    match ended {
        Ok(code) => code,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// Ends a command line that cannot be parsed, or that asks for help.
fn refuse(error: &clap::Error) -> ExitCode {
    let asks_for_json =
        std::env::args_os().take_while(|arg| arg != OsStr::new("--")).any(|arg| arg == "--json");
    if !error.use_stderr() || !asks_for_json {
        error.exit()
    }
    output::configure(Mode { json: true, ..Mode::default() });
    let text = error.to_string();
    let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    output::complain(&Error::invalid(message, None));
    ExitCode::from(exit::INVALID)
}
