//! A handler as a subprocess: the log on standard input, its outputs on standard output, bodies
//! over HTTP. Must write nothing to standard output until the whole decision is there.

mod http;
mod session;
mod wire;

use std::error::Error as _;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use crate::Handler;
use crate::log::Level;
pub(crate) use session::session;

/// Why a step failed. Nothing of it was written, unless writing is what failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("standard input cannot be read")]
    Input { source: io::Error },
    #[error("line {number} of standard input")]
    Line { number: u64, source: wire::Error },
    #[error("the handler failed: {reason}")]
    Handler { reason: String },
    #[error("standard output cannot be written")]
    Output { source: io::Error },
}

/// Runs one step of `H` over standard input and output; for a handler's `main`. Success is exit
/// code 0; a failure is told on standard error and commits nothing.
#[must_use]
pub fn run<H: Handler>() -> ExitCode {
    match step::<H>(io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let mut message = failure.to_string();
            let mut source = failure.source();
            while let Some(error) = source {
                message = format!("{message}: {error}");
                source = error.source();
            }
            log(Level::Error, &message);
            ExitCode::FAILURE
        }
    }
}

fn step<H: Handler>(mut input: impl BufRead, mut output: impl Write) -> Result<(), Failure> {
    let mut state = H::State::default();
    let mut line = Vec::new();
    let (mut number, mut entries) = (0, 0);
    loop {
        line.clear();
        let len = input.read_until(b'\n', &mut line).map_err(|source| Failure::Input { source })?;
        if len == 0 {
            break;
        }
        number += 1;
        let event =
            wire::read(&line, entries).map_err(|source| Failure::Line { number, source })?;
        if let Some(event) = event {
            entries += 1;
            H::fold(&mut state, &event);
        }
    }
    let (outputs, next) =
        H::decide(&state).settle().map_err(|reason| Failure::Handler { reason })?;
    output
        .write_all(&wire::write(&outputs, &next))
        .and_then(|()| output.flush())
        .map_err(|source| Failure::Output { source })
}

/// Exactly `len` bytes from `offset`, which the object has. One that cannot be read ends the step,
/// as it would in the sandbox: if it were an error, a handler might take it for an event that it
/// does not understand, and go on to a wrong decision.
pub(crate) fn read_object(url: &str, offset: u64, len: usize) -> Vec<u8> {
    match http::get(url, offset, len) {
        Ok(body) => body,
        Err(error) => match error.source() {
            Some(source) => panic!("{error}: {source}"),
            None => panic!("{error}"),
        },
    }
}

pub(crate) fn log(level: Level, message: &str) {
    let level = match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    // A reader that has gone away is no reason to fail the step.
    let _ = writeln!(io::stderr(), "{level}: {message}");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Decision, Event, Kind, Output};

    /// Appends what it saw, then does what the last body says.
    struct Probe;

    impl Handler for Probe {
        type State = Vec<(u64, Kind, String)>;

        fn fold(state: &mut Self::State, event: &Event) {
            state.push((event.position(), event.kind(), event.text().unwrap_or("?").to_owned()));
        }

        fn decide(state: &Self::State) -> Decision {
            let seen = Output::text(format!("{state:?}"));
            match state.last().map(|(_, _, text)| text.as_str()) {
                Some("pause") => Decision::append(seen).then_pause("enough"),
                Some("sleep") => Decision::sleep(Duration::from_millis(1_500), "later"),
                Some("fail") => Decision::fail("told so"),
                Some(_) => {
                    Decision::append(seen.name("seen").metadata("b", "2").metadata("a", "1"))
                }
                None => Decision::nothing(),
            }
        }
    }

    fn run_step(input: &str) -> Result<String, Failure> {
        let mut output = Vec::new();
        step::<Probe>(input.as_bytes(), &mut output)?;
        Ok(String::from_utf8(output).unwrap())
    }

    #[test]
    fn golden_outputs() {
        let input = concat!(
            r#"{"event":"start","url":"u","size":1,"data":"QQ=="}"#,
            "\n\n",
            r#"{"event":"push","url":"u","size":1,"name":"","metadata":{},"later":[1],"data":"Qg=="}"#,
        );
        assert_eq!(
            run_step(input).unwrap(),
            concat!(
                r#"{"data":"WygwLCBTdGFydCwgIkEiKSwgKDEsIFB1c2gsICJCIild","name":"seen","#,
                r#""content-type":"text/plain","metadata":{"a":"1","b":"2"}}"#,
                "\n"
            )
        );
        assert_eq!(run_step("").unwrap(), "");
    }

    #[test]
    fn golden_pause_and_sleep() {
        let pause = r#"{"event":"push","url":"u","position":9,"size":5,"data":"cGF1c2U="}"#;
        assert_eq!(
            run_step(pause).unwrap(),
            concat!(
                r#"{"data":"Wyg5LCBQdXNoLCAicGF1c2UiKV0=","content-type":"text/plain"}"#,
                "\n",
                r#"{"data":"ZW5vdWdo","content-type":"application/vnd.pugmark.pause+text"}"#,
                "\n"
            )
        );
        let sleep = r#"{"event":"wake","url":"u","size":5,"data":"c2xlZXA="}"#;
        assert_eq!(
            run_step(sleep).unwrap(),
            concat!(
                r#"{"data":"bGF0ZXI=","content-type":"application/vnd.pugmark.pause+text","#,
                r#""metadata":{"duration":"1.500s"}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_failed_step_writes_nothing() {
        let fail = r#"{"event":"push","url":"u","size":4,"data":"ZmFpbA=="}"#;
        assert_eq!(run_step(fail).unwrap_err().to_string(), "the handler failed: told so");
        let broken = run_step("\n{").unwrap_err();
        assert_eq!(broken.to_string(), "line 2 of standard input");
    }
}
