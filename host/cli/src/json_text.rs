//! JSON as it was written: spread over lines for people, or on one line for machines.
//!
//! Only white space changes. Keys keep their order and numbers their digits, which a value that is
//! parsed and written again would not.

/// Whether `text` is one JSON document.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// A JSON document without white space between its parts, hence on one line.
pub fn compact(text: &str) -> String {
    tokens(text).collect()
}

/// A JSON document, a line for each member. `key` may mark the keys.
pub fn pretty(text: &str, key: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0;
    let mut parts = tokens(text).peekable();
    while let Some(token) = parts.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                if parts.peek().is_some_and(|next| matches!(*next, "}" | "]")) {
                    out.push_str(parts.next().unwrap_or_default());
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            "}" | "]" => {
                depth -= 1;
                new_line(&mut out, depth);
                out.push_str(token);
            }
            "," => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            _ if parts.peek() == Some(&":") => out.push_str(&key(token)),
            _ => out.push_str(token),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// The parts of a valid document: punctuation, strings, and what stands between them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let len = match first {
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            '"' => string_len(rest),
            _ => rest
                .find(|c: char| c.is_ascii_whitespace() || "{}[],:\"".contains(c))
                .unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(len);
        rest = after;
        Some(token)
    })
}

/// The length of the string that `text` begins with, quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "{ \"b\": [1.50, {}, [ ],\n \"a \\\" , b\"],\"a\":{\"x\" :null}} \n";

    #[test]
    fn compact_changes_white_space_only() {
        assert_eq!(compact(DOCUMENT), r#"{"b":[1.50,{},[],"a \" , b"],"a":{"x":null}}"#);
        assert_eq!(compact(" 12345678901234567890123 "), "12345678901234567890123");
    }

    #[test]
    fn pretty_has_a_line_for_each_member() {
        let lines = [
            "{",
            "  \"b\": [",
            "    1.50,",
            "    {},",
            "    [],",
            "    \"a \\\" , b\"",
            "  ],",
            "  \"a\": {",
            "    \"x\": null",
            "  }",
            "}",
        ];
        assert_eq!(pretty(DOCUMENT, str::to_owned), lines.join("\n"));
    }

    #[test]
    fn tells_json_from_text() {
        assert!(is_json(DOCUMENT));
        assert!(!is_json("{\"a\":1} x"));
    }
}
