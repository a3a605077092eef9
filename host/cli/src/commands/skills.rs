use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::error::Error;
use crate::output::{is_json, on_terminal, to_json, to_json_lines, to_stdout};
use crate::pager;
use crate::style::{Style, paint};

/// The texts, as they are in the folder `skills/` of the source.
const TEXTS: [&str; 3] = [
    include_str!("../../../../skills/using-the-pugmark-cli/SKILL.md"),
    include_str!("../../../../skills/writing-handlers/SKILL.md"),
    include_str!("../../../../skills/replaying-and-debugging/SKILL.md"),
];

/// Read the guides for people and coding agents, or install them as agent skills
///
/// Without a name, lists them. They are of this very version of pugmark.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  \
    pugmark skills\n  \
    pugmark skills using-the-pugmark-cli\n  \
    pugmark skills install\n  \
    pugmark skills install ~/.claude/skills")]
pub struct Skills {
    /// The guide to print
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(subcommand)]
    command: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Write each guide to DIR/NAME/SKILL.md, where coding agents find it
    Install {
        /// The folder of skills; made if it is not there
        #[arg(value_name = "DIR", default_value = ".claude/skills")]
        folder: PathBuf,
    },
}

/// A guide.
#[derive(Serialize)]
struct Skill {
    name: &'static str,
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'static str>,
}

/// Files that were written, as a JSON document.
#[derive(Serialize)]
struct Installed {
    installed: Vec<PathBuf>,
}

impl Skills {
    pub fn run(self) -> Result<ExitCode, Error> {
        match (&self.command, &self.name) {
            (Some(Action::Install { folder }), _) => install(folder)?,
            (None, Some(name)) => print(name)?,
            (None, None) => list()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list() -> Result<(), Error> {
    let skills = TEXTS.map(|text| Skill::of(text, false));
    if is_json() {
        return to_json_lines(skills);
    }
    to_stdout(|out| {
        skills.iter().try_for_each(|skill| {
            writeln!(out, "{}\n    {}", paint(Style::Strong, skill.name), skill.description)
        })
    })?;
    Ok(())
}

fn print(name: &str) -> Result<(), Error> {
    let text = TEXTS.iter().find(|text| Skill::of(text, false).name == name).ok_or_else(|| {
        let message = format!("there is no skill named `{name}`");
        Error::not_found(message, "`pugmark skills` lists them")
    })?;
    if is_json() {
        return to_json(&Skill::of(text, true));
    }
    pager::want();
    to_stdout(|out| {
        if on_terminal() {
            return rendered(body(text)).try_for_each(|line| writeln!(out, "{line}"));
        }
        out.write_all(text.as_bytes())
    })?;
    Ok(())
}

fn install(folder: &Path) -> Result<(), Error> {
    let mut installed = Vec::new();
    for text in TEXTS {
        let place = folder.join(Skill::of(text, false).name);
        let path = place.join("SKILL.md");
        std::fs::create_dir_all(&place).and_then(|()| std::fs::write(&path, text)).map_err(
            |source| Error::File { action: "write", path: path.display().to_string(), source },
        )?;
        installed.push(path);
    }
    if is_json() {
        return to_json(&Installed { installed });
    }
    to_stdout(|out| installed.iter().try_for_each(|path| writeln!(out, "{}", path.display())))?;
    Ok(())
}

impl Skill {
    fn of(text: &'static str, whole: bool) -> Self {
        let field = |name: &str| {
            let mut lines = text.lines().skip(1).take_while(|line| *line != "---");
            lines.find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
        };
        Self {
            name: field("name:"),
            description: field("description:"),
            text: whole.then(|| body(text)),
        }
    }
}

/// The text behind its front matter.
fn body(text: &str) -> &str {
    text.splitn(3, "---\n").nth(2).unwrap_or(text).trim_start()
}

/// Markdown for a terminal: headings and code are marked, the rest is readable as it is.
fn rendered(text: &str) -> impl Iterator<Item = String> {
    let mut in_code = false;
    text.lines().filter_map(move |line| {
        if line.starts_with("```") {
            in_code = !in_code;
            return None;
        }
        if in_code {
            return Some(format!("    {}", paint(Style::Code, line)));
        }
        if line.starts_with('#') {
            return Some(paint(Style::Strong, line.trim_start_matches('#').trim_start()));
        }
        Some(with_code_marked(line))
    })
}

/// A line whose parts between backquotes are marked; without colour, the quotes stay.
fn with_code_marked(line: &str) -> String {
    let parts = line.split('`').collect::<Vec<_>>();
    if parts.len().is_multiple_of(2) {
        return line.to_owned();
    }
    let marked = parts.iter().enumerate().map(|(index, part)| {
        if index % 2 == 0 { (*part).to_owned() } else { paint(Style::Code, &format!("`{part}`")) }
    });
    marked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skill_has_a_name_and_a_description() {
        let names = TEXTS.map(|text| Skill::of(text, true).name);
        assert_eq!(names, ["using-the-pugmark-cli", "writing-handlers", "replaying-and-debugging"]);
        for text in TEXTS {
            let skill = Skill::of(text, true);
            assert!((40..1024).contains(&skill.description.len()), "{}", skill.name);
            assert!(skill.text.is_some_and(|text| text.starts_with("# ")), "{}", skill.name);
        }
    }

    #[test]
    fn code_is_set_off() {
        let lines: Vec<String> = rendered("# A\n\n```sh\npugmark log\n```\nUse `x`.").collect();
        assert_eq!(lines, ["A", "", "    pugmark log", "Use `x`."]);
    }
}
