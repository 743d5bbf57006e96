//! The disk's pace: steps of the log's writer, entries read back, snapshots saved, sent and received.

use super::start::{load, load_newest};
use super::{Event, World};
use crate::coverage::Mark;
use crate::node::Save;
use crate::plant::Plant;
use bytes::Bytes;
use quorate_consensus::{Fetch, Index};
use quorate_group::{Input, Parcel, Received, SnapshotOrder, Stored};
use quorate_wal::sim::Next;

impl World {
    /// One step of the log's writer.
    pub(super) fn disk_step(&mut self, m: usize, turn: u64) {
        let Some(process) = &mut self.nodes[m].process else { return };
        if process.disk_turn != turn {
            return;
        }
        (process.disk_busy, process.marking) = (false, false);
        let next = process.steps.next();
        let done = process.steps.step();
        let wal = process.wal.clone();
        if self.tells() {
            let l = format!(
                "m{m} disk {next:?} -> {done:?} last {:?} persisted {:?}",
                wal.last(),
                wal.persisted()
            );
            self.note(l);
        }
        match done {
            Ok(synced) => {
                if self.plant == Some(Plant::AckBeforeSync) && next == Next::Write {
                    self.step(m, Input::Persisted(wal.last()));
                } else if synced.is_some() {
                    self.step(m, Input::Persisted(wal.persisted()));
                    self.feed_soon(m);
                }
            }
            Err(error) => {
                if self.nodes[m].disk.is_dead() {
                    return;
                }
                self.step(m, Input::LogFailed(error.to_string()));
                return;
            }
        }
        self.recycle(m);
        self.disk_soon(m);
    }

    fn recycle(&mut self, m: usize) {
        if self.rng.chance(300) {
            return;
        }
        let Some(process) = &mut self.nodes[m].process else { return };
        if !process.steps.has_recycling() {
            return;
        }
        if let Err(error) = process.steps.recycle() {
            if !self.nodes[m].disk.is_dead() {
                self.step(m, Input::LogFailed(error.to_string()));
            }
        }
    }

    pub(super) fn fetch(&mut self, m: usize, fetch: Fetch) {
        let Some(process) = &self.nodes[m].process else { return };
        let Fetch { to, from, bytes_max } = fetch;
        let mut entries = Vec::new();
        let input = match process.wal.read(from, bytes_max, &mut entries) {
            Ok(()) if !entries.is_empty() => {
                self.mark(Mark::LogFetch);
                Input::Fetched { to, from, entries }
            }
            _ => {
                self.mark(Mark::LogFetchRefused);
                Input::FetchUnavailable { to }
            }
        };
        self.step(m, input);
    }

    /// The state machine's snapshot is to be saved.
    pub(super) fn snapshot_if_due(&mut self, m: usize) {
        let run = self.nodes[m].run;
        let Some(process) = &mut self.nodes[m].process else { return };
        if process.saving || !process.feed.is_snapshot_due() {
            return;
        }
        process.saving = true;
        let machine = process.database.snapshot();
        let (meta, content) = process.feed.snapshot(machine);
        let save = Box::new(Save { meta, content, received: None });
        let delay = self.rng.range(10, 5_000);
        self.schedule.after(delay, Event::Save { m, run, save });
    }

    pub(super) fn snapshot_arrived(&mut self, m: usize, received: Received, content: Bytes) {
        let run = self.nodes[m].run;
        self.mark(Mark::SnapshotReceived);
        let (arrived, meta) = (received.clone(), received.meta.clone());
        let save = Box::new(Save { meta, content, received: Some(received) });
        let delay = self.rng.range(10, 5_000);
        self.schedule.after(delay, Event::Save { m, run, save });
        self.step(m, Input::SnapshotArrived(arrived));
    }

    /// Writes a snapshot's file, durably; then the member hears of it.
    pub(super) fn save(&mut self, m: usize, save: Box<Save>) {
        let Save { meta, content, received } = *save;
        let Some(process) = &mut self.nodes[m].process else { return };
        let index = meta.last.index;
        let stored = Stored { meta, received: received.is_some() };
        if received.is_none() {
            process.saving = false;
        }
        if !(received.is_some() && self.plant == Some(Plant::SnapshotNotSaved))
            && process.snapshots.save(index, &stored.encode(), &content).is_err()
        {
            if received.is_some() {
                self.step(m, Input::SnapshotNotStored);
            }
            return;
        }
        if let Some(received) = received {
            if self.rng.chance(200) && self.scenario.faults.kill && self.has_faults() {
                self.crash(m, quorate_wal::sim::Crash::Kill);
                return self.restart_later(m);
            }
            if self.tells() {
                self.note(format!("m{m} has saved the leader's snapshot of {index}"));
            }
            return self.step(m, Input::SnapshotStored(received));
        }
        self.mark(Mark::SnapshotTaken);
        let Some(process) = &self.nodes[m].process else { return };
        let files = process.snapshots.list().unwrap_or_default();
        self.step(m, Input::SnapshotTaken { needed: Index::MAX, files });
    }

    pub(super) fn release(&mut self, m: usize, index: Index) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let Some((stored, _)) = load(&process.snapshots, index) else { return };
        let released = process.wal.release(index);
        let base = process.wal.base().index;
        if process.snapshots.prune(base).is_err() {
            return;
        }
        if let Some(base) = released {
            self.mark(Mark::SegmentReleased);
            self.step(m, Input::Released { base, config: stored.meta.config });
        }
    }

    /// Sends the newest snapshot file: the log reaches back to it.
    pub(super) fn send_snapshot(&mut self, m: usize, order: SnapshotOrder) {
        let Some(process) = &self.nodes[m].process else { return };
        let SnapshotOrder { to, term } = order;
        let newest = load_newest(&process.snapshots);
        let connected = self.is_connected(m, to);
        let (last, ok) = match newest {
            Some((stored, content)) if connected => {
                self.mark(Mark::SnapshotSent);
                let last = stored.meta.last.index;
                for packet in Parcel::new(term, stored.meta, content) {
                    self.push(m, to, packet);
                }
                self.flush(m);
                (last, true)
            }
            _ => (0, false),
        };
        self.step(m, Input::SnapshotSent { to, last, ok });
    }

    /// Whoever had no room on the disk has it again.
    pub(super) fn make_room(&mut self, m: usize) {
        self.nodes[m].full = false;
        self.nodes[m].disk.inject(Default::default());
    }
}
