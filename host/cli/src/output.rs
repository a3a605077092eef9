//! Writing to standard output and standard error.

use std::io::{self, Write};

/// Runs `write` on a buffered standard output. A reader that has gone away, as in `| head`, ends
/// the command quietly.
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => quit_quietly(),
        other => other,
    }
}

/// Ends the process: whoever read our output has seen enough.
pub fn quit_quietly() -> ! {
    // What is buffered has nowhere to go; destructors that would write it again must not run.
    std::process::exit(0)
}

/// A line on standard error; nobody reading it is no reason to fail.
pub fn note(text: &str) {
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
}
