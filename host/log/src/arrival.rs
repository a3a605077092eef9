//! Entries that come from outside and may have come before: pushes with an id, deliveries of
//! outboxes. Each is looked for in the very log that it would be appended to, so that it is there
//! once however often it is sent, and by however many.

use futures::TryStreamExt as _;
use futures::future::ready;

use crate::bucket::Bucket;
use crate::entry::{Draft, Entry, Origin};
use crate::error::Error;
use crate::search::Check;
use crate::session_id::SessionId;
use crate::snapshot::Snapshot;
use crate::vector::Vector;

/// The longest id of a push, in bytes.
const MAX_PUSH_ID_LEN: usize = 256;

/// What came of a push with an id.
#[derive(Clone, Debug)]
pub struct Pushed {
    /// The version that the push made; if it was repeated, a tip whose log holds it.
    pub snapshot: Snapshot,
    /// Whether the same was pushed before, and nothing was appended now.
    pub repeated: bool,
}

/// Entries on their way onto a log, which may hold them already.
pub(crate) struct Arrival {
    entries: Vec<Entry>,
    known: Known,
    /// The log was searched before this position. What was not there then is behind it now:
    /// positions of entries never decrease.
    searched: u64,
}

/// What an entry is recognised by.
enum Known {
    /// Nothing: it is appended in any case.
    Never,
    /// The id that all of the entries have.
    Id(String),
    /// Its origin.
    Origin,
}

impl Arrival {
    /// Entries that are appended in any case.
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        Self { entries, known: Known::Never, searched: 0 }
    }

    /// Entries with an origin, of which none stands before the position `from`.
    pub(crate) fn delivery(entries: Vec<Entry>, from: u64) -> Self {
        Self { entries, known: Known::Origin, searched: from }
    }

    /// What is to be appended.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether the tip's log holds all of it; what it does hold is not appended any more.
    pub(crate) async fn is_held_by(
        &mut self,
        bucket: &Bucket,
        tip: &Snapshot,
    ) -> Result<bool, Error> {
        let from = self.searched.min(tip.log.count());
        let unsearched = bucket.entries(&tip.log, from..tip.log.count(), None);
        let held = match &self.known {
            Known::Never => return Ok(false),
            Known::Id(id) => {
                let has_id = |entry: &Entry| ready(entry.id() == Some(id));
                let found: Vec<Entry> = unsearched.try_filter(has_id).try_collect().await?;
                !found.is_empty() && same_push(tip.session, id, &found, &self.entries)?
            }
            Known::Origin => {
                let origin = |entry: Entry| ready(Ok(entry.origin()));
                let found: Vec<Origin> = unsearched.try_filter_map(origin).try_collect().await?;
                self.entries.retain(|entry| entry.origin().is_none_or(|of| !found.contains(&of)));
                self.entries.is_empty()
            }
        };
        self.searched = tip.log.count();
        Ok(held)
    }
}

/// Whether what has a push's id already is that push; all else is an error.
fn same_push(session: SessionId, id: &str, found: &[Entry], own: &[Entry]) -> Result<bool, Error> {
    if found == own { Ok(true) } else { Err(Error::PushIdTaken { session, id: id.to_owned() }) }
}

impl Bucket {
    /// Appends entries to a session in one version, unless the session's log holds entries that
    /// were pushed with this id. `hint` is a version that is known to exist.
    ///
    /// The id is kept in the entries and counts for the session's whole log, inherited history
    /// included. All of the log is searched for it, from the newest entry back, until it is found.
    /// Without drafts there is nothing to recognise: nothing is appended.
    ///
    /// # Errors
    /// [`Error::PushIdTaken`] if it was pushed with other content; [`Error::InvalidPushId`] if it is
    /// empty or longer than 256 bytes; [`Error::Corrupt`] where part of the log cannot be searched;
    /// otherwise as [`Bucket::push`].
    pub async fn push_once(
        &self,
        session: &SessionId,
        hint: Option<u64>,
        id: &str,
        drafts: &[Draft],
    ) -> Result<Pushed, Error> {
        if id.is_empty() || id.len() > MAX_PUSH_ID_LEN {
            let id = id.chars().take(80).collect();
            return Err(Error::InvalidPushId { id, limit: MAX_PUSH_ID_LEN });
        }
        let with_id = |draft: &Draft| Draft { id: Some(id.to_owned()), ..draft.clone() };
        let drafts: Vec<Draft> = drafts.iter().map(with_id).collect();
        let tip = self.tip(session, hint).await?;
        let found = self.find_pushed(&tip.log, id).await?;
        if drafts.is_empty() && found.is_empty() {
            return Ok(Pushed { snapshot: tip, repeated: false });
        }
        if !found.is_empty() {
            let entries: Vec<Entry> = drafts.iter().map(Draft::build).collect::<Result<_, _>>()?;
            let repeated = same_push(*session, id, &found, &entries)?;
            return Ok(Pushed { snapshot: tip, repeated });
        }
        let entries = self.store_drafts(&drafts).await?;
        let searched = tip.log.count();
        let arrival = Arrival { entries, known: Known::Id(id.to_owned()), searched };
        let appended = self.append_arrival(tip, arrival).await?;
        Ok(Pushed { snapshot: appended.snapshot, repeated: appended.repeated })
    }

    /// The entries of a log that were pushed with an id, in order. They stand together: what was
    /// pushed together is never parted.
    async fn find_pushed(&self, log: &Vector, id: &str) -> Result<Vec<Entry>, Error> {
        let mut found: Vec<Entry> = Vec::new();
        // Whether the entries of a piece of the log may begin in the piece before it.
        let mut take = |piece: &[Entry]| {
            found.extend(piece.iter().rev().filter(|entry| entry.id() == Some(id)).cloned());
            found.is_empty() || piece.first().is_none_or(|entry| entry.id() == Some(id))
        };
        if take(log.tail()) {
            let quoted = serde_json::to_string(id).map_err(|source| Error::Encode { source })?;
            let mut leaves = self.leaves_with(log, &format!("\"id\":{quoted}"), Check::All);
            while let Some(leaf) = leaves.try_next().await? {
                if !take(&leaf) {
                    break;
                }
            }
        }
        found.reverse();
        Ok(found)
    }
}
