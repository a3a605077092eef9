use std::process::ExitCode;

use clap::Args;
use futures::TryStreamExt as _;
use pugmark_log::{Damage, Finding, SessionId};
use serde::Serialize;

use crate::error::{Error, exit};
use crate::open::Workspace;
use crate::output::{counted, escape_line, is_json, note, to_json, to_stdout};
use crate::style::{Style, paint};

/// Check all that the bucket holds
///
/// Reads every session, object and name once, and checks every hash, chain and reference. Prints
/// what is not as it was written, and what can still be read. `lost` means that something stored
/// cannot be read or trusted any more; the exit code is 5 then. `minor` means that something is left
/// over, or missing and can be made again.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pugmark verify\n  \
    pugmark verify --json | jq -r 'select(.damage == \"lost\").session' | sort -u")]
pub struct Verify {}

/// A finding as a JSON document.
#[derive(Serialize)]
struct View<'a> {
    damage: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    key: &'a str,
    problem: &'a str,
    readable: &'a str,
}

impl Verify {
    pub async fn run(self, workspace: Workspace) -> Result<ExitCode, Error> {
        let (mut lost, mut minor) = (0, 0);
        let mut findings = workspace.bucket.verify();
        while let Some(finding) = findings.try_next().await? {
            match finding.damage {
                Damage::Lost => lost += 1,
                Damage::Minor => minor += 1,
            }
            show(&finding)?;
        }
        if lost + minor == 0 {
            note("everything is as it was written");
        } else {
            note(&format!("{}: {lost} lost, {minor} minor", counted(lost + minor, "finding")));
        }
        Ok(if lost > 0 { ExitCode::from(exit::CORRUPT) } else { ExitCode::SUCCESS })
    }
}

fn show(finding: &Finding) -> Result<(), Error> {
    let (damage, style) = match finding.damage {
        Damage::Lost => ("lost", Style::Removed),
        Damage::Minor => ("minor", Style::Waiting),
    };
    if is_json() {
        return to_json(&View {
            damage,
            session: finding.session,
            version: finding.version,
            key: &finding.key,
            problem: &finding.problem,
            readable: &finding.readable,
        });
    }
    to_stdout(|out| {
        let key = escape_line(&finding.key);
        let space = " ".repeat(5_usize.saturating_sub(damage.len()));
        let problem = escape_line(&finding.problem);
        writeln!(out, "{}{space}  {key}: {problem}", paint(style, damage))?;
        if !finding.readable.is_empty() {
            writeln!(out, "       {}", escape_line(&finding.readable))?;
        }
        Ok(())
    })?;
    Ok(())
}
