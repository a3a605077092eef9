//! The triage handler as a subprocess.

use std::process::ExitCode;

fn main() -> ExitCode {
    pugmark_guest::run::<triage::Triage>()
}
