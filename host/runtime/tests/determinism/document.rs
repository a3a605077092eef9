//! The part of `docs/determinism.md` that these tests write.

use std::fmt;
use std::path::Path;
use std::{env, fs};

const FILE: &str = "../../docs/determinism.md";

/// A table in Markdown: a row a guest, a column a variant.
pub struct Table {
    text: String,
    corner: String,
}

impl Table {
    /// A table with these columns.
    pub fn new<'a>(corner: &str, columns: impl Iterator<Item = &'a str>) -> Self {
        let columns: Vec<&str> = columns.collect();
        let rule = "|---".repeat(columns.len() + 1);
        let text = format!("| {corner} | {} |\n{rule}|\n", columns.join(" | "));
        Self { text, corner: corner.to_owned() }
    }

    /// Adds a row. One without cells was not tried here, and stays as the file has it.
    pub fn row(&mut self, name: &str, cells: Option<Vec<String>>) {
        let begin = format!("| {name} | ");
        match cells {
            Some(cells) => self.text += &format!("{begin}{} |\n", cells.join(" | ")),
            None => {
                eprintln!("{} {name} is not there, and was not tried", self.corner);
                let kept = read();
                let kept = kept.lines().find(|line| line.starts_with(&begin));
                self.text.extend(kept.map(|line| format!("{line}\n")));
            }
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn read() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE)).unwrap()
}

/// Fails unless the file has `found` between the marks of `section`; writes it there where
/// `PUGMARK_BLESS` is set.
pub fn check(section: &str, found: &str) {
    let file = read();
    let (begin, end) = (format!("<!-- {section}: begin -->\n"), format!("<!-- {section}: end -->"));
    let (head, rest) = file.split_once(&begin).unwrap();
    let (kept, tail) = rest.split_once(&end).unwrap();
    let found = format!("\n{}\n\n", found.trim());
    #[expect(clippy::disallowed_methods, reason = "a test's own switch")]
    if env::var_os("PUGMARK_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
        fs::write(path, format!("{head}{begin}{found}{end}{tail}")).unwrap();
        return;
    }
    assert_eq!(
        kept, found,
        "docs/determinism.md is not what the tests find: `tests/run.sh tables` writes it"
    );
}
