//! The state machine of a member, as its feeder drives it.

use super::disk::Disk;
use crate::certify::LIMITS;
use quorate_certify::{Rules, Sequenced};
use quorate_consensus::level::VOTES_BY_MAJORITY;
use quorate_consensus::{Entry, EntryKind, Index, MemberId, SnapshotMeta, LEVEL};
use quorate_group::{Applied, Committed, Content, Feed, NoteId, Stored};

pub struct Machine {
    feed: Feed,
    state: Sequenced,
}

impl Machine {
    /// From the newest snapshot; `None`: it cannot be read.
    pub fn begin(disk: &Disk, segment_bytes: u64) -> Option<Machine> {
        let start = Stored { meta: SnapshotMeta::default(), received: false };
        let (view, notes) = Default::default();
        let feed = Feed::new(("n1", MemberId(1)), LEVEL, segment_bytes, start, view, notes);
        let Some((index, _)) = disk.snapshots.last_key_value() else {
            return Some(Machine { feed, state: Sequenced::beginning(LIMITS, 0) });
        };
        let mut machine = Machine { feed, state: Sequenced::beginning(LIMITS, 0) };
        machine.install(disk, *index).then_some(machine)
    }

    /// Goes on from the snapshot of this index; false: it cannot be read.
    pub fn install(&mut self, disk: &Disk, index: Index) -> bool {
        let Some((stored, content)) = disk.snapshots.get(&index) else { return false };
        let Ok(stored) = Stored::decode(stored.encode()) else { return false };
        let Ok(content) = Content::decode(content.clone()) else { return false };
        let Content { view, notes, machine } = content;
        let state = match machine.is_empty() {
            true => Ok(Sequenced::beginning(LIMITS, 0)),
            false => Sequenced::restore(&machine),
        };
        let Ok(state) = state else { return false };
        self.state = state;
        self.feed.install(stored, view, notes);
        true
    }

    /// The note that the last entry was.
    pub fn take_noted(&mut self) -> Option<NoteId> {
        self.feed.take_noted().map(|noted| noted.note.id())
    }

    /// What the group is to be told of after it; an error stops the state machine.
    pub fn apply(&mut self, entry: Entry) -> Result<Option<Applied>, String> {
        let is_data = entry.kind == EntryKind::Data;
        match self.feed.entry(entry).map_err(|error| error.to_string())? {
            Some(Committed::Data { index, data, primary_term, level }) => {
                let rules = Rules::new(primary_term, level >= VOTES_BY_MAJORITY);
                self.state.follow(index, data, rules).map_err(|error| error.to_string())?;
            }
            Some(Committed::View { view, .. }) => {
                let process = |id, start| quorate_certify::process_uuid(id, start);
                let members = view.members.iter().map(|m| process(m.id.0, m.incarnation));
                self.state.view(&members.collect::<Vec<_>>());
            }
            None => {}
        }
        Ok((!is_data).then(|| self.feed.applied()))
    }

    /// A snapshot of here, if one is due.
    pub fn snapshot(&mut self, disk: &mut Disk) -> bool {
        let due = self.feed.is_snapshot_due() && self.feed.position().index <= disk.synced;
        if due {
            let (meta, content) = self.feed.snapshot().fill(self.state.snapshot());
            disk.snapshots.insert(meta.last.index, (Stored { meta, received: false }, content));
        }
        due
    }

    pub fn applied(&self) -> Applied {
        self.feed.applied()
    }

    pub fn seqno(&self) -> i64 {
        self.state.certifier.seqno()
    }
}
