//! The counter as a subprocess.

use std::process::ExitCode;

fn main() -> ExitCode {
    pugmark_guest::run::<counter::Counter>()
}
