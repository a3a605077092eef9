//! Colour: a few quiet marks, for terminals only.
//!
//! `NO_COLOR` turns it off, `CLICOLOR_FORCE` on even where there is no terminal.

use std::env;
use std::io::{self, IsTerminal as _};
use std::sync::LazyLock;

use crate::output;

/// What a piece of text is; how that looks is decided in one place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Of little interest: times, full hashes.
    Dim,
    /// A heading, or what is current.
    Strong,
    /// A name that a person gave.
    Name,
    /// Something waits for the user or for time.
    Waiting,
    /// Only the second of two compared things has it.
    Added,
    /// Only the first of two compared things has it.
    Removed,
    /// Both have it, and it differs.
    Changed,
    /// Code, and keys of JSON objects.
    Code,
    /// The word that begins an error.
    Error,
    /// The word that begins a hint.
    Hint,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Dim => "2",
            Self::Strong => "1",
            Self::Name | Self::Added => "32",
            Self::Waiting | Self::Changed => "33",
            Self::Removed => "31",
            Self::Code | Self::Hint => "36",
            Self::Error => "1;31",
        }
    }
}

static OF_DATA: LazyLock<bool> =
    LazyLock::new(|| !output::is_json() && wanted(output::on_terminal()));
static OF_NOTES: LazyLock<bool> = LazyLock::new(|| wanted(io::stderr().is_terminal()));

/// Text for standard output, coloured where that is wanted.
pub fn paint(style: Style, text: &str) -> String {
    painted(*OF_DATA, style, text)
}

/// Text for standard error, coloured where that is wanted.
pub fn paint_notes(style: Style, text: &str) -> String {
    painted(*OF_NOTES, style, text)
}

fn painted(coloured: bool, style: Style, text: &str) -> String {
    if coloured && !text.is_empty() {
        format!("\x1b[{}m{text}\x1b[0m", style.code())
    } else {
        text.to_owned()
    }
}

fn wanted(terminal: bool) -> bool {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return true;
    }
    terminal && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paints_only_where_wanted() {
        assert_eq!(painted(true, Style::Added, "x"), "\x1b[32mx\x1b[0m");
        assert_eq!(painted(true, Style::Added, ""), "");
        assert_eq!(painted(false, Style::Added, "x"), "x");
    }
}
