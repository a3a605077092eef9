//! The first of several builds that does not do what is recorded.
//!
//! They are tried one after the other, in the order given, up to the first that differs: halving
//! the list would find it sooner only if no build after it did what is recorded again.

use std::path::{Path, PathBuf};

use pugmark_runtime::replay::{Outcome, Report};
use serde::Serialize;

use super::show::{ReportView, first_difference, summary, warn};
use crate::error::Error;
use crate::output::{escape_line, is_json, to_json, to_stdout};
use crate::style::{Style, paint};

/// A build that was tried.
pub struct Build {
    /// Its file.
    pub file: PathBuf,
    /// What a replay with it found, up to the first difference.
    pub report: Report,
}

/// What was found out, as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    /// The first build that differs.
    first: Option<&'a Path>,
    /// Builds that were tried, in order.
    builds: Vec<ReportView<'a>>,
    /// Builds that come after the first that differs.
    not_tried: &'a [PathBuf],
}

/// Shows which of the builds in `files` differs first. `builds` are those that were tried.
pub fn show(builds: &[Build], files: &[PathBuf]) -> Result<(), Error> {
    let not_tried = files.get(builds.len()..).unwrap_or_default();
    let differs = |build: &&Build| build.report.outcome() == Outcome::Different;
    let first = builds.iter().find(differs).map(|build| build.file.as_path());
    if is_json() {
        let views =
            builds.iter().map(|build| ReportView::of(&build.report, Some(&build.file))).collect();
        return to_json(&View { first, builds: views, not_tried });
    }
    for build in builds {
        warn(&build.report);
    }
    let name = |file: &Path| escape_line(&file.display().to_string());
    to_stdout(|out| {
        for build in builds {
            let (word, style) = match build.report.outcome() {
                Outcome::Identical => ("identical ", Style::Added),
                Outcome::Incomplete => ("incomplete", Style::Waiting),
                Outcome::Different => ("differs   ", Style::Removed),
            };
            let word = paint(style, word);
            writeln!(out, "{word}  {}  {}", name(&build.file), summary(&build.report))?;
        }
        for file in not_tried {
            writeln!(out, "{}  {}", paint(Style::Dim, "not tried "), name(file))?;
        }
        let found = builds.last().and_then(|build| build.report.first_difference.as_ref());
        match found {
            Some(found) => first_difference(out, found),
            None => writeln!(out, "no build differs"),
        }
    })?;
    Ok(())
}
