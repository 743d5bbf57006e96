//! What members say and see, shown to the oracle.

use super::{show, Mark, Rule, World};
use quorate_consensus::{Config, Entry, Index, LogPosition, MemberId, Message, MessageBody};
use std::collections::BTreeSet;

/// Whether these members can elect a leader and commit.
pub(super) fn decides(config: &Config, among: impl Fn(MemberId) -> bool) -> bool {
    config.is_quorum(&among)
        && zones(config, &among) >= config.rules.zones_min.into()
        && config.voters().any(|id| among(id) && config.may_lead(id))
}

/// In how many zones these members vote.
fn zones(config: &Config, among: impl Fn(MemberId) -> bool) -> usize {
    let voters = config.members.iter().filter(|(id, info)| info.is_voter() && among(**id));
    voters.map(|(_, info)| &info.zone).collect::<BTreeSet<_>>().len()
}

/// Whether who votes is about to change.
pub(super) fn changes(config: &Config) -> bool {
    config.is_joint() || config.members.values().any(|info| info.joining)
}

impl World {
    /// A message of the core is about to leave.
    pub(super) fn hear_message(&mut self, m: usize, message: &Message) {
        let id = self.nodes[m].id;
        let term = message.term;
        match &message.body {
            MessageBody::PreVote { .. } | MessageBody::PreVoteReply { .. } => return,
            MessageBody::VoteReply { granted: true } => self.oracle.voted(id, term, message.to),
            MessageBody::Vote { .. } => self.oracle.voted(id, term, id),
            MessageBody::AppendReply { matched } | MessageBody::SnapshotReply { matched } => {
                self.check_acknowledgement(m, *matched)
            }
            MessageBody::TimeoutNow => self.mark(Mark::HandOver),
            _ => {}
        }
        self.oracle.spoke(id, term);
    }

    /// Only what is on disk is acknowledged: as entries, or in a snapshot.
    fn check_acknowledgement(&mut self, m: usize, matched: Index) {
        let Some(process) = &self.nodes[m].process else { return };
        let persisted = process.wal.persisted();
        let missing = matched > persisted.index && !process.is_in_snapshot(matched);
        self.oracle.fail_if(missing, Rule::AcknowledgeOnlyPersisted, || {
            format!("m{m} acknowledges {matched}, and has {} on disk", show(persisted))
        });
    }

    /// Nobody was fed this index before `m`: perhaps it knew of the commit before the leader did.
    fn see_who_counted(&mut self, m: usize, index: Index) {
        if self.coverage.count(Mark::CountedItself) > 0 {
            return;
        }
        let Some(leader) = self.leader().filter(|leader| *leader != m) else { return };
        let Some(process) = &mut self.nodes[leader].process else { return };
        if process.member.status(0, Default::default()).commit_index < index {
            self.mark(Mark::CountedItself);
        }
    }

    /// `m` is fed `entry` as committed.
    pub(super) fn check_fed(&mut self, m: usize, entry: &Entry) {
        let id = self.nodes[m].id;
        let Some(process) = &self.nodes[m].process else { return };
        let (counted_in, position) = (process.term, entry.position());
        let is_ahead = !process.has_on_disk(position);
        self.oracle.fail_if(!process.has(position), Rule::LogFitsDatabase, || {
            format!("m{m} is fed {}, which its own log does not have", show(position))
        });
        if is_ahead {
            self.mark(Mark::FedAhead);
        }
        let news = self.oracle.committing(id, entry, counted_in);
        if news {
            self.see_who_counted(m, entry.index);
        }
        if !news || self.nodes[m].damage.is_some() {
            return;
        }
        let has = |id: MemberId| self.has_durably(id, position);
        let since = self.committed_config.0;
        let before = self.counted_before_force(position.index);
        let enough =
            since == 0 || self.configs_in_force().chain(before).any(|config| config.is_quorum(has));
        if !enough {
            let holders: Vec<_> = self.slots().filter(|at| has(self.nodes[*at].id)).collect();
            let config = &self.committed_config;
            self.oracle.fail(Rule::CommitNeedsPersistedMajority, || {
                let at = show(position);
                format!("m{m} is fed {at}, which is on the disks of {holders:?} only; {config:?}")
            });
        }
        self.check_zones(m, position);
    }

    /// By which of these memberships what comes next is counted, only the leader knows.
    pub(super) fn configs_in_force(&self) -> impl Iterator<Item = &Config> {
        let (since, committed) = &self.committed_config;
        let made = self.configs_made.iter().filter(move |(index, _)| index > since);
        made.map(|(_, config)| config).chain([committed])
    }

    /// The rule of zones goes by a membership that was in force meanwhile, too.
    fn check_zones(&mut self, m: usize, position: LogPosition) {
        let asked = |config: &Config| config.rules.zones_min;
        let least = self.configs_in_force().map(asked).min().unwrap_or_default();
        if self.committed_config.0 == 0 || least < 2 {
            return;
        }
        let holds = |id| self.has_durably(id, position);
        let zones = self.configs_in_force().map(|config| zones(config, holds));
        let found = zones.max().unwrap_or_default();
        self.oracle.fail_if(found < usize::from(least), Rule::CommitInEnoughZones, || {
            format!("m{m} is fed {}, on disk in {found} zones of {least}", show(position))
        });
        self.mark(Mark::ZonedCommit);
    }

    /// Whether a member has, or had when it ended, this entry on disk.
    fn has_durably(&self, id: MemberId, position: LogPosition) -> bool {
        let Some(m) = self.slot(id) else {
            // Its disk was lost since; what it had cannot be asked any more.
            return true;
        };
        let node = &self.nodes[m];
        match &node.process {
            Some(process) => {
                process.has_on_disk(position) || process.is_in_snapshot(position.index)
            }
            None => node.promised.is_some_and(|promised| position.index <= promised.index),
        }
    }
}
