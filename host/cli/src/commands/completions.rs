use std::process::ExitCode;

use clap::{Args, ValueEnum};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};

use crate::completion::VARIABLE;
use crate::error::Error;
use crate::output::to_stdout;

/// Print what makes a shell complete commands, flags, sessions and names
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    echo 'source <(pugmark completions bash)' >> ~/.bashrc\n  \
    echo 'source <(pugmark completions zsh)' >> ~/.zshrc\n  \
    echo 'pugmark completions fish | source' >> ~/.config/fish/config.fish\n\
    \n\
    The shell then asks this very program for candidates. After an update, start the shell anew.")]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub fn run(self) -> Result<ExitCode, Error> {
        let shell: &dyn EnvCompleter = match self.shell {
            Shell::Bash => &Bash,
            Shell::Zsh => &Zsh,
            Shell::Fish => &Fish,
        };
        let program = completer();
        to_stdout(|out| {
            let mut script = Vec::new();
            shell.write_registration(VARIABLE, "pugmark", "pugmark", &program, &mut script)?;
            out.write_all(&script)
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The program that the shell asks: this one, as it was called. One that was found in `PATH` is
/// found there again.
fn completer() -> String {
    let called = std::env::args_os().next().unwrap_or_else(|| "pugmark".into());
    let path = std::path::PathBuf::from(called);
    let path = if path.components().count() > 1 {
        std::path::absolute(&path).unwrap_or(path)
    } else {
        path
    };
    path.to_string_lossy().into_owned()
}
