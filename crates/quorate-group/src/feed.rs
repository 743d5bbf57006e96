//! Committed entries in log order, as the layer above is to see them: the pure half of whoever feeds
//! a state machine.
//!
//! Invariant: view, notes, configuration and position after an index are the same on every member that got
//! there, by entries or by a snapshot.
//!
//! Snapshots are due a segment's length of log apart, on each member in another place: they take time and a disk.

use crate::error::{memory_fault, unreadable};
use crate::input::Applied;
use crate::note::{Note, Notes};
use crate::snapshot::{Outline, Stored};
use crate::view::View;
use bytes::Bytes;
use quorate_consensus::level::OPERATORS;
use quorate_consensus::{
    level, Config, Entry, EntryKind, Index, Level, LogPosition, MemberId, Primaries, SnapshotMeta,
    Term,
};
use quorate_wire::WireError;

/// What an entry is counted for beside its data when the growth of the log is estimated.
const ENTRY_OVERHEAD: u64 = 64;

/// A committed entry for the layer above. `Noop`, `Config` and `Note` entries are not shown. Everything
/// in it follows from the log.
#[derive(Clone, Debug)]
pub enum Committed {
    Data {
        index: Index,
        data: Bytes,
        /// With a single primary, by the rules in force at this place of the log: the term of the
        /// leader that made the entry.
        primary_term: Option<Term>,
        /// At which the group works at this place of the log.
        level: Level,
    },
    View {
        index: Index,
        view: View,
    },
}

/// A note, as it was met in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    pub index: Index,
    pub note: Note,
    /// It was in the log before, and counts for nothing here.
    pub again: bool,
}

#[derive(Clone, Debug)]
pub struct Feed {
    /// Names this member in errors.
    node: String,
    own: MemberId,
    applied: LogPosition,
    config: Config,
    view: View,
    notes: Notes,
    noted: Option<Noted>,
    /// The highest that this member knows.
    level: Level,
    /// Bytes of log since the last snapshot.
    grown: u64,
    segment_bytes: u64,
    /// It began where others may have begun, too, and has taken no snapshot since.
    began_alike: bool,
}

/// Why the state machine can see nothing more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// This host alone is to blame.
    #[error("{0}")]
    Fault(String),
    /// This release cannot read it.
    #[error("{0}")]
    Unreadable(String),
}

impl Feed {
    /// After the state of this snapshot, with its `view` and `notes` (default: the empty state before index 1).
    pub fn new(
        (node, own): (&str, MemberId),
        level: Level,
        segment_bytes: u64,
        snapshot: Stored,
        view: View,
        notes: Notes,
    ) -> Self {
        let SnapshotMeta { last, config } = snapshot.meta;
        Self {
            node: node.to_owned(),
            own,
            applied: last,
            config,
            view,
            notes,
            noted: None,
            level,
            grown: 0,
            segment_bytes,
            began_alike: snapshot.received || last.index == 0,
        }
    }

    /// The next entry: what the state machine is to see of it. `Err`: the state machine can see
    /// nothing more. What cannot be read is not passed over: others may be able to read it.
    pub fn entry(&mut self, entry: Entry) -> Result<Option<Committed>, FeedError> {
        let index = entry.index;
        self.noted = None;
        if index != self.applied.index + 1 {
            return Err(FeedError::Fault(format!("the log gave index {index} next (a bug)")));
        }
        if !entry.is_intact() {
            let what = format!("log index {index}");
            return Err(FeedError::Fault(memory_fault(&self.node, &what)));
        }
        let position = entry.position();
        let stop = |reason: String| FeedError::Unreadable(unreadable(&self.node, index, &reason));
        self.grown += entry.data.len() as u64 + ENTRY_OVERHEAD;
        let committed = match entry.kind {
            EntryKind::Noop => None,
            EntryKind::Config => {
                let config = Config::decode_up_to(self.level, &entry.data);
                self.config = config.map_err(|error| stop(error.to_string()))?;
                None
            }
            EntryKind::Data => {
                let single = self.config.rules.primaries == Primaries::Single;
                let primary_term = single.then_some(entry.term);
                let level = self.config.level;
                Some(Committed::Data { index, data: entry.data, primary_term, level })
            }
            EntryKind::View => {
                let next = self.view.advance(&entry.data, &self.config);
                next.map_err(|error| stop(error.to_string()))?.map(|view| {
                    self.view = view.clone();
                    Committed::View { index, view }
                })
            }
            EntryKind::Note => {
                let read = read_note(self.config.level, entry.data);
                if let Some(note) = read.map_err(|error| stop(error.to_string()))? {
                    let again = !self.notes.take(index, note.clone());
                    self.noted = Some(Noted { index, note, again });
                }
                None
            }
            EntryKind::Unknown(kind) => {
                let upgrade = level::upgrade(self.level + 1);
                return Err(stop(format!("it is of kind {kind}; {upgrade}")));
            }
        };
        self.applied = position;
        Ok(committed)
    }

    /// The state machine cannot read an entry that it was given: why this member stops.
    pub fn unreadable(&self, index: Index, reason: &str) -> FeedError {
        FeedError::Unreadable(unreadable(&self.node, index, reason))
    }

    /// Whether the log has grown by so much that the state is to be saved. Not in the middle of a change
    /// of members, which is over with the next entry or so: where those are that only decide until then
    /// stands in the configuration before, and a snapshot has but one.
    pub fn is_snapshot_due(&self) -> bool {
        self.grown >= self.period() && !self.config.is_joint()
    }

    /// Bytes of log from one snapshot to the next. The first comes earlier, as many parts of it as there are members
    /// up to this one: from there on all are a part of it away from each other, and from where they began.
    fn period(&self) -> u64 {
        if !self.began_alike {
            return self.segment_bytes;
        }
        let members = &self.config.members;
        let up_to_own = members.range(..=self.own).count() as u64;
        self.segment_bytes * up_to_own / (members.len() as u64 + 1)
    }

    /// The snapshot of here, which the state machine's part is still to come to.
    pub fn snapshot(&mut self) -> Outline {
        (self.grown, self.began_alike) = (0, false);
        let meta = SnapshotMeta { last: self.applied, config: self.config.clone() };
        Outline { meta, view: self.view.clone(), notes: self.notes.clone() }
    }

    /// Goes on after a snapshot of this, whose content the state machine has.
    pub fn install(&mut self, snapshot: Stored, view: View, notes: Notes) {
        let node = (&self.node[..], self.own);
        *self = Self::new(node, self.level, self.segment_bytes, snapshot, view, notes);
    }

    /// What the last entry was, if that was a note.
    pub fn take_noted(&mut self) -> Option<Noted> {
        self.noted.take()
    }

    /// What happened and what operators ordered, as far as that is kept.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    pub fn applied(&self) -> Applied {
        Applied { last: self.applied, view: self.view.clone() }
    }

    pub fn position(&self) -> LogPosition {
        self.applied
    }

    pub fn view(&self) -> &View {
        &self.view
    }
}

/// `None`: it counts for nothing. Before their level there are no notes; one that cannot be read is the same
/// bytes to all, and passed over by all alike, unless a later release wrote it.
fn read_note(level: Level, data: Bytes) -> Result<Option<Note>, WireError> {
    if level < OPERATORS {
        return Ok(None);
    }
    match Note::decode(data) {
        Err(newer @ WireError::Newer(_)) => Err(newer),
        read => Ok(read.ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::{NoteId, OrderNote, OrderTaken};
    use crate::snapshot::Content;
    use quorate_consensus::{MemberInfo, MemberRole, LEVEL};

    fn feed(level: Level) -> Feed {
        let config = Config { level, ..Config::default() };
        let meta = SnapshotMeta { config, ..SnapshotMeta::default() };
        beginning(MemberId(1), 1, Stored { meta, received: false })
    }

    fn beginning(own: MemberId, segment_bytes: u64, snapshot: Stored) -> Feed {
        Feed::new(("n1", own), LEVEL, segment_bytes, snapshot, View::default(), Notes::default())
    }

    fn note(number: u64) -> Bytes {
        let taken =
            OrderTaken { id: NoteId { number, ..NoteId::default() }, ..OrderTaken::default() };
        Note::Order(OrderNote { taken, ..OrderNote::default() }).encode()
    }

    fn take(feed: &mut Feed, data: Bytes) -> Option<bool> {
        let entry = Entry::new(feed.position().index + 1, 1, EntryKind::Note, data);
        assert!(matches!(feed.entry(entry), Ok(None)));
        feed.take_noted().map(|noted| noted.again)
    }

    #[test]
    fn notes_are_kept_once_and_survive_a_snapshot() {
        let mut first = feed(OPERATORS);
        let taken = [note(1), note(2), note(1), Bytes::from_static(b"\x01no note")];
        let taken = taken.map(|data| take(&mut first, data));
        assert_eq!(taken, [Some(false), Some(false), Some(true), None]);
        let (meta, content) = first.snapshot().fill(Bytes::new());
        let Content { view, notes, .. } = Content::decode(content).unwrap();
        let mut second = feed(OPERATORS);
        second.install(Stored { meta, received: true }, view, notes);
        assert_eq!(take(&mut second, note(2)), Some(true));
        assert_eq!(second.notes(), first.notes());
    }

    /// Nobody takes leave for what others may be unable to read, too.
    #[test]
    fn a_fault_of_this_host_is_told_from_what_no_release_of_now_reads() {
        let mut altered = Entry::new(1, 1, EntryKind::Data, Bytes::from_static(b"as proposed"));
        altered.data = Bytes::from_static(b"as altered.");
        assert!(matches!(feed(OPERATORS).entry(altered), Err(FeedError::Fault(_))));
        let later = Entry::new(1, 1, EntryKind::Unknown(9), Bytes::new());
        assert!(matches!(feed(OPERATORS).entry(later), Err(FeedError::Unreadable(_))));
    }

    #[test]
    fn members_that_began_alike_take_snapshots_apart_and_keep_their_places() {
        let member = |id| (MemberId(id), MemberInfo::new(MemberRole::Voter, "", ""));
        let members = [5, 9, 7].map(member);
        let config = Config { members: members.into(), ..Config::default() };
        let meta = SnapshotMeta { config, ..SnapshotMeta::default() };
        // Each entry counts as 100 bytes; a snapshot is due every 4000.
        let mut due = Vec::new();
        for own in [5, 7, 9] {
            let mut snapshot = Stored { meta: meta.clone(), received: false };
            let mut feed = beginning(MemberId(own), 4000, snapshot.clone());
            for index in 1..=100 {
                let entry = Entry::new(index, 1, EntryKind::Data, Bytes::from(vec![0; 36]));
                feed.entry(entry).unwrap();
                if feed.is_snapshot_due() {
                    due.push((own, index));
                    snapshot.meta = feed.snapshot().meta;
                    // It starts again from its own.
                    feed = beginning(MemberId(own), 4000, snapshot.clone());
                }
            }
        }
        let expected =
            [(5, [10, 50, 90].to_vec()), (7, [20, 60, 100].to_vec()), (9, [30, 70].to_vec())];
        let expected =
            expected.into_iter().flat_map(|(own, at)| at.into_iter().map(move |at| (own, at)));
        assert!(due.into_iter().eq(expected));
    }

    #[test]
    fn before_their_level_there_are_no_notes_and_later_ones_stop_the_member() {
        let mut early = feed(OPERATORS - 1);
        assert_eq!(take(&mut early, note(1)), None);
        let (_, content) = early.snapshot().fill(Bytes::from_static(b"machine"));
        assert_eq!(content[0], 1, "the version that the first release reads");
        let mut feed = feed(OPERATORS);
        let later = Entry::new(1, 1, EntryKind::Note, Bytes::from_static(b"\xff"));
        let stopped = feed.entry(later).unwrap_err().to_string();
        assert!(stopped.contains("run a release on this node"), "{stopped}");
    }
}
