//! What differs between two JSON documents, place by place.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

/// One place where two documents differ, by its JSON pointer (RFC 6901).
#[derive(Serialize, PartialEq, Debug)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Change {
    /// Only the second document has it.
    Added {
        /// Its place in the second document.
        path: String,
        /// What is there.
        to: Value,
    },
    /// Only the first document has it.
    Removed {
        /// Its place in the first document.
        path: String,
        /// What was there.
        from: Value,
    },
    /// Both have something else there.
    Changed {
        /// Its place in both.
        path: String,
        /// What the first has.
        from: Value,
        /// What the second has.
        to: Value,
    },
}

/// All places where `a` and `b` differ. Of arrays, what begins and ends alike is set aside first.
pub fn changes(a: &Value, b: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(a, b, "", &mut found);
    found
}

fn compare(a: &Value, b: &Value, path: &str, found: &mut Vec<Change>) {
    match (a, b) {
        _ if a == b => {}
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b, path, found),
        (Value::Array(a), Value::Array(b)) => compare_arrays(a, b, path, found),
        _ => found.push(Change::Changed { path: path.to_owned(), from: a.clone(), to: b.clone() }),
    }
}

fn compare_objects(
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    path: &str,
    found: &mut Vec<Change>,
) {
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for key in keys {
        let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
        match (a.get(key), b.get(key)) {
            (Some(a), Some(b)) => compare(a, b, &path, found),
            (Some(from), None) => found.push(Change::Removed { path, from: from.clone() }),
            (None, Some(to)) => found.push(Change::Added { path, to: to.clone() }),
            (None, None) => {}
        }
    }
}

fn compare_arrays(a: &[Value], b: &[Value], path: &str, found: &mut Vec<Change>) {
    let (head, tail) = alike(a, b);
    let (a, b) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
    for index in 0..a.len().max(b.len()) {
        let path = format!("{path}/{}", head + index);
        match (a.get(index), b.get(index)) {
            (Some(a), Some(b)) => compare(a, b, &path, found),
            (Some(from), None) => found.push(Change::Removed { path, from: from.clone() }),
            (None, Some(to)) => found.push(Change::Added { path, to: to.clone() }),
            (None, None) => {}
        }
    }
}

/// How many items two sequences have in common at their beginning, and then at their end.
pub fn alike<T: PartialEq>(a: &[T], b: &[T]) -> (usize, usize) {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    (head, tail)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn added(path: &str, to: Value) -> Change {
        Change::Added { path: path.into(), to }
    }

    fn removed(path: &str, from: Value) -> Change {
        Change::Removed { path: path.into(), from }
    }

    fn changed(path: &str, from: Value, to: Value) -> Change {
        Change::Changed { path: path.into(), from, to }
    }

    #[test]
    fn equal_documents_do_not_differ() {
        let document = json!({"a": [1, {"b": null}], "c": "x"});
        assert_eq!(changes(&document, &document), vec![]);
    }

    #[test]
    fn objects_by_key() {
        let a = json!({"a/b": 1, "c~": {"d": true}, "e": 1});
        let b = json!({"a/b": 2, "c~": {"d": true, "f": []}});
        assert_eq!(
            changes(&a, &b),
            vec![
                changed("/a~1b", json!(1), json!(2)),
                added("/c~0/f", json!([])),
                removed("/e", json!(1))
            ]
        );
    }

    #[test]
    fn arrays_between_what_is_alike() {
        let (a, b) = (json!([1, 2, 3]), json!([1, 9, 8, 3]));
        assert_eq!(changes(&a, &b), vec![changed("/1", json!(2), json!(9)), added("/2", json!(8))]);
        assert_eq!(
            changes(&json!([1, 1, 1]), &json!([1])),
            vec![removed("/1", json!(1)), removed("/2", json!(1))]
        );
    }

    #[test]
    fn another_type_is_a_change_of_the_whole() {
        assert_eq!(changes(&json!([]), &json!({})), vec![changed("", json!([]), json!({}))]);
    }
}
