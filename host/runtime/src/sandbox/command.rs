//! Steps of a WASI program: the log on its standard input, outputs on its standard output.

use std::sync::Arc;
use std::thread;

use wasmtime::Store;
use wasmtime::component::InstancePre;
use wasmtime_wasi::p2::bindings::sync;

use super::failure::{Failure, StepError};
use super::state::{GuestState, Phase, Stdout, bound};
use super::wasi::stdin::{Chunk, Stdin};
use crate::handler::{LogLine, LogSource, ObjectSource, Output};
use crate::protocol::input;
use crate::protocol::output::Parser;

/// The longest body that is on the line itself, in bytes. Longer ones are read as objects.
const INLINE_BODY: u64 = 1024 * 1024;

/// Lines are supplied so many bytes at a time, or one line if that is longer.
const CHUNK_BYTES: usize = 64 * 1024;

/// A WASI program, ready to be instantiated.
pub struct CommandPre(sync::CommandPre<GuestState>);

impl CommandPre {
    /// Looks up the exports of a linked component.
    ///
    /// # Errors
    /// If `wasi:cli/run` is not among them, or of another type.
    pub fn new(pre: InstancePre<GuestState>) -> wasmtime::Result<Self> {
        sync::CommandPre::new(pre).map(Self)
    }

    /// One step in a store that is fresh: what the program wants appended.
    ///
    /// # Errors
    /// How the program failed, or what failed on the host's side.
    pub fn run(
        &self,
        store: &mut Store<GuestState>,
        lines: &mut dyn LogSource,
    ) -> Result<Vec<Output>, StepError> {
        bound(store);
        let state = store.data_mut();
        state.begin(Phase::Command);
        state.stdout = Stdout::Outputs(parser(state));
        let ended = with_input(store, lines, |store| execute(&self.0, store));
        let state = store.data_mut();
        state.log_lines.finish();
        ended?;
        match std::mem::replace(&mut state.stdout, Stdout::Diagnostics) {
            Stdout::Diagnostics => Ok(Vec::new()),
            Stdout::Outputs(parser) => parser.finish().map_err(|error| state.unusable(&error)),
        }
    }
}

fn parser(state: &GuestState) -> Parser {
    Parser::new(state.limits.of_lines(), state.frame.session).without_uris()
}

/// Has `guest` run with `lines` as its standard input.
///
/// The log is borrowed for the step, and what a store holds can borrow nothing: so the log stays on
/// a thread of its own, and the guest's reads ask that thread.
fn with_input(
    store: &mut Store<GuestState>,
    lines: &mut dyn LogSource,
    guest: impl FnOnce(&mut Store<GuestState>) -> Result<(), StepError>,
) -> Result<(), StepError> {
    let objects = Arc::clone(&store.data().objects);
    thread::scope(|scope| {
        let (stdin, supply) = Stdin::supplied();
        let serve = move || supply.serve(|| next_chunk(lines, &*objects));
        thread::Builder::new().spawn_scoped(scope, serve).map_err(|source| {
            let action = "start a thread that reads the log".to_owned();
            crate::Error::Io { action, source }
        })?;
        let open = OpenInput::new(store, stdin);
        guest(&mut *open.0)
    })
}

/// Runs the program to its end, which is well if it returns or exits with code 0.
fn execute(
    pre: &sync::CommandPre<GuestState>,
    store: &mut Store<GuestState>,
) -> Result<(), StepError> {
    let returned = pre
        .instantiate(&mut *store)
        .and_then(|command| command.wasi_cli_run().call_run(&mut *store));
    match returned {
        Ok(Ok(())) => Ok(()),
        Ok(Err(())) => {
            let message = "its `run` returned an error".to_owned();
            Err(Failure::Refused { message }.into())
        }
        Err(error) => match store.data_mut().ended_by(error) {
            StepError::Failure(Failure::Exit { code: 0 }) => Ok(()),
            other => Err(other),
        },
    }
}

/// A store whose guest has an input; closed again however the guest ends, a panic of the host's
/// included: the thread that supplies the input waits for that.
struct OpenInput<'a>(&'a mut Store<GuestState>);

impl<'a> OpenInput<'a> {
    fn new(store: &'a mut Store<GuestState>, stdin: Stdin) -> Self {
        store.data_mut().stdin = stdin;
        Self(store)
    }
}

impl Drop for OpenInput<'_> {
    fn drop(&mut self) {
        self.0.data_mut().stdin = Stdin::empty();
    }
}

/// The next lines of the log, as the program reads them.
fn next_chunk(lines: &mut dyn LogSource, objects: &dyn ObjectSource) -> Chunk {
    let mut chunk = Vec::new();
    while chunk.len() < CHUNK_BYTES {
        let Some(line) = lines.next_line()? else { break };
        append(&mut chunk, &line, objects)?;
    }
    Ok((!chunk.is_empty()).then(|| chunk.into()))
}

fn append(
    chunk: &mut Vec<u8>,
    line: &LogLine,
    objects: &dyn ObjectSource,
) -> Result<(), crate::Error> {
    let (hash, size) = (line.entry.hash(), line.entry.size());
    let body = match line.entry.data() {
        Some(data) => Some(data.clone()),
        None if size <= INLINE_BODY => objects.read(&hash, 0, size)?,
        None => None,
    };
    input::append(chunk, line, &format!("pugmark:{hash}"), body.as_deref());
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pugmark_log::{Attributes, Digest, Draft};

    use super::*;

    struct Bodies(Bytes);

    impl ObjectSource for Bodies {
        fn size(&self, _: &Digest) -> Result<Option<u64>, crate::Error> {
            Ok(Some(self.0.len() as u64))
        }

        fn read(&self, _: &Digest, at: u64, len: u64) -> Result<Option<Bytes>, crate::Error> {
            assert_eq!((at, len), (0, self.0.len() as u64));
            Ok(Some(self.0.clone()))
        }
    }

    struct Lines(Vec<LogLine>);

    impl LogSource for Lines {
        fn next_line(&mut self) -> Result<Option<LogLine>, crate::Error> {
            Ok(if self.0.is_empty() { None } else { Some(self.0.remove(0)) })
        }
    }

    fn line_of(body: &Bytes) -> String {
        let entry = Draft::push(body.clone(), Attributes::default()).build().unwrap();
        let mut lines = Lines(vec![LogLine { position: 0, event: "push", entry }]);
        let chunk = next_chunk(&mut lines, &Bodies(body.clone())).unwrap().unwrap();
        String::from_utf8(chunk.to_vec()).unwrap()
    }

    #[test]
    fn bodies_are_on_the_line_up_to_a_mebibyte() {
        assert_eq!(
            line_of(&Bytes::from_static(b"x")),
            concat!(
                r#"{"event":"push","position":0,"url":"pugmark:sha256:2d711642b726b04401627ca9"#,
                r#"fbac32f5c8530fb1903cc4db02258717921a4881","size":1,"hash":"sha256:2d711642b726b0"#,
                r#"4401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","data":"eA=="}"#,
                "\n"
            )
        );
        assert!(line_of(&vec![0; 1024 * 1024].into()).contains(r#","data":"AAAA"#));
        assert!(!line_of(&vec![0; 1024 * 1024 + 1].into()).contains("data"));
    }

    #[test]
    fn lines_come_a_chunk_at_a_time() {
        let body = Bytes::from(vec![b'x'; 1000]);
        let entry = Draft::push(body.clone(), Attributes::default()).build().unwrap();
        let line = LogLine { position: 0, event: "push", entry };
        let mut lines = Lines(vec![line; 50]);
        let objects = Bodies(body);
        let chunk = next_chunk(&mut lines, &objects).unwrap().unwrap();
        let newlines = memchr::memchr_iter(b'\n', &chunk).count();
        assert!(chunk.len() >= CHUNK_BYTES && chunk.len() < CHUNK_BYTES + 2000);
        assert_eq!(lines.0.len(), 50 - newlines);
        assert!(next_chunk(&mut lines, &objects).unwrap().is_some());
        assert!(next_chunk(&mut lines, &objects).unwrap().is_none());
    }
}
