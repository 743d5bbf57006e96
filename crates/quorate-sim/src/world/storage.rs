//! The log of a member at work: syncs and their news, reading back.

use super::{Event, Phase, World};
use crate::coverage::Mark;
use crate::member::Member;
use crate::plant::Plant;
use quorate_consensus::{Entry, Event as CoreEvent, Fetch, Index, LogPosition};

impl World {
    pub(super) fn start_sync(&mut self, m: usize) {
        let scenario = &self.scenario;
        let member = &mut self.members[m];
        if !member.disk.start_sync() {
            return;
        }
        let (low, high) = scenario.sync_us;
        let mut takes = low;
        let now = self.schedule.now();
        if self.phase == Phase::Faults {
            takes = self.rng.range(low, high);
            if self.rng.chance(scenario.stall_per_mille) {
                takes += self.rng.below(scenario.stall_us);
            }
            takes += member.slow_disk_until.saturating_sub(now);
        }
        let run = member.run;
        self.schedule.after(takes, Event::SyncDone { m, run });
    }

    pub(super) fn sync_done(&mut self, m: usize, run: u32) {
        let member = &mut self.members[m];
        if !member.is_up() || member.run != run || member.disk.failed {
            return;
        }
        member.disk.finish_sync();
        let upto = member.disk.durable.last().index;
        if self.scenario.records_commit && member.disk.durable.last().index >= member.commit {
            let commit = member.commit;
            if member.disk.live.term_at(commit) == member.disk.durable.term_at(commit) {
                member.disk.commit_hint = commit;
            }
        }
        let late =
            self.phase == Phase::Faults && self.rng.chance(self.scenario.late_notice_per_mille);
        let longest = if late { self.scenario.election_us() * 3 } else { 1 };
        // Syncs are told of in their order.
        let now = self.schedule.now();
        let member = &mut self.members[m];
        member.told_at = member.told_at.max(now + self.rng.below(longest));
        self.schedule.at(member.told_at, Event::Persisted { m, run, upto });
    }

    /// The core hears of a sync that ended with `upto`: of as much of it as still counts.
    pub(super) fn persisted(&mut self, m: usize, upto: Index) {
        self.start_sync(m);
        let counts = upto.min(self.counts_as_persisted(m));
        if counts < upto {
            self.mark(Mark::StaleSync);
        }
        let member = &mut self.members[m];
        let Some(term) = member.disk.live.term_at(counts) else { return };
        member.persisted = member.persisted.max(counts);
        self.must_accept(m, CoreEvent::Persisted(LogPosition { term, index: counts }));
        if self.scenario.applies_own_persisted && self.members[m].is_up() {
            self.apply_soon(m);
        }
    }

    /// Counts what the core wants taken back, whether or not it is carried out yet.
    fn counts_as_persisted(&self, m: usize) -> Index {
        let Member { disk, effects, .. } = &self.members[m];
        if self.plant == Some(Plant::AckBeforeSync) {
            return disk.live.last().index;
        }
        let cut = effects.truncate_from.map_or(Index::MAX, |from| from - 1);
        let reset = if effects.reset_log.is_some() { 0 } else { Index::MAX };
        disk.persisted().min(cut).min(reset)
    }

    pub(super) fn start_fetch(&mut self, m: usize, fetch: Fetch) {
        let run = self.members[m].run;
        // The reader may look at the log now or when its turn comes.
        let read = self.rng.chance(500).then(|| self.read_log(m, &fetch)).flatten();
        let busy = self.rng.chance(100);
        let delay = self.rng.range(20, if busy { self.scenario.election_us() / 2 } else { 500 });
        self.schedule.after(delay, Event::Fetch { m, run, fetch, read });
    }

    pub(super) fn fetch(&mut self, m: usize, fetch: Fetch, read: Option<Vec<Entry>>) {
        let Fetch { to, from, .. } = fetch;
        if from <= self.members[m].disk.live.base.index {
            self.mark(Mark::LogFetchRefused);
            return self.must_accept(m, CoreEvent::FetchUnavailable { to });
        }
        let entries = read.or_else(|| self.read_log(m, &fetch)).unwrap_or_default();
        if !entries.is_empty() {
            self.mark(Mark::LogFetch);
            self.must_accept(m, CoreEvent::Fetched { to, from, entries });
        }
    }

    fn read_log(&self, m: usize, fetch: &Fetch) -> Option<Vec<Entry>> {
        let live = &self.members[m].disk.live;
        let skip = fetch.from.checked_sub(live.base.index + 1)? as usize;
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            let first = bytes == 0;
            bytes += entry.data.len() + 1;
            first || bytes <= fetch.bytes_max
        };
        let entries: Vec<_> = live.entries().iter().skip(skip).take_while(fits).cloned().collect();
        (!entries.is_empty()).then_some(entries)
    }
}
