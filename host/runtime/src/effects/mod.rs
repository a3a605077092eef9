//! What a sandboxed handler gets from outside its session: answers to HTTP requests, each durable
//! in the session's trace before the handler sees it.
//!
//! `rules` and `address` say what may be asked, `client` asks, `secret` adds what only the server is
//! to see. `record` is the persisted form; `attempt` is a step under way, which goes on where an
//! interrupted one ended; `recorder` answers its requests, `replayer` those of a step that is
//! replayed, from the record alone.
//!
//! No secret is ever handed to the sandbox or written anywhere.

mod address;
mod attempt;
mod client;
mod record;
mod recorder;
mod replayer;
mod rules;
mod secret;

use crate::error::Error;
use crate::sandbox::Outside;

pub(crate) use self::attempt::Attempt;
pub(crate) use self::record::Effect;
pub(crate) use self::replayer::{Recorded, Replayer};
pub use self::rules::RuleError;
pub use self::secret::SecretError;

use self::client::Client;
use self::rules::Rules;
use self::secret::Secret;

/// Who answers what a handler asks in one step.
pub(crate) struct Answers<'a> {
    /// A fresh one for each time that the handler is run; `None` if all it asks is denied.
    pub(crate) outside: &'a (dyn Fn() -> Option<Box<dyn Outside>> + Sync),
    /// Whether it goes on where an interrupted attempt ended. It has to be made on a fresh instance
    /// then: what is recorded was asked by one that may have folded the log in another way.
    pub(crate) is_resumed: bool,
}

/// What may be asked by HTTP, and how.
pub struct Http {
    rules: Rules,
    secrets: Vec<Secret>,
    client: Client,
}

/// Why there can be no requests as the user wants them.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum HttpError {
    /// Of the places that may be asked, one is none.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The host cannot make requests.
    #[error(transparent)]
    Host(#[from] Error),
}

/// A secret as the user names it.
pub struct SecretSource<'a> {
    /// `HOST[:PORT]=VARIABLE` or `HOST[:PORT]=VARIABLE:HEADER`.
    pub spec: &'a str,
    /// Looks up the variable.
    pub lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl Http {
    /// Requests to the places `allowed`, each `HOST[:PORT]`, with secrets for some of them.
    /// `private_network` also allows names that lead to private addresses.
    ///
    /// # Errors
    /// [`HttpError`]
    pub fn new(
        allowed: &[String],
        private_network: bool,
        secrets: &[SecretSource<'_>],
    ) -> Result<Self, HttpError> {
        let rules = Rules::parse(allowed, private_network)?;
        let secrets = secrets.iter().map(|source| Secret::parse(source, &rules));
        let secrets = secrets.collect::<Result<_, _>>()?;
        Ok(Self { rules, secrets, client: Client::new() })
    }
}
