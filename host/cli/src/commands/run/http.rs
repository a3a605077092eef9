//! What the command line says of requests that handlers in the sandbox may make.

use std::sync::Arc;

use clap::Args;
use pugmark_runtime::{Http, HttpError, SecretSource};

use crate::error::Error;

/// The options.
#[derive(Args)]
pub struct HttpOptions {
    /// Let a handler in the sandbox make HTTP requests to this host, by its exact name or address.
    /// May be repeated
    ///
    /// Without a port it is that of the scheme, as a rule 443. Requests go over TLS, but for those
    /// to this machine. Each answer is recorded before the handler gets it, so that neither a run
    /// that goes on after a crash nor a replay asks again.
    #[arg(long = "allow-http", value_name = "HOST[:PORT]")]
    allowed: Vec<String>,

    /// Let names that --allow-http allows lead to addresses of private networks
    #[arg(long, requires = "allowed")]
    allow_private_network: bool,

    /// Add the value of an environment variable to requests to this host, as `authorization: Bearer
    /// VALUE` or in the header field that is named. May be repeated
    ///
    /// The value is added on the way out: the handler does not see it, and it is written nowhere. A
    /// response that has it in it is refused.
    #[arg(long = "secret", value_name = "HOST[:PORT]=VARIABLE[:HEADER]")]
    secrets: Vec<String>,
}

impl HttpOptions {
    /// What may be asked; `None` if nothing.
    ///
    /// # Errors
    /// If one of the places or secrets cannot be one.
    pub fn build(&self) -> Result<Option<Arc<Http>>, Error> {
        if self.allowed.is_empty() && self.secrets.is_empty() {
            return Ok(None);
        }
        let lookup = |name: &str| std::env::var(name).ok();
        let secrets: Vec<SecretSource<'_>> =
            self.secrets.iter().map(|spec| SecretSource { spec, lookup: &lookup }).collect();
        match Http::new(&self.allowed, self.allow_private_network, &secrets) {
            Ok(http) => Ok(Some(Arc::new(http))),
            Err(HttpError::Rule(error)) => {
                let hint =
                    "give an exact name or address, such as api.example.com or 127.0.0.1:8080";
                Err(Error::invalid(format!("--allow-http: {error}"), hint))
            }
            Err(error) => Err(Error::invalid(format!("--secret: {error}"), None)),
        }
    }
}
