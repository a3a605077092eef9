//! A report, for people and as JSON.

use std::io::{self, Write};
use std::path::Path;

use pugmark_log::{Digest, SessionId};
use pugmark_runtime::replay::{Difference, Finding, Outcome, Report};
use serde::Serialize;
use serde_json::Value;

use super::document::{Bodies, difference, document};
use crate::commands::diff::json::Change;
use crate::commands::diff::text::json_change;
use crate::error::Error;
use crate::output::{counted, escape_line, is_json, note, to_json, to_stdout};
use crate::style::{Style, paint};

/// A report as a JSON document.
#[derive(Serialize)]
pub struct ReportView<'a> {
    session: SessionId,
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    with: Option<&'a Path>,
    outcome: &'static str,
    identical: u64,
    different: u64,
    ended_at_first_difference: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_difference: Option<DifferenceView<'a>>,
    incomplete: Vec<FindingView<'a>>,
    skipped: Vec<FindingView<'a>>,
    impure: Vec<FindingView<'a>>,
}

#[derive(Serialize)]
struct FindingView<'a> {
    session: SessionId,
    version: u64,
    steps: u64,
    reason: &'a str,
}

/// A step that differs, as part of a JSON document.
#[derive(Serialize)]
struct DifferenceView<'a> {
    session: SessionId,
    version: u64,
    handler: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<Digest>,
    changes: Vec<Change>,
    recorded: Value,
    replayed: Value,
}

impl<'a> ReportView<'a> {
    /// The view of a report; `with` is what ran in place of the recorded components.
    pub fn of(report: &'a Report, with: Option<&'a Path>) -> Self {
        let findings = |all: &'a [Finding]| all.iter().map(FindingView::of).collect();
        Self {
            session: report.upto.session,
            version: report.upto.version,
            with,
            outcome: match report.outcome() {
                Outcome::Identical => "identical",
                Outcome::Different => "different",
                Outcome::Incomplete => "incomplete",
            },
            identical: report.identical,
            different: report.different,
            ended_at_first_difference: report.ended_there,
            first_difference: report.first_difference.as_ref().map(DifferenceView::of),
            incomplete: findings(&report.incomplete),
            skipped: findings(&report.skipped),
            impure: findings(&report.impure),
        }
    }
}

impl<'a> FindingView<'a> {
    fn of(finding: &'a Finding) -> Self {
        let Finding { first, steps, reason } = finding;
        Self { session: first.session, version: first.version, steps: *steps, reason }
    }
}

impl<'a> DifferenceView<'a> {
    fn of(found: &'a Difference) -> Self {
        Self {
            session: found.point.session,
            version: found.point.version,
            handler: &found.handler,
            component: found.component,
            changes: difference(&found.recorded, &found.replayed),
            recorded: document(&found.recorded, Bodies::Documents),
            replayed: document(&found.replayed, Bodies::Documents),
        }
    }
}

/// Shows a report; `with` is what ran in place of the recorded components.
pub fn report(report: &Report, with: Option<&Path>) -> Result<(), Error> {
    if is_json() {
        return to_json(&ReportView::of(report, with));
    }
    warn(report);
    to_stdout(|out| {
        if let Some(found) = &report.first_difference {
            first_difference(out, found)?;
        }
        findings(out, "incomplete", Style::Waiting, &report.incomplete)?;
        findings(out, "skipped", Style::Dim, &report.skipped)?;
        writeln!(out, "{}", summary(report))
    })?;
    Ok(())
}

/// Warns of handlers whose answers depend on more than the log.
pub fn warn(report: &Report) {
    for finding in &report.impure {
        let steps = counted(finding.steps, "step");
        let reason = escape_line(&finding.reason);
        note(&format!("warning: {reason}; {steps} had to start afresh"));
    }
}

/// The step that differs first, and where.
pub fn first_difference(out: &mut dyn Write, found: &Difference) -> io::Result<()> {
    let step = format!("{}:{}", found.point.session, found.point.version);
    let name = paint(Style::Name, &escape_line(&found.handler));
    writeln!(out, "{}  step by {name} differs", paint(Style::Strong, &step))?;
    let changes = difference(&found.recorded, &found.replayed);
    changes.iter().try_for_each(|change| json_change(out, change))
}

fn findings(out: &mut dyn Write, word: &str, style: Style, findings: &[Finding]) -> io::Result<()> {
    findings.iter().try_for_each(|finding| {
        let Finding { first, steps, reason } = finding;
        let steps = match steps {
            0 => String::new(),
            steps => format!("{}, the first ", counted(*steps, "step")),
        };
        let place = format!("{steps}{}:{}", first.session, first.version);
        writeln!(out, "{}  {place}: {}", paint(style, word), escape_line(reason))
    })
}

/// What a report comes to, on one line.
pub fn summary(report: &Report) -> String {
    let count = |findings: &[Finding]| findings.iter().map(|finding| finding.steps).sum::<u64>();
    let identical = counted(report.identical, "step");
    let mut line = match report.first_difference {
        Some(_) if report.ended_there => format!("{identical} before it replayed, identical"),
        Some(_) => {
            let all = counted(report.identical + report.different, "step");
            format!("{} of {all} replayed differ", report.different)
        }
        None => format!("{identical} replayed, identical"),
    };
    for (findings, word) in [(&report.incomplete, "incomplete"), (&report.skipped, "skipped")] {
        let steps = count(findings);
        if steps > 0 {
            line.push_str(&format!("; {steps} {word}"));
        }
    }
    line
}
