//! Which lines a handler is sent for the entries of its log, one after the other: all but control
//! records, and lines that are no entries where they belong.

use pugmark_log::{Entry, Event};

use crate::error::Error;
use crate::handler::LogLine;
use crate::lifecycle::{ForkPoint, Lifecycle, fork_entry, start_entry};

/// The event of the line that stands in for a log without any.
pub(crate) const START: &str = "start";

/// The event of the line where a forked session's own history begins.
pub(crate) const FORK: &str = "fork";

/// How far a handler has been sent its log.
///
/// Whoever sends asks before each entry, and at the end, for a line that is no entry.
pub(crate) struct Cursor {
    /// The position of the next entry.
    position: u64,
    /// Whether a `start` line is still to come in any case.
    starts: bool,
    /// The `fork` line that is still to come.
    fork: Option<ForkPoint>,
    anything_sent: bool,
    stands_in: bool,
}

impl Cursor {
    /// The beginning of a log. With `lifecycle`, lines tell where the session comes from.
    pub(crate) fn new(lifecycle: Option<&Lifecycle>) -> Self {
        Self {
            position: 0,
            starts: lifecycle.is_some(),
            fork: lifecycle.and_then(|lifecycle| lifecycle.fork.clone()),
            anything_sent: false,
            stands_in: false,
        }
    }

    /// The position of the next entry.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Whether a line was sent that would not have been, had there been more log: what was sent is
    /// not how a longer log begins.
    pub(crate) fn is_stale(&self) -> bool {
        self.stands_in
    }

    /// The line that comes before the next entry, if one does.
    pub(crate) fn before_entry(&mut self) -> Result<Option<LogLine>, Error> {
        if std::mem::take(&mut self.starts) {
            return self.start_line().map(Some);
        }
        let position = self.position;
        let Some(point) = self.fork.take_if(|point| point.position <= position) else {
            return Ok(None);
        };
        self.anything_sent = true;
        Ok(Some(LogLine { position: point.position, event: FORK, entry: fork_entry(&point)? }))
    }

    /// The line of the next entry; `None` if it is a control record.
    pub(crate) fn entry(&mut self, entry: Entry) -> Option<LogLine> {
        let position = self.position;
        self.position += 1;
        let event = match entry.event() {
            _ if entry.is_pause() => return None,
            Event::Push => "push",
            Event::Wake => "wake",
            Event::Other => "other",
        };
        self.anything_sent = true;
        Some(LogLine { position, event, entry })
    }

    /// The line at the end of the log, if nothing was sent before it.
    pub(crate) fn end(&mut self) -> Result<Option<LogLine>, Error> {
        if self.anything_sent {
            return Ok(None);
        }
        self.stands_in = true;
        self.start_line().map(Some)
    }

    fn start_line(&mut self) -> Result<LogLine, Error> {
        self.anything_sent = true;
        Ok(LogLine { position: 0, event: START, entry: start_entry()? })
    }
}

#[cfg(test)]
mod tests {
    use pugmark_log::{Attributes, Draft, PAUSE_CONTENT_TYPE};

    use super::*;

    fn entry(content_type: Option<&str>) -> Entry {
        let content_type = content_type.map(str::to_owned);
        Draft::push("x", Attributes { content_type, ..Attributes::default() }).build().unwrap()
    }

    fn shown(line: Option<LogLine>) -> Option<(u64, &'static str)> {
        line.map(|line| (line.position, line.event))
    }

    #[test]
    fn a_line_that_stands_in_makes_what_was_sent_stale() {
        let mut cursor = Cursor::new(None);
        assert_eq!(shown(cursor.before_entry().unwrap()), None);
        assert_eq!(shown(cursor.entry(entry(Some(PAUSE_CONTENT_TYPE)))), None);
        assert!(!cursor.is_stale());
        assert_eq!(shown(cursor.end().unwrap()), Some((0, START)));
        assert!(cursor.is_stale());
        assert_eq!(cursor.position(), 1);
    }

    #[test]
    fn goes_on_where_it_was() {
        let parent = "01923456-789a-7fff-bfff-ffffffffffff".parse().unwrap();
        let fork = Some(ForkPoint { position: 1, parent, version: 7 });
        let mut cursor = Cursor::new(Some(&Lifecycle { fork }));
        assert_eq!(shown(cursor.before_entry().unwrap()), Some((0, START)));
        assert_eq!(shown(cursor.before_entry().unwrap()), None);
        assert_eq!(shown(cursor.entry(entry(None))), Some((0, "push")));
        assert_eq!(shown(cursor.before_entry().unwrap()), Some((1, FORK)));
        for _ in 0..2 {
            assert_eq!(shown(cursor.before_entry().unwrap()), None);
            assert_eq!(shown(cursor.end().unwrap()), None);
        }
        assert_eq!(shown(cursor.entry(entry(None))), Some((1, "push")));
        assert!(!cursor.is_stale());
    }
}
