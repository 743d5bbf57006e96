//! Snapshots: taking them, dropping the log below them, sending them to members too far behind.

use super::{Event, Packet, Received, Shipment, World};
use crate::coverage::Mark;
use crate::disk::Snapshot;
use crate::oracle::{show, Rule};
use quorate_consensus::{
    Event as CoreEvent, Index, LogPosition, MemberId, RoleState, SnapshotMeta,
};
use std::rc::Rc;

/// Snapshots in a thousand that are followed by a crash before the core hears of them.
const CRASH_AFTER_STORE: u32 = 50;

impl World {
    /// After applying: takes a snapshot when enough has happened since the last.
    pub(super) fn snapshot_if_due(&mut self, m: usize) {
        let member = &mut self.members[m];
        let applied = member.machine.applied;
        if applied.saturating_sub(member.snapshot_at) < self.scenario.snapshot_every {
            return;
        }
        if member.disk.snapshot.as_ref().is_some_and(|s| s.last.index >= applied) {
            // A newer one came from the leader, and its log is about to start there.
            return;
        }
        let live = &member.disk.live;
        let Some(term) = live.term_at(applied) else { return };
        let snapshot = Snapshot {
            last: LogPosition { term, index: applied },
            config: Rc::clone(live.config_at(applied)),
            state: member.machine.snapshot(),
        };
        member.snapshot_at = applied;
        if self.tells() {
            self.note(format!("m{m} takes a snapshot at {}", show(snapshot.last)));
        }
        self.mark(Mark::SnapshotTaken);
        let member = &mut self.members[m];
        member.disk.snapshot = Some(Rc::new(snapshot));
        let run = member.run;
        let delay = self.rng.range(1, 2_000);
        self.schedule.after(delay, Event::Compact { m, run });
    }

    /// Drops log that the snapshot covers, but for a part kept for slow followers.
    pub(super) fn compact(&mut self, m: usize) {
        let keep = self.rng.below(30);
        let member = &mut self.members[m];
        let disk = &mut member.disk;
        let Some(snapshot) = disk.snapshot.clone() else { return };
        // The snapshot may be the leader's, and further than what was applied here.
        let covered = snapshot.last.index.min(disk.durable.last().index);
        let index = covered.min(member.machine.applied).saturating_sub(keep);
        let Some(term) = disk.live.term_at(index) else { return };
        let to = LogPosition { term, index };
        if !disk.may_compact(to) {
            return;
        }
        let config = Rc::clone(disk.live.config_at(index));
        disk.compact(to, &config);
        self.mark(Mark::Compaction);
        if self.tells() {
            self.note(format!("m{m} drops its log up to {}", show(to)));
        }
        self.must_accept(m, CoreEvent::Compacted(to, (*config).clone()));
    }

    /// The core wants `to` to have a snapshot.
    pub(super) fn ship_snapshot(&mut self, m: usize, to: MemberId) {
        let token = self.next_number();
        let run = self.members[m].run;
        let Some(snapshot) = self.members[m].disk.snapshot.clone() else {
            if self.welcomed.contains(&to) {
                // It was to be sent one if there is one.
                self.shipments.push(Shipment { token, from: m, to, last: 0 });
                return self.schedule.after(1, Event::SnapshotTimeout { m, run, token });
            }
            return self.oracle.fail(Rule::Contract, || {
                format!("m{m} wants a snapshot sent to {to:?}, but its log was never compacted")
            });
        };
        // It may have lost its office since it asked.
        let RoleState::Leader { term } = self.members[m].role else { return };
        if self.tells() {
            self.note(format!("m{m} sends its snapshot {} to {to:?}", show(snapshot.last)));
        }
        self.shipments.push(Shipment { token, from: m, to, last: snapshot.last.index });
        let patience = self.scenario.election_us() * 4;
        self.schedule.after(patience, Event::SnapshotTimeout { m, run, token });
        self.send(m, to, Packet::Snapshot { term, snapshot, token });
    }

    /// A snapshot came in: it is written to disk before the core hears of it.
    pub(super) fn snapshot_arrived(&mut self, m: usize, received: Received) {
        let run = self.members[m].run;
        let delay = self.rng.range(100, self.scenario.election_us() / 4);
        self.schedule.after(delay, Event::SnapshotStored { m, run, received });
    }

    pub(super) fn snapshot_stored(&mut self, m: usize, received: Received) {
        let Received { from, term, snapshot, token } = received;
        let lost = self.members[from].gone;
        let disk = &mut self.members[m].disk;
        if disk.failed || lost {
            return;
        }
        let newest: Index = disk.snapshot.as_ref().map_or(0, |s| s.last.index);
        if snapshot.last.index > newest {
            disk.snapshot = Some(Rc::clone(&snapshot));
        }
        if self.scenario.faults.crash && self.rng.chance(CRASH_AFTER_STORE) {
            return self.crash(m);
        }
        let meta = SnapshotMeta { last: snapshot.last, config: (*snapshot.config).clone() };
        let last = snapshot.last.index;
        self.members[m].installing.push(snapshot);
        let from_id = self.members[from].id;
        self.must_accept(m, CoreEvent::InstallSnapshot { from: from_id, term, meta });
        if self.members[m].is_up() {
            if self.tells() {
                self.note(format!("m{m} has stored the snapshot up to {last}"));
            }
            self.send(m, from_id, Packet::SnapshotStored { token });
        }
    }

    /// A snapshot arrived, or was given up.
    pub(super) fn shipment_ended(&mut self, token: u64, ok: bool) {
        let Some(at) = self.shipments.iter().position(|s| s.token == token) else { return };
        let Shipment { from, to, last, .. } = self.shipments.swap_remove(at);
        self.must_accept(from, CoreEvent::SnapshotSent { to, last, ok });
    }
}
