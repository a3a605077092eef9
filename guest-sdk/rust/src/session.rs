//! The session that the step belongs to.

use std::collections::BTreeMap;

use crate::platform;

/// The session that the step belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The session's id.
    pub id: String,
    /// The handler's name.
    pub agent: String,
    /// Version of the snapshot that the step began on.
    pub snapshot: u64,
    /// From the session's manifest.
    pub metadata: BTreeMap<String, String>,
}

/// The session that the step belongs to.
///
/// In a subprocess it comes from the environment that the runtime sets; what is unset there is
/// empty or 0. A value there that cannot be read ends the step.
#[must_use]
pub fn session() -> Session {
    platform::session()
}
