//! Names that a new handler may have: as a folder, as a package, and in a bucket.

use crate::error::Error;

/// Names that a package of Rust or a module of Python cannot have, or that a dependency has.
const TAKEN: [&str; 24] = [
    "alloc",
    "async",
    "await",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "fn",
    "handler",
    "impl",
    "loop",
    "match",
    "proc-macro",
    "proc_macro",
    "pugmark",
    "pugmark-guest",
    "pugmark_guest",
    "serde",
    "std",
    "test",
    "use",
];

/// Fails unless `name` may be a handler's.
///
/// # Errors
/// Says what a name is.
pub fn check(name: &str) -> Result<(), Error> {
    let sign = |c: char| matches!(c, '-' | '_');
    let shaped = name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with(sign)
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || sign(c));
    if !shaped {
        let message = format!("`{name}` cannot name a handler");
        let hint = "use 1 to 64 lower-case letters, digits, `-` and `_`, beginning with a letter and \
                    not ending with a sign";
        return Err(Error::invalid(message, hint));
    }
    if TAKEN.contains(&name) {
        let message = format!("`{name}` is taken: it means something to Rust or Python");
        return Err(Error::invalid(message, "give another name, such as one of two words"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for name in ["triage", "code-review", "agent_2"] {
            assert!(check(name).is_ok(), "{name}");
        }
        for name in ["", "Triage", "2nd", "a/b", "..", "a-", "-a", "ä", "std", "a b"] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
