//! Finding out whether a store honours put-if-absent, the only lock there is.
//!
//! Several creates of one key are sent at once, with different contents: exactly one may win, its
//! content must be what is stored, and a later create must lose. The answer is kept in the user's
//! cache, so that this happens once for each store, before the first write to it.

use std::path::PathBuf;

use futures::future::join_all;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, Result};
use pugmark_log::{Digest, Environment as _};
use tokio::sync::OnceCell;

use super::remote::unsent;
use crate::context;
use crate::environment::System;

/// Where keys for this are made; they are removed again.
const FOLDER: &str = "probe";
/// How many creates are sent at once.
const RACERS: usize = 4;
/// How often a create is repeated that was neither done nor refused, as by a store that limits the
/// writes to one key.
const REPEATS: u32 = 6;

/// What is known of a store.
#[derive(Debug)]
pub struct Probe {
    address: String,
    /// The file that says that the store passed.
    passed: Option<PathBuf>,
    known: OnceCell<()>,
}

/// How a create ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Won,
    Lost,
    Open,
}

impl Probe {
    /// A store that answers at `address` and is told from others by `identity`.
    pub fn new(identity: &Digest, address: String) -> Self {
        let passed = context::stores_dir().ok().map(|folder| folder.join(identity.hex()));
        Self { address, passed, known: OnceCell::new() }
    }

    /// Goes on if the store is known to honour conditions, or is found to.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if it does not; another if it cannot be found out. Either way nothing
    /// else was sent.
    pub async fn pass(&self, once: &dyn ObjectStore, patient: &dyn ObjectStore) -> Result<()> {
        let find_out = || async {
            if self.passed.as_ref().is_some_and(|file| file.is_file()) {
                return Ok(());
            }
            self.race(once, patient).await?;
            self.keep();
            Ok(())
        };
        self.known.get_or_try_init(find_out).await.copied()
    }

    async fn race(&self, once: &dyn ObjectStore, patient: &dyn ObjectStore) -> Result<()> {
        let mut random = [0; 16];
        System.fill_random(&mut random);
        let name = format!("{:032x}", u128::from_be_bytes(random));
        let key = Path::from(FOLDER).join(name);
        let racers = join_all((0..RACERS).map(|racer| create(once, &key, racer))).await;
        let ended: Vec<Ended> = racers.iter().map(ended).collect();
        if ended.iter().all(|ended| *ended == Ended::Open) {
            return match racers.into_iter().find_map(Result::err) {
                Some(error) if is_final(&error) => Err(error),
                Some(error) => Err(unsent(error)),
                None => Ok(()),
            };
        }
        let found = self.judge(&key, ended, once, patient).await;
        // Whoever may write but not remove leaves it there.
        let _ = patient.delete(&key).await;
        found
    }

    async fn judge(
        &self,
        key: &Path,
        mut ended: Vec<Ended>,
        once: &dyn ObjectStore,
        patient: &dyn ObjectStore,
    ) -> Result<()> {
        let winners = positions(&ended);
        if winners.len() > 1 {
            return Err(self.refusal(format!(
                "{} of {RACERS} writers of one key were told that they had created it",
                winners.len()
            )));
        }
        let stored = patient.get(key).await.map_err(unsent)?.bytes().await.map_err(unsent)?;
        if winners.first().is_some_and(|winner| stored != content(*winner)) {
            return Err(self.refusal("what the winner wrote is not what is stored".to_owned()));
        }
        for attempt in 0..REPEATS {
            if ended.contains(&Ended::Lost) {
                return Ok(());
            }
            System.sleep(std::time::Duration::from_millis(100 << attempt)).await;
            let last = create(once, key, RACERS).await;
            if last.is_ok() {
                return Err(self.refusal("a key that was there was created again".to_owned()));
            }
            ended.push(self::ended(&last));
            if attempt + 1 == REPEATS && !ended.contains(&Ended::Lost) {
                return last.map_err(unsent);
            }
        }
        Ok(())
    }

    fn refusal(&self, what: String) -> Error {
        Error::NotSupported {
            source: format!(
                "the store at {} does not honour `If-None-Match: *` ({what}); two writers would \
                 overwrite each other there, so nothing was written",
                self.address
            )
            .into(),
        }
    }

    /// A cache that cannot be written costs another probe, no more.
    fn keep(&self) {
        let Some(file) = &self.passed else { return };
        if let Some(folder) = file.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        let _ = std::fs::write(file, format!("{} honours put-if-absent\n", self.address));
    }
}

fn positions(ended: &[Ended]) -> Vec<usize> {
    (0..ended.len()).filter(|index| ended[*index] == Ended::Won).collect()
}

fn content(racer: usize) -> String {
    format!("pugmark makes sure that only one of several writers creates this: {racer}\n")
}

async fn create(store: &dyn ObjectStore, key: &Path, racer: usize) -> Result<()> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    store.put_opts(key, content(racer).into(), options).await.map(|_| ())
}

fn ended(result: &Result<()>) -> Ended {
    match result {
        Ok(()) => Ended::Won,
        Err(Error::AlreadyExists { .. }) => Ended::Lost,
        Err(_) => Ended::Open,
    }
}

/// Whether asking again is no use.
fn is_final(error: &Error) -> bool {
    matches!(
        error,
        Error::NotFound { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::NotSupported { .. }
            | Error::NotImplemented { .. }
    )
}
