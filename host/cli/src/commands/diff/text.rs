//! A comparison as text.

use std::io::{self, Write};

use serde_json::Value;

use crate::commands::diff::entry::{Bodies, Difference};
use crate::commands::diff::json;
use crate::commands::diff::{Change, Counts, Sides};
use crate::commands::objects;
use crate::error::Error;
use crate::output::{counted, escape_line, human_size, to_stdout};
use crate::style::{Style, paint};

/// Characters of a value that are shown; --json has all of them.
const VALUE_CHARS: usize = 200;

pub(super) fn begin(sides: &Sides) -> Result<(), Error> {
    let side = |sign, style, snapshot: &pugmark_log::Snapshot| {
        let events = counted(snapshot.log.count(), "event");
        paint(style, &format!("{sign} {}:{}  {events}", snapshot.session, snapshot.version))
    };
    let mut shared = counted(sides.common, "event");
    shared.push_str(" in common");
    if let Some(point) = sides.ancestor {
        shared.push_str(&format!(", forked from {}:{}", point.session, point.version));
    }
    to_stdout(|out| {
        writeln!(out, "{}", side("---", Style::Removed, &sides.a))?;
        writeln!(out, "{}", side("+++", Style::Added, &sides.b))?;
        writeln!(out, "{}", paint(Style::Dim, &shared))
    })?;
    Ok(())
}

pub(super) fn change(position: u64, change: &Change) -> Result<(), Error> {
    let place = paint(Style::Strong, &format!("@{position}"));
    to_stdout(|out| match change {
        Change::Removed(entry) => {
            write!(out, "{place} {} ", paint(Style::Removed, "-"))?;
            objects::line(out, "", entry)
        }
        Change::Added(entry) => {
            write!(out, "{place} {} ", paint(Style::Added, "+"))?;
            objects::line(out, "", entry)
        }
        Change::Changed(both) => {
            let (a, b, difference) = both.as_ref();
            let name = b.attributes().name.as_deref().or(a.attributes().name.as_deref());
            let name = name.map(|name| format!(" {}", paint(Style::Name, &escape_line(name))));
            writeln!(out, "{place} {}{}", paint(Style::Changed, "~"), name.unwrap_or_default())?;
            changed(out, difference)?;
            if matches!(difference.bodies, Bodies::Bytes) {
                let body = |entry: &pugmark_log::Entry| {
                    format!("{}  {}", entry.hash(), human_size(entry.size()))
                };
                removed(out, &body(a))?;
                added(out, &body(b))?;
            }
            Ok(())
        }
    })?;
    Ok(())
}

pub(super) fn end(counts: Counts) -> Result<(), Error> {
    let Counts { changed, removed, added } = counts;
    let line = if counts == Counts::default() {
        "no difference".to_owned()
    } else {
        format!("{changed} changed, {removed} removed, {added} added")
    };
    to_stdout(|out| writeln!(out, "{}", paint(Style::Dim, &line)))?;
    Ok(())
}

fn changed(out: &mut dyn Write, difference: &Difference) -> io::Result<()> {
    for attribute in &difference.attributes {
        let (name, from, to) = (&attribute.name, &attribute.from, &attribute.to);
        let quoted = |text: &String| value(&Value::from(text.as_str()));
        let name = escape_line(name);
        match (from, to) {
            (Some(from), Some(to)) => both(out, &name, &quoted(from), &quoted(to))?,
            (Some(from), None) => removed(out, &format!("{name}: {}", quoted(from)))?,
            (None, to) => {
                added(out, &format!("{name}: {}", to.as_ref().map(quoted).unwrap_or_default()))?;
            }
        }
    }
    match &difference.bodies {
        Bodies::Same | Bodies::Bytes => Ok(()),
        Bodies::Json { changes } if changes.is_empty() => {
            writeln!(out, "  {} the same JSON, written differently", paint(Style::Changed, "~"))
        }
        Bodies::Json { changes } => changes.iter().try_for_each(|change| json_change(out, change)),
        Bodies::Text { line, removed: gone, added: new } => {
            writeln!(out, "  {}", paint(Style::Dim, &format!("line {line}")))?;
            gone.iter().try_for_each(|line| removed(out, &escape_line(line)))?;
            new.iter().try_for_each(|line| added(out, &escape_line(line)))
        }
    }
}

/// A line for one place of a JSON document.
pub(in crate::commands) fn json_change(
    out: &mut dyn Write,
    change: &json::Change,
) -> io::Result<()> {
    match change {
        json::Change::Added { path, to } => {
            added(out, &format!("{}: {}", pointer(path), value(to)))
        }
        json::Change::Removed { path, from } => {
            removed(out, &format!("{}: {}", pointer(path), value(from)))
        }
        json::Change::Changed { path, from, to } => {
            both(out, &pointer(path), &value(from), &value(to))
        }
    }
}

fn removed(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "  {}", paint(Style::Removed, &format!("- {text}")))
}

fn added(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "  {}", paint(Style::Added, &format!("+ {text}")))
}

fn both(out: &mut dyn Write, place: &str, from: &str, to: &str) -> io::Result<()> {
    let (from, to) = (paint(Style::Removed, from), paint(Style::Added, to));
    writeln!(out, "  {} {place}: {from} → {to}", paint(Style::Changed, "~"))
}

/// The pointer of a whole document is empty; it is shown as what it stands for.
fn pointer(path: &str) -> String {
    if path.is_empty() { "(document)".to_owned() } else { escape_line(path) }
}

fn value(value: &Value) -> String {
    let text = escape_line(&value.to_string());
    match text.char_indices().nth(VALUE_CHARS) {
        None => text,
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
    }
}
