use clap::Args;

use crate::error::Error;
use crate::open::Workspace;

/// Drop a session's name; the session stays
#[derive(Args)]
pub struct Unlink {
    /// The name
    #[arg(value_name = "NAME")]
    name: String,
}

impl Unlink {
    pub async fn run(self, workspace: Workspace) -> Result<(), Error> {
        Ok(workspace.bucket.unlink(&self.name).await?)
    }
}
