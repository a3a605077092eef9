//! The session, from the environment that the runtime sets.

use std::collections::BTreeMap;
use std::env;

use crate::{Session, testing};

/// Why a variable cannot be read.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("PUGMARK_SNAPSHOT is no version: {0}")]
    Snapshot(#[from] std::num::ParseIntError),
    #[error("PUGMARK_SESSION_METADATA is no JSON object of strings: {0}")]
    Metadata(#[from] serde_json::Error),
}

pub(crate) fn session() -> Session {
    if let Some(session) = testing::current() {
        return session;
    }
    match from(|name| env::var(name).ok()) {
        Ok(session) => session,
        Err(error) => panic!("{error}"),
    }
}

fn from(variable: impl Fn(&str) -> Option<String>) -> Result<Session, Error> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let snapshot = set("PUGMARK_SNAPSHOT").map_or(Ok(0), |text| text.parse())?;
    let metadata = set("PUGMARK_SESSION_METADATA")
        .map_or_else(|| Ok(BTreeMap::new()), |text| serde_json::from_str(&text))?;
    Ok(Session {
        id: set("PUGMARK_SESSION_ID").unwrap_or_default(),
        agent: set("PUGMARK_AGENT_ID").unwrap_or_default(),
        snapshot,
        metadata,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_runtime_sets() {
        let session = from(|name| {
            let value = match name {
                "PUGMARK_SESSION_ID" => "01923456-789a-7fff-bfff-ffffffffffff",
                "PUGMARK_AGENT_ID" => "triage",
                "PUGMARK_SNAPSHOT" => "12",
                "PUGMARK_SESSION_METADATA" => r#"{"team":"core"}"#,
                _ => return None,
            };
            Some(value.to_owned())
        });
        assert_eq!(
            session.unwrap(),
            Session {
                id: "01923456-789a-7fff-bfff-ffffffffffff".into(),
                agent: "triage".into(),
                snapshot: 12,
                metadata: BTreeMap::from([("team".into(), "core".into())]),
            }
        );
    }

    #[test]
    fn unset_is_empty_and_wrong_is_an_error() {
        assert_eq!(from(|_| None).unwrap().snapshot, 0);
        assert!(matches!(from(|_| Some("x".into())), Err(Error::Snapshot(_))));
        let metadata = |name: &str| (name == "PUGMARK_SESSION_METADATA").then(|| "[]".to_owned());
        assert!(matches!(from(metadata), Err(Error::Metadata(_))));
    }
}
