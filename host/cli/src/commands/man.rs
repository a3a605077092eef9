use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _};

use crate::Cli;
use crate::error::Error;
use crate::output::to_stdout;

/// Print the manual page, or write the pages of all commands to a folder
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark man | man -l -\n  \
    pugmark man ~/.local/share/man/man1")]
pub struct Man {
    /// The folder; made if it is not there
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Man {
    pub fn run(self) -> Result<ExitCode, Error> {
        let Some(folder) = self.folder else {
            let page = clap_mangen::Man::new(Cli::command());
            to_stdout(|mut out| page.render(&mut out))?;
            return Ok(ExitCode::SUCCESS);
        };
        std::fs::create_dir_all(&folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &folder))
            .map_err(|source| Error::File {
                action: "write the manual pages to",
                path: folder.display().to_string(),
                source,
            })?;
        to_stdout(|out| writeln!(out, "{}", folder.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
