//! Keeps handlers' requests to the object endpoint from going through a proxy.

use std::ffi::{OsStr, OsString};

const LOOPBACK: &str = "127.0.0.1";

/// What a handler's environment needs so that its HTTP client reaches the object endpoint although
/// the host's environment names a proxy: 127.0.0.1 in `no_proxy` and `NO_PROXY`. Not every client
/// leaves loopback addresses out by itself, and a proxy would be told the endpoint's secret path.
/// Nothing where there is no proxy. `variable` looks up the host's environment.
#[must_use]
pub fn loopback_bypass(variable: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let proxies = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
    if proxies.iter().all(|name| variable(name).is_none()) {
        return Vec::new();
    }
    let (lower, upper) = (variable("no_proxy"), variable("NO_PROXY"));
    let with_loopback = |list: Option<OsString>| match list {
        None => OsString::from(LOOPBACK),
        Some(list) if list == "*" || has_loopback(&list) => list,
        Some(mut list) => {
            list.push(",");
            list.push(LOOPBACK);
            list
        }
    };
    vec![
        ("no_proxy".into(), with_loopback(lower.clone().or_else(|| upper.clone()))),
        ("NO_PROXY".into(), with_loopback(upper.or(lower))),
    ]
}

fn has_loopback(list: &OsStr) -> bool {
    list.to_string_lossy().split(',').any(|host| host.trim() == LOOPBACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bypass(environment: &[(&str, &str)]) -> Vec<(String, String)> {
        let variable = |name: &str| {
            environment.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into())
        };
        let text = |text: OsString| text.into_string().unwrap();
        let added = loopback_bypass(variable).into_iter();
        added.map(|(name, value)| (text(name), text(value))).collect()
    }

    fn both(lower: &str, upper: &str) -> Vec<(String, String)> {
        vec![("no_proxy".into(), lower.into()), ("NO_PROXY".into(), upper.into())]
    }

    #[test]
    fn only_where_there_is_a_proxy() {
        assert!(bypass(&[("no_proxy", "a")]).is_empty());
        assert!(bypass(&[("http_proxy", "")]).is_empty());
        assert_eq!(bypass(&[("http_proxy", "p")]), both("127.0.0.1", "127.0.0.1"));
    }

    #[test]
    fn keeps_what_is_there() {
        let with = |lists: &[(&'static str, &'static str)]| {
            bypass(&[&[("ALL_PROXY", "p")], lists].concat())
        };
        assert_eq!(with(&[("NO_PROXY", "a.b")]), both("a.b,127.0.0.1", "a.b,127.0.0.1"));
        assert_eq!(with(&[("no_proxy", "*"), ("NO_PROXY", "a")]), both("*", "a,127.0.0.1"));
        assert_eq!(with(&[("no_proxy", "a, 127.0.0.1")]), both("a, 127.0.0.1", "a, 127.0.0.1"));
    }
}
