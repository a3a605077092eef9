//! Replaying bundles in place of a session of the bucket: files, and folders of pinned ones.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;

use super::{Bench, Replay, Target};
use crate::bundles::{self, note_absent};
use crate::commands::pin::pinned;
use crate::environment::System;
use crate::error::{Error, exit};
use crate::output::{escape_line, is_json, to_json, to_stdout};
use crate::style::{Style, paint};

/// Something in a folder that is not as it was pinned, as a JSON document.
#[derive(Serialize)]
struct Changed<'a> {
    folder: &'a Path,
    changed: &'a str,
}

impl Replay {
    /// Replays each session that was bundled. The worst of what is found is the exit code.
    pub(super) async fn run_bundles(&self, bench: &Bench) -> Result<ExitCode, Error> {
        let mut worst = 0;
        for path in &self.bundles {
            let (files, changes) = pinned(path)?;
            for change in &changes {
                worst = exit::DIFFERENT;
                show_change(path, change)?;
            }
            for file in files {
                worst = worse(worst, self.run_bundle(bench, &file).await?);
            }
        }
        Ok(ExitCode::from(worst))
    }

    async fn run_bundle(&self, bench: &Bench, file: &Path) -> Result<u8, Error> {
        let opened = bundles::open(file, self.bundle_limits.limits())?;
        note_absent(&opened.contents.absent);
        let bucket = opened.bucket(Arc::new(System));
        let mut worst = 0;
        for held in opened.contents.asked() {
            let upto = bucket.snapshot_named(&held.session, held.version).await?;
            if !is_json() {
                let title =
                    format!("{}  {}", escape_line(&file.display().to_string()), held.session);
                to_stdout(|out| writeln!(out, "{}", paint(Style::Strong, &title)))?;
            }
            let target = Target { bucket: bucket.clone(), upto, local: true };
            worst = worse(worst, self.run_on(&target, bench).await?);
        }
        Ok(worst)
    }
}

/// A difference weighs more than what could not be replayed.
fn worse(a: u8, b: u8) -> u8 {
    if a == exit::DIFFERENT || b == exit::DIFFERENT { exit::DIFFERENT } else { a.max(b) }
}

fn show_change(folder: &Path, changed: &str) -> Result<(), Error> {
    if is_json() {
        return to_json(&Changed { folder, changed });
    }
    let line = format!("{}  {}", paint(Style::Waiting, "changed"), escape_line(changed));
    Ok(to_stdout(|out| writeln!(out, "{line}"))?)
}
