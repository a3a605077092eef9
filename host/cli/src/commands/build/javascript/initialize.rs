//! What stands between componentize-js and wizer, so that two builds are the same.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::Args;

use super::frozen;
use crate::commands::build::{file, tool};
use crate::error::{Error, exit};
use crate::output::note;

/// What the engine knows the folder of the build as.
const NAME: &str = "/pugmark";

/// Initialize the engine of a JavaScript component: what `build` has componentize-js start
///
/// Runs wizer on an engine that sees neither time nor chance, nor the names of this machine's
/// folders.
#[derive(Args)]
#[command(hide = true)]
pub struct InitializeJavascript {
    /// The folder whose `node_modules` has wizer
    #[arg(value_name = "FOLDER")]
    tools: PathBuf,

    /// The folder of the build
    #[arg(value_name = "FOLDER")]
    work: PathBuf,

    /// Wizer's arguments; the last is the module, one is `-o=FILE`
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl InitializeJavascript {
    pub fn run(self) -> Result<ExitCode, Error> {
        let output = self.arguments.iter().find_map(|argument| argument.strip_prefix("-o="));
        let (Some(input), Some(output)) = (self.arguments.last(), output) else {
            return Err(Error::invalid("no module is named", "`pugmark build` calls this"));
        };
        let (input, output) = (Path::new(input), Path::new(output));
        let module = fs::read(input).map_err(|error| file("read", input, error))?;
        let unusable = |error: frozen::Error| Error::Build {
            path: input.display().to_string(),
            reason: error.to_string(),
            hint: None,
        };
        let frozen = frozen::freeze(&module).map_err(unusable)?;
        fs::write(input, &frozen).map_err(|error| file("write", input, error))?;
        if !self.wizer()? {
            return Ok(ExitCode::from(exit::INVALID));
        }
        let initialized = fs::read(output).map_err(|error| file("read", output, error))?;
        let thawed = frozen::thaw(&module, &frozen, &initialized).map_err(unusable)?;
        fs::write(output, thawed).map_err(|error| file("write", output, error))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Runs wizer; whether it succeeded.
    fn wizer(&self) -> Result<bool, Error> {
        let work = self.work.to_string_lossy();
        let arguments =
            self.arguments.iter().map(|argument| match argument.strip_prefix("--dir=") {
                Some(folder) => {
                    OsString::from(format!("--mapdir={}::{folder}", folder.replace(&*work, NAME)))
                }
                None => OsString::from(argument),
            });
        // What the engine is to do, in the words of a command line.
        let mut words = String::new();
        io::stdin().read_to_string(&mut words)?;
        let program = program(&self.tools);
        let failed = |error| file("run", &program, error);
        let mut command = Command::new(&program);
        // The engine is given the environment: of it, only what componentize-js has put there.
        let of_the_shell = ["PWD", "OLDPWD", "SHLVL", "_"];
        for name in &of_the_shell {
            command.env_remove(name);
        }
        let mut wizer = command.args(arguments).stdin(Stdio::piped()).spawn().map_err(failed)?;
        if let Some(mut stdin) = wizer.stdin.take() {
            stdin.write_all(words.replace(&*work, NAME).as_bytes()).map_err(failed)?;
        }
        let Some(status) = tool::wait(&mut wizer, tool::LOADING).map_err(failed)? else {
            note(&format!(
                "what the modules do as they are loaded is not done after {} s",
                tool::LOADING.as_secs()
            ));
            return Ok(false);
        };
        Ok(status.success())
    }
}

/// The program that npm has installed for this kind of machine.
fn program(tools: &Path) -> PathBuf {
    let scope = tools.join("node_modules/@bytecodealliance");
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    scope.join(format!("wizer-{system}-{machine}/wizer"))
}
