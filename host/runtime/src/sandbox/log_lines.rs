//! A guest's diagnostics: to the person who runs the step, and nowhere else.
//!
//! They are bounded, and escaped before they leave the sandbox: what a guest writes can neither
//! steer a terminal nor pass for something else. None of it is recorded.

use std::fmt::Write as _;
use std::sync::Arc;

use super::limits::{Exceeded, Limits};

/// How serious a line is; what a guest writes to its standard error is [`Level::Info`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Of use to who writes the handler.
    Debug,
    /// Worth knowing.
    Info,
    /// Something may be wrong.
    Warn,
    /// Something is wrong.
    Error,
}

/// Takes one line of a guest's diagnostics, escaped and without its line break.
pub type Diagnostics = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// Where a guest writes text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Standard output, where it carries no outputs.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Counts, cuts and escapes what a guest says.
pub struct LogLines {
    diagnostics: Diagnostics,
    line_limit: u32,
    line_bytes: usize,
    stream_limit: u64,
    lines: u32,
    stream_bytes: u64,
    /// What came after the last line break; bounded by `stream_limit`.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl LogLines {
    /// Hands lines to `diagnostics`, as many and as long as `limits` says.
    #[must_use]
    pub fn new(diagnostics: Diagnostics, limits: &Limits) -> Self {
        Self {
            diagnostics,
            line_limit: limits.log_lines,
            line_bytes: limits.log_line_bytes,
            stream_limit: limits.stderr_bytes,
            lines: 0,
            stream_bytes: 0,
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// Counts from nothing again: a new step begins.
    pub fn restart(&mut self) {
        self.lines = 0;
        self.stream_bytes = 0;
    }

    /// Takes a message from `pugmark:handler/log`, which may have several lines.
    ///
    /// # Errors
    /// [`Exceeded::LogLines`] when that makes too many lines.
    pub fn log(&mut self, level: Level, message: &str) -> Result<(), Exceeded> {
        for line in message.lines() {
            if self.lines >= self.line_limit {
                return Err(Exceeded::LogLines { limit: self.line_limit });
            }
            self.lines += 1;
            self.hand_over(level, line.as_bytes());
        }
        Ok(())
    }

    /// Takes bytes that the guest wrote to a stream, and hands over each line that is whole.
    ///
    /// # Errors
    /// [`Exceeded::Stderr`] when both streams together make too many bytes.
    pub fn write(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), Exceeded> {
        self.stream_bytes = self.stream_bytes.saturating_add(bytes.len() as u64);
        if self.stream_bytes > self.stream_limit {
            return Err(Exceeded::Stderr { limit: self.stream_limit });
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let pending = self.pending(stream);
            pending.extend_from_slice(piece);
            if pending.pop_if(|byte| *byte == b'\n').is_some() {
                let line = std::mem::take(pending);
                self.hand_over(Level::Info, &line);
            }
        }
        Ok(())
    }

    /// Hands over the lines that the guest did not end.
    pub fn finish(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let line = std::mem::take(self.pending(stream));
            if !line.is_empty() {
                self.hand_over(Level::Info, &line);
            }
        }
    }

    fn pending(&mut self, stream: Stream) -> &mut Vec<u8> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn hand_over(&self, level: Level, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (self.diagnostics)(level, &cut_and_escape(line, self.line_bytes));
    }
}

/// At most `limit` bytes of `text`, escaped; says how much it left out.
fn cut_and_escape(text: &[u8], limit: usize) -> String {
    if text.len() <= limit {
        return escape(&String::from_utf8_lossy(text));
    }
    // Not within a character: what `limit` cuts in two would show as a replacement character.
    let is_start = |index: &usize| text[*index] & 0b1100_0000 != 0b1000_0000;
    let end = (0..=limit).rev().find(is_start).unwrap_or(0);
    let mut shown = escape(&String::from_utf8_lossy(&text[..end]));
    let _ = write!(shown, " … ({} bytes in all)", text.len());
    shown
}

/// `text` with every character that can steer a terminal, reorder a line or hide in it spelled out,
/// as in `\u{1b}`. Tabs stay.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceptive(character) {
            escaped.extend(character.escape_unicode());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Control characters but the tab, line and paragraph separators, and those without a shape of
/// their own: directional marks, joiners of no width, byte order marks, tags.
fn is_deceptive(character: char) -> bool {
    match character {
        '\t' => false,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => character.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    type Seen = Arc<Mutex<Vec<(Level, String)>>>;

    fn lines(limits: &Limits) -> (LogLines, Seen) {
        let seen = Seen::default();
        let sink = Arc::clone(&seen);
        let diagnostics: Diagnostics =
            Arc::new(move |level, line| sink.lock().unwrap().push((level, line.to_owned())));
        (LogLines::new(diagnostics, limits), seen)
    }

    fn texts(seen: &Seen) -> Vec<String> {
        seen.lock().unwrap().iter().map(|(_, line)| line.clone()).collect()
    }

    #[test]
    fn spells_out_what_could_deceive() {
        assert_eq!(escape("plain täxt\twith a tab, 日本"), "plain täxt\twith a tab, 日本");
        assert_eq!(
            escape("\u{1b}[2J\r\n\u{7}\u{7f}\u{9b}"),
            r"\u{1b}[2J\u{d}\u{a}\u{7}\u{7f}\u{9b}"
        );
        assert_eq!(
            escape("a\u{202e}b\u{2066}c\u{2069}\u{200f}"),
            r"a\u{202e}b\u{2066}c\u{2069}\u{200f}"
        );
        assert_eq!(
            escape("\u{feff}\u{200b}\u{2028}\u{e0041}"),
            r"\u{feff}\u{200b}\u{2028}\u{e0041}"
        );
    }

    #[test]
    fn a_message_is_split_cut_and_counted() {
        let limits = Limits { log_lines: 3, log_line_bytes: 4, ..Limits::default() };
        let (mut lines, seen) = lines(&limits);
        lines.log(Level::Warn, "one\r\ntwo").unwrap();
        lines.log(Level::Error, "abcé!").unwrap();
        assert!(matches!(lines.log(Level::Info, "x"), Err(Exceeded::LogLines { .. })));
        assert_eq!(texts(&seen), ["one", "two", "abc … (6 bytes in all)"]);
        assert_eq!(seen.lock().unwrap()[2].0, Level::Error);
    }

    #[test]
    fn streams_are_handed_over_line_by_line() {
        let (mut lines, seen) = lines(&Limits::default());
        lines.write(Stream::Stderr, b"he").unwrap();
        lines.write(Stream::Stdout, b"out").unwrap();
        lines.write(Stream::Stderr, b"llo\nwor\xff").unwrap();
        assert_eq!(texts(&seen), ["hello"]);
        lines.write(Stream::Stderr, b"ld\n\n").unwrap();
        lines.finish();
        assert_eq!(texts(&seen), ["hello", "wor\u{fffd}ld", "", "out"]);
    }

    #[test]
    fn a_flood_ends_the_step() {
        let limits = Limits { stderr_bytes: 4, ..Limits::default() };
        let (mut lines, _) = lines(&limits);
        lines.write(Stream::Stderr, b"abc\n").unwrap();
        assert!(matches!(lines.write(Stream::Stdout, b"d"), Err(Exceeded::Stderr { .. })));
    }
}
