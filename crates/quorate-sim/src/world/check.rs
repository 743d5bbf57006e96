//! Checks that need to see several members, or a core beside its disk.

use super::World;
use crate::coverage::Mark;
use crate::member::Member;
use crate::oracle::{show, Oracle, Rule};
use crate::plant::Plant;
use quorate_consensus::{Config, Index, LogPosition, MemberId, RoleState, Term};
use std::rc::Rc;

impl World {
    pub(super) fn check_majority(
        &mut self,
        m: usize,
        position: LogPosition,
        leads: Option<Term>,
        config_before: &Config,
    ) {
        if leads.is_some_and(|term| position.term != term) {
            self.oracle.fail(Rule::CommitOnlyOwnTerm, || {
                format!("m{m} counts entry {} of a former term", show(position))
            });
        }
        let config_after = Rc::clone(&self.members[m].config);
        let by = |config: &Config| self.persisted_by_majority(position, config);
        if !by(config_before) && !by(&config_after) {
            let on: Vec<_> = (0..self.slots()).filter(|s| self.has_on_disk(*s, position)).collect();
            self.oracle.fail(Rule::CommitNeedsPersistedMajority, || {
                format!(
                    "m{m} commits {}, which is only on the disks of {on:?}; voters {:?}, outgoing {:?}",
                    show(position),
                    config_before.voters().collect::<Vec<_>>(),
                    config_before.outgoing
                )
            });
        }
    }

    /// The rule of zones goes by the membership that the leader counted in.
    pub(super) fn check_zones(&mut self, m: usize, position: LogPosition, config_before: &Config) {
        let config_after = Rc::clone(&self.members[m].config);
        let zones = |config: &Config| {
            let mut holding = config.clone();
            holding.members.retain(|id, _| {
                self.slot(*id).is_some_and(|slot| self.has_on_disk(slot, position))
            });
            holding.zones().len() as u8
        };
        let least = config_before.rules.zones_min.min(config_after.rules.zones_min);
        if least < 2 {
            return;
        }
        let found = zones(config_before).max(zones(&config_after));
        if found < least {
            self.oracle.fail(Rule::CommitInEnoughZones, || {
                format!("m{m} commits {}, on disk in {found} zones of {least}", show(position))
            });
        }
        self.mark(Mark::ZonedCommit);
    }

    fn persisted_by_majority(&self, position: LogPosition, config: &Config) -> bool {
        let on_disk =
            |id: &MemberId| self.slot(*id).is_some_and(|slot| self.has_on_disk(slot, position));
        let (mut voters, mut have) = (0, 0);
        for id in config.votes() {
            voters += 1;
            have += usize::from(on_disk(&id));
        }
        let outgoing = config.outgoing.iter().filter(|id| on_disk(id)).count();
        have * 2 > voters && (config.outgoing.is_empty() || outgoing * 2 > config.outgoing.len())
    }

    fn has_on_disk(&self, slot: usize, position: LogPosition) -> bool {
        self.members[slot].disk.durable.covers(position)
    }

    /// `m` just committed something new, so nobody else may answer reads from its lease. (A leader
    /// that has not committed anything of its own term answers none; until then a predecessor may
    /// still find out what it committed.)
    pub(super) fn check_leases(&mut self, m: usize) {
        if !self.scenario.lease_reads {
            return;
        }
        let now = self.schedule.now();
        for other in 0..self.slots() {
            let member = &self.members[other];
            let RoleState::Leader { term } = member.role else { continue };
            if other == m || member.disk.live.term_at(member.commit) != Some(term) {
                continue;
            }
            let now_ms = member.clock.millis(now);
            if member.core.as_ref().is_some_and(|core| core.status(now_ms).lease_valid) {
                self.oracle.fail(Rule::LeaseSafety, || {
                    format!("m{other} believes in its lease while m{m} commits without it")
                });
            }
        }
    }

    /// The core's idea of the membership is the one in its log.
    pub(super) fn check_config(&mut self, m: usize, config: &Config) {
        let (index, in_log) = self.members[m].disk.live.config();
        if **in_log != *config {
            let in_log = Rc::clone(in_log);
            self.oracle.fail(Rule::Contract, || {
                format!("m{m} goes by {config:?}, its log says {in_log:?} (entry {index})")
            });
        }
    }

    /// What the core says of its log agrees with the log.
    pub(super) fn check_status(&mut self, m: usize) {
        let member = &self.members[m];
        if !member.effects.is_empty() {
            return;
        }
        let now_ms = member.clock.millis(self.schedule.now());
        let Some(status) = member.core.as_ref().map(|core| core.status(now_ms)) else { return };
        let disk = &member.disk;
        let persisted = LogPosition {
            term: disk.live.term_at(status.persisted).unwrap_or(0),
            index: status.persisted,
        };
        let lie = if status.last != disk.live.last() {
            Some(format!("last {}, its log ends at {}", show(status.last), show(disk.live.last())))
        } else if status.commit != member.commit {
            Some(format!("commit {}, it told {}", status.commit, member.commit))
        } else if !disk.keeps(persisted) && self.plant != Some(Plant::AckBeforeSync) {
            Some(format!("persisted {}, its disk disagrees", show(persisted)))
        } else {
            None
        };
        if let Some(lie) = lie {
            self.oracle.fail(Rule::Contract, || format!("the core of m{m} says {lie}"));
        }
    }
}

/// Whatever a member acknowledges is on its disk, as it is in its log (where it has `term`).
pub(super) fn check_acknowledgement(
    oracle: &mut Oracle,
    member: &Member,
    matched: Index,
    term: Option<Term>,
    plant: Option<Plant>,
) {
    if matched < member.disk.live.base.index || plant == Some(Plant::AckBeforeSync) {
        return;
    }
    let kept = term.is_some_and(|term| member.disk.keeps(LogPosition { term, index: matched }));
    if !kept {
        oracle.fail(Rule::AcknowledgeOnlyPersisted, || {
            format!("{:?} acknowledges {matched} (term {term:?}), not on its disk", member.id)
        });
    }
}

/// Nobody speaks of a term, or casts a vote, that a crash could make it forget.
pub(super) fn check_on_disk(
    oracle: &mut Oracle,
    member: &Member,
    term: Term,
    vote: Option<MemberId>,
) {
    let on_disk = member.disk.hard;
    let forgettable = on_disk.term < term
        || (on_disk.term == term && vote.is_some() && vote != on_disk.voted_for);
    if forgettable {
        oracle.fail(Rule::VoteOnlyPersisted, || {
            format!("{:?} speaks in term {term}, vote {vote:?}, but has {on_disk:?}", member.id)
        });
    }
}
