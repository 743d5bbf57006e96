//! Everybody but the leader: takes the leader's entries, acknowledges what is on disk.
//!
//! Invariants:
//! - Committed entries are never cut off, whatever a message says.
//! - An acknowledgement names a persisted index at which the log is known to equal the leader's.

use super::Consensus;
use crate::config::Config;
use crate::effects::{Effects, Fault, Objection, Rejected};
use crate::history::ConfigHistory;
use crate::level;
use crate::message::{MessageBody, INDEX_MAX, TERM_MAX};
use crate::types::{Entry, EntryKind, Index, LogPosition, MemberId, SnapshotMeta, Term};

impl Consensus {
    pub(super) fn on_append(
        &mut self,
        from: MemberId,
        prev: LogPosition,
        mut entries: Vec<Entry>,
        leader_commit: Index,
        fx: &mut Effects,
    ) {
        if self.is_leader() {
            return;
        }
        let positions = entries.iter().map(Entry::position);
        if std::iter::once(prev).chain(positions).any(|at| self.contradicts_committed(at)) {
            return self.refuse_leader(from, fx);
        }
        self.hear_leader(from, fx);
        if let Some(fault) = self.unreadable(&entries) {
            fx.fault = Some(fault);
            return;
        }
        let end = prev.index + entries.len() as Index;
        if prev.index >= self.commit && !self.log.contains(prev) {
            let limit = LogPosition { term: prev.term, index: prev.index.saturating_sub(1) };
            let hint = self.log.last_at_or_below(limit);
            return self.send(from, MessageBody::AppendReject { rejected: prev.index, hint }, fx);
        }
        // What is committed here is in every leader's log: only the rest needs a look.
        let known =
            |entry: &Entry| entry.index <= self.commit || self.log.contains(entry.position());
        let news = entries.iter().position(|entry| !known(entry)).unwrap_or(entries.len());
        entries.drain(..news);
        let anything_new = !entries.is_empty();
        if let Some(first) = entries.first() {
            if self.log.term_at(first.index - 1).is_none_or(|before| before > first.term) {
                return self.refuse_leader(from, fx);
            }
            self.cut_off(first.index, fx);
        }
        for entry in entries {
            self.append_received(entry, fx);
        }
        self.verified = self.verified.max(end.min(self.log.last().index));
        self.follow_commit(leader_commit, fx);
        self.count_held(fx);
        self.acknowledge(!anything_new, fx);
    }

    /// Whether the log has another entry there, and knows it to be committed.
    fn contradicts_committed(&self, at: LogPosition) -> bool {
        at.index <= self.commit && self.log.term_at(at.index).is_some_and(|term| term != at.term)
    }

    /// What is committed here is in every leader's log, unless this member or that one was given up by force. What they
    /// have must not be mixed: nothing more of it counts, and nothing is acknowledged to it.
    fn refuse_leader(&mut self, from: MemberId, fx: &mut Effects) {
        self.contradicts = Some((self.hard.term, from));
        self.set_leader(None, fx);
        fx.rejected.push(Rejected { from, objection: Objection::Contradicts });
    }

    /// Tells the leader what is persisted: at once if it waits for an answer (`asked`), else when
    /// there is something to tell.
    pub(super) fn acknowledge(&mut self, asked: bool, fx: &mut Effects) {
        let Some(leader) = self.leader else {
            return;
        };
        let agreed = self.verified_end().max(self.commit);
        let matched = agreed.min(self.log.persisted());
        let is_news = matched > self.acknowledged;
        if asked || is_news {
            self.acknowledged = self.acknowledged.max(matched);
            self.send(leader, MessageBody::AppendReply { matched }, fx);
            if is_news {
                self.show_held(matched, fx);
            }
        }
    }

    /// The driver received a snapshot from `from`, leader of `term`.
    pub(super) fn install_snapshot(
        &mut self,
        from: MemberId,
        term: Term,
        meta: SnapshotMeta,
        fx: &mut Effects,
    ) {
        let last = meta.last;
        let sound = last.term <= term && last.index <= INDEX_MAX && term <= TERM_MAX;
        if self.retired || !sound || term < self.hard.term || from == self.options.id {
            return;
        }
        if let Some(objection) = self.objects_to_leader(from, term) {
            fx.rejected.push(Rejected { from, objection });
            return;
        }
        if term > self.hard.term {
            self.note_leap(term);
            self.become_follower(term, Some(from), fx);
        }
        if self.is_leader() {
            return;
        }
        if self.contradicts_committed(last) {
            // A log that is really another one shows itself with its next entries.
            return fx.rejected.push(Rejected { from, objection: Objection::Contradicts });
        }
        self.hear_leader(from, fx);
        if meta.config.level > self.options.level {
            let reason = format!(
                "the group works at level {}: {}",
                meta.config.level,
                level::upgrade(meta.config.level)
            );
            fx.fault = Some(Fault::Unreadable { index: last.index, reason });
            return;
        }
        if last.index > self.commit {
            if self.log.contains(last) {
                self.verified = self.verified.max(last.index);
                self.set_commit(last.index, fx);
            } else {
                self.replace_log(meta, fx);
            }
        }
        let matched = self.commit.min(self.log.persisted());
        self.send(from, MessageBody::SnapshotReply { matched }, fx);
    }

    fn replace_log(&mut self, meta: SnapshotMeta, fx: &mut Effects) {
        let last = meta.last;
        self.log.reset(last);
        self.configs = ConfigHistory::new(meta.config.clone(), last.index, vec![]);
        self.commit = last.index;
        self.verified = last.index;
        fx.restart_log(meta);
        fx.commit = Some(last.index);
        fx.config = Some(self.config().clone());
    }

    /// Makes room for entries of the leader that differ from ours from `from` on.
    fn cut_off(&mut self, from: Index, fx: &mut Effects) {
        if from > self.log.last().index {
            return;
        }
        debug_assert!(from > self.commit);
        self.log.truncate(from);
        fx.truncate(from);
        if self.configs.truncate(from) {
            fx.config = Some(self.config().clone());
        }
    }

    /// A membership among these that this release cannot go by.
    fn unreadable(&self, entries: &[Entry]) -> Option<Fault> {
        entries.iter().filter(|entry| entry.kind == EntryKind::Config).find_map(|entry| {
            let decoded = Config::decode_up_to(self.options.level, &entry.data);
            let reason = decoded.err()?.to_string();
            Some(Fault::Unreadable { index: entry.index, reason })
        })
    }

    fn append_received(&mut self, entry: Entry, fx: &mut Effects) {
        if entry.kind == EntryKind::Config {
            // An unreadable entry cannot get here (see `unreadable`).
            if let Ok(config) = Config::decode(&entry.data) {
                fx.config = Some(config.clone());
                self.configs.push(entry.index, config);
            }
        }
        fx.append.push(entry.clone());
        self.log.append(entry);
    }
}

#[cfg(test)]
mod tests;
