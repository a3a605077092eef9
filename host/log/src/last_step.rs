//! The last step of a session as its tip tells it: what it saw, added and sent, and how it ended.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::entry::Entry;
use crate::error::Error;
use crate::session_id::SessionId;
use crate::timestamp::Timestamp;

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// With events, and nothing that stops the handler from going on.
    No,
    /// With a pause: the session rests until something is pushed.
    Pause,
    /// With a sleep until this time.
    Sleep(Timestamp),
    /// Without an entry of its own.
    Empty,
}

/// The last step of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastStep {
    /// The version of its checkpoint.
    pub version: u64,
    /// How many entries it saw.
    pub seen: u64,
    /// How many entries it added.
    pub added: u64,
    /// How it ended.
    pub ended: Ended,
    /// What it sends elsewhere and is not delivered yet; empty once it is. An item's place is its
    /// index in the origin of what is delivered.
    pub outbox: Vec<OutboxItem>,
}

/// An output that is no entry of its own session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutboxItem {
    /// Where it goes.
    pub to: Destination,
    /// The entry as it is delivered: its origin names the step.
    pub entry: Entry,
}

/// Where an output goes that is no entry of its own session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// Onto another session's log.
    Session {
        /// The session.
        session: SessionId,
        /// The length of its log before the step was committed. What is delivered stands at this
        /// position or behind it, whatever happens there: entries only ever move back.
        from: u64,
    },
    /// Into a fork of the step's own checkpoint, as its seed.
    Fork {
        /// The session that is forked.
        child: SessionId,
    },
}

/// The persisted form of [`LastStep`]; the field order is the persisted order.
#[derive(Serialize, Deserialize)]
pub(crate) struct LastRecord<'a> {
    version: u64,
    n: u64,
    k: u64,
    ended: EndedRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wake: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    outbox: Option<Vec<ItemRecord<'a>>>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum EndedRecord {
    No,
    Pause,
    Sleep,
    Empty,
}

/// The persisted form of [`OutboxItem`]: `session` and `from`, or `fork`.
#[derive(Serialize, Deserialize)]
struct ItemRecord<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fork: Option<SessionId>,
    #[serde(borrow)]
    entry: &'a RawValue,
}

impl LastStep {
    /// That of a session on which no step was made yet.
    pub(crate) fn none(inherited: u64) -> Self {
        Self { version: 0, seen: inherited, added: 0, ended: Ended::Empty, outbox: Vec::new() }
    }

    /// The persisted bytes.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>, Error> {
        let encode = |source| Error::Encode { source };
        let (ended, wake) = match self.ended {
            Ended::No => (EndedRecord::No, None),
            Ended::Pause => (EndedRecord::Pause, None),
            Ended::Sleep(until) => (EndedRecord::Sleep, Some(until)),
            Ended::Empty => (EndedRecord::Empty, None),
        };
        let items: Vec<ItemRecord<'_>> = self
            .outbox
            .iter()
            .map(|item| {
                let entry: &RawValue = serde_json::from_slice(item.entry.line())?;
                Ok(match item.to {
                    Destination::Session { session, from } => {
                        let (session, from) = (Some(session), Some(from));
                        ItemRecord { session, from, fork: None, entry }
                    }
                    Destination::Fork { child } => {
                        ItemRecord { session: None, from: None, fork: Some(child), entry }
                    }
                })
            })
            .collect::<Result<_, _>>()
            .map_err(encode)?;
        let (version, n, k) = (self.version, self.seen, self.added);
        let outbox = Some(items).filter(|items| !items.is_empty());
        serde_json::to_vec(&LastRecord { version, n, k, ended, wake, outbox }).map_err(encode)
    }

    /// Reads it from a record that is part of `bytes`.
    pub(crate) fn from_record(bytes: &Bytes, record: LastRecord<'_>) -> Result<Self, String> {
        let ended = match (record.ended, record.wake) {
            (EndedRecord::No, _) => Ended::No,
            (EndedRecord::Pause, _) => Ended::Pause,
            (EndedRecord::Sleep, Some(until)) => Ended::Sleep(until),
            (EndedRecord::Sleep, None) => return Err("it sleeps without a time to wake".into()),
            (EndedRecord::Empty, _) => Ended::Empty,
        };
        let item = |item: ItemRecord<'_>| {
            let to = match (item.session, item.from, item.fork) {
                (Some(session), Some(from), None) => Destination::Session { session, from },
                (None, None, Some(child)) => Destination::Fork { child },
                _ => return Err("an output to be delivered has no one place to go to".to_owned()),
            };
            let line = bytes.slice_ref(item.entry.get().as_bytes());
            let entry = Entry::parse(line).map_err(|error| error.to_string())?;
            Ok(OutboxItem { to, entry })
        };
        let items = record.outbox.unwrap_or_default();
        let outbox = items.into_iter().map(item).collect::<Result<_, _>>()?;
        let LastRecord { version, n, k, .. } = record;
        Ok(Self { version, seen: n, added: k, ended, outbox })
    }
}
