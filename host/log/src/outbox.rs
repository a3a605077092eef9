//! What a step sends elsewhere: committed with the step, delivered after it, each exactly once.
//!
//! Items wait in the tip's outbox, where every version carries them along until one clears it. A
//! delivery is recognised at its target by the origin on its entry, in the very log that it would
//! be appended to; a fork by its id, which follows from the origin. So delivering can be cut short,
//! taken up by anybody, and done by several at once.

use futures::future::try_join_all;

use crate::append::ATTEMPTS;
use crate::arrival::Arrival;
use crate::bucket::Bucket;
use crate::digest::{Digest, Hasher};
use crate::entry::{Draft, Entry, Origin};
use crate::error::Error;
use crate::last_step::{Destination, OutboxItem};
use crate::session_id::SessionId;
use crate::snapshot::{Snapshot, SnapshotKind};
use crate::timestamp::Timestamp;

/// Where an output goes that is no entry of its own session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Onto another session's log.
    Session(SessionId),
    /// Into a fork of the step's own checkpoint, as its seed.
    Fork,
}

/// An output that is no entry of its own session.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// What is sent.
    pub draft: Draft,
    /// Where it goes.
    pub target: Target,
}

/// An output whose target was found and whose body is stored.
pub(crate) struct Addressed<'a> {
    draft: &'a Draft,
    hash: Digest,
    /// The target, and the length of its log; `None` for a fork.
    to: Option<(SessionId, u64)>,
}

impl Addressed<'_> {
    /// The output as an item of the outbox of a checkpoint.
    pub(crate) fn item(
        &self,
        session: SessionId,
        version: u64,
        created: Timestamp,
        index: u32,
    ) -> Result<OutboxItem, Error> {
        let origin = Origin { session, version, index };
        let draft = Draft { origin: Some(origin), ..self.draft.clone() };
        let to = match self.to {
            Some((session, from)) => Destination::Session { session, from },
            None => Destination::Fork { child: child_id(origin, created) },
        };
        Ok(OutboxItem { to, entry: draft.build_hashed(self.hash)? })
    }
}

/// The id of the fork that an output makes: it follows from where it came from.
fn child_id(origin: Origin, created: Timestamp) -> SessionId {
    let mut hasher = Hasher::default();
    hasher.update(format!("{}:{}:{}", origin.session, origin.version, origin.index).as_bytes());
    let mut unique = [0; 10];
    unique.copy_from_slice(&hasher.finish().as_bytes()[..10]);
    SessionId::new(created, unique)
}

impl Bucket {
    /// Finds the targets of a step's outputs and stores the larger bodies.
    pub(crate) async fn address<'a>(
        &self,
        own: SessionId,
        outgoing: &'a [Outgoing],
    ) -> Result<Vec<Addressed<'a>>, Error> {
        let mut targets: Vec<SessionId> = Vec::new();
        for output in outgoing {
            if let Target::Session(target) = output.target
                && !targets.contains(&target)
            {
                targets.push(target);
            }
        }
        let looks = targets.iter().map(|target| self.length_of_target(own, target));
        let lengths = try_join_all(looks).await?;
        let length = |target: SessionId| {
            targets.iter().zip(&lengths).find(|(id, _)| **id == target).map(|(_, from)| *from)
        };
        let addressed: Vec<Addressed<'a>> = outgoing
            .iter()
            .map(|Outgoing { draft, target }| {
                let to = match target {
                    Target::Session(id) => Some((*id, length(*id).unwrap_or(0))),
                    Target::Fork => None,
                };
                Addressed { draft, hash: Digest::of(&draft.body), to }
            })
            .collect();
        let large = addressed.iter().filter(|output| !output.draft.is_inline());
        try_join_all(large.map(|output| self.put_hashed(output.hash, output.draft.body.clone())))
            .await?;
        Ok(addressed)
    }

    async fn length_of_target(&self, own: SessionId, target: &SessionId) -> Result<u64, Error> {
        let refused = |reason| Error::OutboxTarget { session: *target, reason };
        if own == *target {
            return Err(refused("it is the session of the step itself"));
        }
        match self.tip(target, None).await {
            Ok(tip) => {
                tip.check_writable()?;
                Ok(tip.log.count())
            }
            Err(Error::SessionNotFound { .. }) => Err(refused("it is not in this bucket")),
            Err(Error::SessionRemoved { .. }) => Err(refused("it was removed")),
            Err(other) => Err(other),
        }
    }

    /// Delivers what the last step sent elsewhere, and returns the session's newest snapshot as far
    /// as it is known then. Without an outbox, that is `tip` itself.
    ///
    /// Every item is delivered exactly once, however often this is cut short, resumed or done at
    /// the same time by others. An item whose target was removed since the step was committed is
    /// dropped: the step's checkpoint still names both.
    ///
    /// # Errors
    /// As [`Bucket::push`]. What is not delivered then stays in the outbox.
    pub async fn deliver(&self, tip: Snapshot) -> Result<Snapshot, Error> {
        if tip.last.outbox.is_empty() {
            return Ok(tip);
        }
        let items = &tip.last.outbox;
        let mut reached: Vec<SessionId> = Vec::new();
        for item in items {
            match item.to {
                Destination::Session { session, .. } if reached.contains(&session) => {}
                Destination::Session { session, from } => {
                    // What goes to one session arrives together, in order.
                    reached.push(session);
                    let to_it = |other: &&OutboxItem| match other.to {
                        Destination::Session { session: other, .. } => other == session,
                        Destination::Fork { .. } => false,
                    };
                    let entries = items.iter().filter(to_it).map(|i| i.entry.clone()).collect();
                    self.deliver_to(&session, from, entries).await?;
                }
                Destination::Fork { child } => {
                    let step = self.step_checkpoint(&tip).await?;
                    self.fork_as(&step, child, &item.entry).await?;
                }
            }
        }
        self.clear_outbox(tip).await
    }

    async fn deliver_to(
        &self,
        target: &SessionId,
        from: u64,
        entries: Vec<Entry>,
    ) -> Result<(), Error> {
        let delivered = async {
            let tip = self.tip(target, None).await?;
            self.append_arrival(tip, Arrival::delivery(entries, from)).await
        };
        match delivered.await {
            // It was there when the step was committed: whoever removed it removed its log too.
            Ok(_) | Err(Error::SessionRemoved { .. } | Error::SessionNotFound { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// The checkpoint that the last step made.
    async fn step_checkpoint(&self, tip: &Snapshot) -> Result<Snapshot, Error> {
        if tip.version == tip.last.version {
            return Ok(tip.clone());
        }
        self.snapshot_named(&tip.session, tip.last.version).await
    }

    /// Makes the version without the outbox, unless somebody else has.
    async fn clear_outbox(&self, delivered: Snapshot) -> Result<Snapshot, Error> {
        let (session, step) = (delivered.session, delivered.last.version);
        let mut tip = delivered;
        for _ in 0..ATTEMPTS {
            if tip.last.version != step || tip.last.outbox.is_empty() {
                return Ok(tip);
            }
            let mut next = self.appended(&tip, SnapshotKind::Provisional, &[]);
            next.last.outbox = Vec::new();
            if let Some(made) = self.try_extend(&tip, next).await? {
                return Ok(made);
            }
            tip = self.tip(&session, Some(tip.version + 1)).await?;
        }
        Err(Error::Contended { session, attempts: ATTEMPTS })
    }
}
