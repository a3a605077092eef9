//! Names of sessions and of components.

use futures::TryStreamExt as _;
use object_store::path::Path;

use super::content::{Content, damage};
use super::{Damage, Finding};
use crate::bucket::Bucket;
use crate::collect::digests_in;
use crate::error::Error;
use crate::layout;

impl Bucket {
    /// Checks what `refs/` and `handlers/` name.
    pub(super) async fn check_names(&self, content: &Content) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for key in self.keys(layout::REFS).await? {
            findings.extend(self.check_ref(&key).await?);
        }
        let handlers = self.keys(layout::HANDLERS).await?;
        for (key, problem) in self.check_handlers(&handlers).await? {
            let readable = "every other version; what sessions are pinned to".to_owned();
            let (damage, key) = (Damage::Lost, key.to_string());
            findings.push(Finding { damage, session: None, version: None, key, problem, readable });
        }
        for key in handlers {
            let Some(bytes) = self.get_file(&key).await? else { continue };
            for hash in digests_in(&bytes) {
                if let Some(flaw) = content.check_object(hash, None).await? {
                    findings.push(Finding {
                        damage: Damage::Lost,
                        session: None,
                        version: None,
                        key: flaw.key,
                        problem: format!("`{key}` names it: {}", flaw.problem),
                        readable: flaw.readable,
                    });
                }
            }
        }
        Ok(findings)
    }

    async fn check_ref(&self, key: &Path) -> Result<Option<Finding>, Error> {
        let name = key.as_ref().strip_prefix("refs/").unwrap_or_default();
        let finding = |damage, session, problem: String| Finding {
            damage,
            session,
            version: None,
            key: key.to_string(),
            problem,
            readable: "every session, by its id".to_owned(),
        };
        let session = match self.find_ref(name).await {
            Ok(Some(session)) => session,
            Ok(None) => return Ok(None),
            Err(Error::InvalidRefName { .. }) => {
                return Ok(Some(finding(Damage::Minor, None, "it is not a name".to_owned())));
            }
            Err(error) => {
                return damage(error).map(|reason| Some(finding(Damage::Lost, None, reason)));
            }
        };
        let (damage, problem) = match self.tip(&session, None).await {
            Err(Error::SessionNotFound { .. }) => (Damage::Lost, "is not in this bucket"),
            Err(Error::SessionRemoved { .. }) => (Damage::Minor, "was removed"),
            // What else there is to say of it is a finding of the session.
            _ => return Ok(None),
        };
        Ok(Some(finding(
            damage,
            Some(session),
            format!("it names session {session}, which {problem}"),
        )))
    }

    async fn keys(&self, folder: &str) -> Result<Vec<Path>, Error> {
        let folder = Path::from(folder);
        let listed = self.store.list(Some(&folder)).map_ok(|meta| meta.location);
        let mut keys: Vec<Path> =
            listed.try_collect().await.map_err(|source| Error::store("list", &folder, source))?;
        keys.sort_unstable();
        Ok(keys)
    }
}
