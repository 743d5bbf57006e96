//! The disk's pace: steps of the log's writer, entries read back, snapshots saved, sent and received.

use super::start::{load, load_newest};
use super::{Fault, Mark, Plant, World};
use bytes::Bytes;
use quorate_consensus::{Fetch, Index, SnapshotMeta};
use quorate_group::{Input, Parcel, Received, Release, SnapshotOrder, Stored};
use quorate_wal::sim::{Crash, Next};
use quorate_wal::WalError;

impl World {
    /// One step of the log's writer.
    pub(super) fn disk_step(&mut self, m: usize, turn: u64) {
        let Some(process) = &mut self.nodes[m].process else { return };
        if process.disk_turn != turn {
            return;
        }
        process.disk_at = None;
        let next = process.steps.next();
        let done = process.steps.step();
        let wal = process.wal.clone();
        let (last, persisted) = (wal.last(), wal.persisted());
        note!(self, "m{m} disk {next:?} -> {done:?} last {last:?} persisted {persisted:?}");
        match done {
            Ok(synced) => {
                if self.plant == Some(Plant::AckBeforeSync) && next == Next::Write {
                    self.step(m, Input::Persisted(wal.last()));
                } else if synced.is_some() {
                    self.step(m, Input::Persisted(wal.persisted()));
                    self.feed_soon(m);
                }
            }
            Err(error) => return self.log_failed(m, &error),
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
            self.log_failed(m, &error);
        }
    }

    /// Who lost its power in the middle of it hears nothing.
    fn log_failed(&mut self, m: usize, error: &WalError) {
        if !self.nodes[m].disk.is_dead() {
            self.step(m, Input::LogFailed(error.to_string()));
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
        let Some(process) = &mut self.nodes[m].process else { return };
        if process.saving || !process.feed.is_snapshot_due() {
            return;
        }
        process.saving = true;
        let (outline, frozen) = (process.feed.snapshot(), process.database.freeze());
        let delay = self.rng.range(10, 5_000);
        self.later_at(m, delay, move |w| {
            let (meta, content) = outline.fill(frozen.encode());
            w.save(m, meta, content);
        });
    }

    pub(super) fn snapshot_arrived(&mut self, m: usize, received: Received, content: Bytes) {
        self.mark(Mark::SnapshotReceived);
        let Some(process) = &mut self.nodes[m].process else { return };
        let wanted = process.member.arrived(&received, &mut process.out);
        self.carry_out(m);
        if !wanted {
            return;
        }
        let delay = match self.rng.range(10, 5_000) {
            // Long enough for an operator to give up on the leader that sent it.
            slow if slow % 8 == 0 => self.scenario.election_us() * (slow % 64) / 8,
            delay => delay,
        };
        self.later_at(m, delay, move |w| w.save_received(m, received, content));
    }

    fn save(&mut self, m: usize, meta: SnapshotMeta, content: Bytes) {
        let Some(process) = &mut self.nodes[m].process else { return };
        if !process.has_on_disk(meta.last) {
            // A start refuses a log that ends before a snapshot of its own.
            return self.later_at(m, 200, move |w| w.save(m, meta, content));
        }
        process.saving = false;
        let stored = Stored { meta, received: false };
        if process.snapshots.save(stored.meta.last.index, &stored.encode(), &content).is_err() {
            return;
        }
        let files = process.snapshots.list().unwrap_or_default();
        self.mark(Mark::SnapshotTaken);
        self.step(m, Input::SnapshotTaken { needed: Index::MAX, files });
    }

    /// The leader's snapshot is saved; only then the member hears of it.
    fn save_received(&mut self, m: usize, received: Received, content: Bytes) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let index = received.meta.last.index;
        let stored = Stored { meta: received.meta.clone(), received: true };
        if load(&process.snapshots, index).is_some() {
            return self.step(m, Input::SnapshotNotStored(received));
        }
        if self.plant != Some(Plant::SnapshotNotSaved)
            && process.snapshots.save(index, &stored.encode(), &content).is_err()
        {
            return self.step(m, Input::SnapshotNotStored(received));
        }
        if self.rng.chance(200) && self.scenario.may(Fault::Kill) && self.has_faults() {
            return self.end_process(m, Crash::Kill);
        }
        note!(self, "m{m} has saved the leader's snapshot of {index}");
        let now_ms = self.now_ms(m);
        let Some(process) = &mut self.nodes[m].process else { return };
        let taken = process.member.stored(now_ms, &received, &mut process.out);
        self.carry_out(m);
        let Some(process) = self.nodes[m].process.as_ref().filter(|_| !taken) else { return };
        if process.snapshots.remove(index).is_ok() {
            self.step(m, Input::SnapshotNotStored(received));
        }
    }

    pub(super) fn release(&mut self, m: usize, Release { upto, sent }: Release) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let Some((stored, _)) = load(&process.snapshots, upto) else { return };
        let released = process.wal.release(upto, sent);
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
        let connected = self.connection_to(m, to).is_some();
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
