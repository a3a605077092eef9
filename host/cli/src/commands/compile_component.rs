use std::io;
use std::process::ExitCode;

use clap::Args;

use crate::error::{Error, exit};
use crate::output;

/// Make a component, or compile one, under limits: what `run` starts for one it has not seen before
#[derive(Args)]
#[command(hide = true)]
pub struct CompileComponent {}

impl CompileComponent {
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "the shape of a command")]
    pub fn run(self) -> Result<ExitCode, Error> {
        match pugmark_runtime::sandbox::compile_child(io::stdin().lock(), io::stdout().lock()) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(reason) => {
                output::note(&reason);
                Ok(ExitCode::from(exit::INVALID))
            }
        }
    }
}
