//! Writing to standard output and standard error.
//!
//! Data goes to standard output, everything else to standard error. How (for a person or as JSON,
//! through a pager or not) is decided here, once; commands say only what there is to write.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{LazyLock, OnceLock};

use serde::Serialize;

use crate::error::Error;
use crate::pager;
use crate::style::{Style, paint_notes};

/// How this invocation writes.
#[derive(Clone, Copy, Default)]
pub struct Mode {
    /// JSON in place of text.
    pub json: bool,
    /// Nothing on standard error but errors.
    pub quiet: bool,
    /// No pager even on a terminal.
    pub no_pager: bool,
}

static MODE: OnceLock<Mode> = OnceLock::new();
static STDOUT_IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());

/// Sets the mode, once, before anything is written.
pub fn configure(mode: Mode) {
    // Looked up before a pager takes standard output over.
    LazyLock::force(&STDOUT_IS_TERMINAL);
    let _ = MODE.set(mode);
}

/// The mode of this invocation.
pub fn mode() -> Mode {
    MODE.get().copied().unwrap_or_default()
}

/// Whether JSON is asked for.
pub fn is_json() -> bool {
    mode().json
}

/// Whether a person reads standard output, directly or through the pager.
pub fn on_terminal() -> bool {
    *STDOUT_IS_TERMINAL
}

/// Runs `write` on a buffered standard output. A reader that has gone away, as in `| head`, ends
/// the command quietly.
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    pager::start_if_wanted();
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => quit_quietly(),
        other => other,
    }
}

/// Writes a JSON document, on a line of its own, to standard output.
pub fn to_json(view: &impl Serialize) -> Result<(), Error> {
    let line = json_line(view)?;
    Ok(to_stdout(|out| out.write_all(&line))?)
}

/// Writes one JSON document a line.
pub fn to_json_lines<T: Serialize>(views: impl IntoIterator<Item = T>) -> Result<(), Error> {
    let mut lines = Vec::new();
    for view in views {
        lines.extend_from_slice(&json_line(&view)?);
    }
    Ok(to_stdout(|out| out.write_all(&lines))?)
}

fn json_line(view: &impl Serialize) -> Result<Vec<u8>, Error> {
    let mut line = serde_json::to_vec(view).map_err(|source| Error::Json { source })?;
    line.push(b'\n');
    Ok(line)
}

/// Ends the process: whoever read our output has seen enough.
pub fn quit_quietly() -> ! {
    pager::finish();
    // What is buffered has nowhere to go; destructors that would write it again must not run.
    std::process::exit(0)
}

/// A line on standard error; nobody reading it is no reason to fail. With `--json` a JSON document
/// of its own, with `-q` nothing.
pub fn note(text: &str) {
    #[derive(Serialize)]
    struct Note<'a> {
        note: &'a str,
    }
    let Mode { json, quiet, .. } = mode();
    if quiet {
        return;
    }
    let _ = match json.then(|| json_line(&Note { note: text })) {
        Some(Ok(line)) => io::stderr().write_all(&line),
        _ => writeln!(io::stderr(), "{text}"),
    };
}

/// Reports an error on standard error.
pub fn complain(error: &Error) {
    if is_json() {
        if let Ok(line) = json_line(&error.view()) {
            let _ = io::stderr().write_all(&line);
        }
        return;
    }
    let mut text = format!("{} {}", paint_notes(Style::Error, "error:"), error.message());
    if let Some(hint) = error.hint() {
        text.push_str(&format!("\n{} {hint}", paint_notes(Style::Hint, "hint:")));
    }
    let _ = writeln!(io::stderr(), "{text}");
}

/// Text that others wrote, made safe for a terminal; line breaks stay.
pub fn escape(text: &str) -> String {
    text.split('\n').map(pugmark_runtime::sandbox::escape).collect::<Vec<_>>().join("\n")
}

/// [`escape`] for what must stay one line: line breaks and tabs are escaped, too.
pub fn escape_line(text: &str) -> String {
    pugmark_runtime::sandbox::escape(text).replace('\t', "\\t")
}

/// A length for people: `43 B`, `1.5 KiB`, `18.2 MiB`.
pub fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A count with its noun: `1 event`, `2 events`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_moves_a_terminal() {
        assert_eq!(escape("a\x1b[31m\u{202e}b\n\té"), "a\\u{1b}[31m\\u{202e}b\n\té");
        assert_eq!(escape_line("a\nb\t"), "a\\u{a}b\\t");
    }

    #[test]
    fn sizes_for_people() {
        assert_eq!(human_size(1023), "1023 B");
        assert_eq!(human_size(1536), "1.5 KiB");
        assert_eq!(human_size(19_083_000), "18.2 MiB");
    }

    #[test]
    fn counts_for_people() {
        assert_eq!(counted(1, "event"), "1 event");
        assert_eq!(counted(0, "event"), "0 events");
    }
}
