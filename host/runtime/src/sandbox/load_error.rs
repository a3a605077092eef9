//! Why a file or an object is no handler that the sandbox can run.

use std::io;

use pugmark_log::Kind;

/// Why a component cannot be loaded. The compiled-code cache is never a reason.
#[derive(thiserror::Error, Debug)]
pub enum LoadError {
    /// It does not begin as WebAssembly does.
    #[error("{name} is not WebAssembly: {reason}")]
    NotWasm {
        /// What was loaded.
        name: String,
        /// What it is instead, and what to do.
        reason: &'static str,
    },
    /// It begins as WebAssembly does and then goes wrong, or cannot be made a component.
    #[error("{name} is not valid: {reason}")]
    Invalid {
        /// What was loaded.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A core module imports what is not WASI.
    #[error("{name} imports what no sandbox offers: {}", names.join(", "))]
    UnknownImports {
        /// What was loaded.
        name: String,
        /// The imports, each as `module.field`.
        names: Vec<String>,
    },
    /// A component imports interfaces that the sandbox does not serve.
    #[error("{name} needs what the sandbox does not serve: {}", names.join(", "))]
    RefusedImports {
        /// What was loaded.
        name: String,
        /// The interfaces.
        names: Vec<String>,
    },
    /// It exports nothing that makes it a handler.
    #[error("{name} is no handler: {hint} (it exports {})", list(found))]
    NoWorld {
        /// What was loaded.
        name: String,
        /// What it exports.
        found: Vec<String>,
        /// What is missing, and what to do.
        hint: String,
    },
    /// It is over the limit for components.
    #[error("{name} is larger than the {limit} bytes that a component may have")]
    TooLarge {
        /// What was loaded.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// It could not be compiled, or not within the limits.
    #[error("{name} cannot be compiled: {reason}")]
    Compile {
        /// What was loaded.
        name: String,
        /// What went wrong.
        reason: String,
    },
    /// The component was loaded, and cannot be found again unchanged.
    #[error("{name} has changed since it was loaded")]
    Changed {
        /// What was loaded.
        name: String,
    },
    /// WebAssembly cannot be run on this machine.
    #[error("WebAssembly cannot be run here: {reason}")]
    Engine {
        /// What went wrong.
        reason: String,
    },
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl LoadError {
    /// What a caller can do about it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::NotWasm { .. }
            | Self::Invalid { .. }
            | Self::UnknownImports { .. }
            | Self::RefusedImports { .. }
            | Self::NoWorld { .. }
            | Self::Compile { .. } => Kind::Invalid,
            Self::TooLarge { .. } => Kind::Limit,
            Self::Changed { .. } => Kind::Conflict,
            Self::Engine { .. } => Kind::Internal,
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Kind::NotFound,
            Self::Io { .. } => Kind::Unavailable,
        }
    }
}

/// Exports shown in a message.
const SHOWN: usize = 12;

fn list(names: &[String]) -> String {
    match names.len() {
        0 => "nothing".to_owned(),
        n if n > SHOWN => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_says_how_much_it_leaves_out() {
        assert_eq!(list(&[]), "nothing");
        let names: Vec<String> = (0..14).map(|n| n.to_string()).collect();
        assert_eq!(list(&names), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more");
        assert_eq!(list(&names[..2]), "0, 1");
    }
}
