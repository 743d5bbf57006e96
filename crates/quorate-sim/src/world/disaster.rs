//! A majority loses its disks for good, and an operator makes what is left the group.
//!
//! What was committed is lost as far as nobody who was kept has it on disk; nothing else may be. The
//! lost are replaced by new members once there is a group again. Sometimes one of them was not lost
//! after all: what it has never comes back into the group.

use super::check::changes;
use super::{Damage, Mark, Node, Phase, Rule, World};
use quorate_consensus::{Config, Entry, EntryKind, Index, MemberId, MemberRole, Term};
use quorate_group::Order;
use quorate_wal::sim::Crash;
use std::collections::BTreeSet;

/// What the operator gives as the reason.
const REASON: &str = "disaster";

#[derive(Default)]
pub struct Disaster {
    /// There is no majority, and not yet a group without it.
    on: bool,
    /// Given up for good.
    lost: BTreeSet<MemberId>,
    /// Slots where nothing runs until there is a group again.
    empty: u16,
    /// Up to where those that were kept knew what was committed, and the memberships that this was counted by.
    before: (Index, Vec<Config>),
}

impl World {
    /// Whether nothing is to be started at `m`.
    pub(super) fn is_given_up(&self, m: usize) -> bool {
        self.disaster.empty & (1 << m) != 0
    }

    pub(super) fn disaster(&mut self) {
        let Some(left) = self.draw_survivors() else {
            return self.act_in_faults(self.scenario.election_us() / 4, World::disaster);
        };
        note!(self, "disaster: only {left:#b} keep their disks");
        self.mark(Mark::Disaster);
        let returning = self.draw_returning(left);
        for m in self.slots().filter(|m| left & (1 << m) == 0) {
            self.disaster.lost.insert(self.nodes[m].id);
            self.disaster.empty |= 1 << m;
            match returning == Some(m) {
                true => self.crash(m, Crash::Power),
                false => self.wipe(m),
            }
            self.nodes[m].off = self.rng.chance(500);
        }
        // The power goes for those that are left, too: their disks may lack what they have applied.
        if self.rng.chance(400) {
            let left = self.slots().filter(|m| left & (1 << m) != 0);
            for m in left.collect::<Vec<_>>() {
                self.crash(m, Crash::Power);
                self.restart_later(m);
            }
        }
        self.disaster.on = true;
        self.act_later(self.scenario.election_us() * 4, World::force);
    }

    /// The operator asks one of those left, until there is a group.
    pub(super) fn force(&mut self) {
        if self.is_group_again() {
            return self.replace_the_lost();
        }
        self.act_later(self.scenario.election_us() * 4, World::force);
        self.empty_databases();
        let left: Vec<usize> = self.slots().filter(|m| self.nodes[*m].runs()).collect();
        let Some(m) = self.rng.pick(&left) else { return };
        let Some(process) = &self.nodes[m].process else { return };
        let mut known = process.member.who_may_decide();
        // Of those removed before, some have no disk any more.
        known.retain(|id| !self.was_lost(*id) && self.slot(*id).is_some());
        let keep = known.iter().map(MemberId::to_string).collect();
        self.tell(m, "force", Order::ForceQuorum { keep, reason: REASON.into() });
    }

    /// A member whose database has what its log has not cannot be kept: the operator empties its data directory. (Of
    /// a real group's last database a new group would be made.)
    fn empty_databases(&mut self) {
        let unlogged = |m: &usize| self.nodes[*m].process.as_ref().is_some_and(|p| p.unlogged);
        for m in self.slots().filter(unlogged).collect::<Vec<_>>() {
            note!(self, "m{m} has commits in its database that are in no log: it is emptied");
            self.crash(m, Crash::Kill);
            (self.nodes[m].database_at, self.nodes[m].database_term) = (0, None);
            self.restart_later(m);
        }
    }

    /// Whether `m` makes one of these entries as the leader of a forced election: what is lost by
    /// that is lost.
    pub(super) fn look_for_force(&mut self, m: usize, entries: &[Entry]) {
        let by_force = |entry: &Entry| {
            let config = match entry.kind {
                EntryKind::Config if self.disaster.on => Config::decode(&entry.data).ok()?,
                _ => return None,
            };
            config.audit.ends_with(REASON).then_some((entry.index, config))
        };
        let Some((at, config)) = entries.iter().find_map(by_force) else { return };
        let Some(process) = &self.nodes[m].process else { return };
        // It comes to others as an entry like any, too.
        if !process.leads || self.oracle.leader_of(process.term).is_some() {
            return;
        }
        let base = process.wal.base().index;
        let has = |index: &Index| {
            let term: Option<Term> = process.wal.term_at(*index);
            *index <= base || term == self.oracle.committed_term(*index)
        };
        let all = at.min(self.oracle.commit() + 1);
        let upto = (1..all).find(|index| !has(index)).unwrap_or(all) - 1;
        self.forced(m, upto, at, config);
    }

    fn forced(&mut self, m: usize, upto: Index, at: Index, config: Config) {
        note!(self, "m{m} leads by force at {at}; what was committed stays up to {upto}");
        self.mark(Mark::Forced);
        let kept = self.nodes.iter().filter(|node| config.members.contains_key(&node.id));
        let further = kept.filter_map(|node| Some((node.id, self.knows(node, upto + 1)?))).next();
        self.oracle.fail_for(further, Rule::CommittedNeverChanges, |(id, how)| {
            format!("m{m} leads by force, where {upto} is the last of what was committed, but {id:?} {how} the next")
        });
        if self.oracle.commit() > upto {
            self.mark(Mark::LostByForce);
        }
        self.oracle.forced(upto);
        self.known.forget_after(upto);
        let processes = self.nodes.iter_mut().filter_map(|node| node.process.as_mut());
        for read in processes.flat_map(|process| &mut process.reads) {
            read.floor = read.floor.min(upto);
            // What the lost leader answered may stand for what is lost with it.
            read.point = read.point.map(|point| point.min(upto));
        }
        let running = self.nodes.iter_mut().filter_map(|node| node.process.as_mut());
        let commits = running.map(|p| p.member.status(0, Default::default()).commit_index);
        let known = commits.max().unwrap_or_default();
        self.disaster.before = (known, self.configs_in_force().cloned().collect());
        self.configs_made.clear();
        self.committed_config = (at, config);
    }

    /// By which memberships an entry was counted that was known to be committed before they were given up by force.
    pub(super) fn counted_before_force(&self, index: Index) -> &[Config] {
        let (known, configs) = &self.disaster.before;
        if index <= *known {
            configs
        } else {
            &[]
        }
    }

    /// Whether a member that is kept was fed the committed entry at `index`, or has it on disk.
    fn knows(&self, node: &Node, index: Index) -> Option<&'static str> {
        let process = node.process.as_ref()?;
        let term = self.oracle.committed_term(index)?;
        let database = node.database_term.filter(|_| node.database_at >= index);
        if database.is_some() && database == self.oracle.committed_term(node.database_at) {
            return Some("has in its database");
        }
        match process.wal.persisted().index >= index {
            _ if process.applied() >= index => Some("was fed"),
            true if process.wal.term_at(index) == Some(term) => Some("has on disk"),
            _ => None,
        }
    }

    /// The membership installed by force is committed: until then a crash may undo it.
    fn is_group_again(&self) -> bool {
        let (at, config) = &self.committed_config;
        let lost: BTreeSet<MemberId> = config.lost.iter().copied().collect();
        self.disaster.lost.is_subset(&lost) && self.oracle.commit() >= *at
    }

    /// New members in place of the lost; and one of them, that was not lost after all.
    fn replace_the_lost(&mut self) {
        self.disaster.on = false;
        let empty = std::mem::take(&mut self.disaster.empty);
        for m in self.slots().filter(|m| empty & (1 << m) != 0) {
            if self.nodes[m].promised.is_some() {
                self.mark(Mark::GivenUpReturns);
                // Its disk may have been rolled back meanwhile.
                self.nodes[m].damage.get_or_insert(Damage::GivenUp);
            }
            self.restart_later(m);
        }
        if self.phase == Phase::Healed {
            self.begin_stage(Phase::Healed);
        }
    }

    /// Whether `m` runs with a log that was given up.
    pub(super) fn has_returned(&self, m: usize) -> bool {
        !self.is_given_up(m) && self.nodes[m].damage.is_some() && self.was_lost(self.nodes[m].id)
    }

    /// Whether `m` may be no member any more as who it is: it was removed by order, or had left before a quorum was
    /// forced.
    pub(super) fn is_expelled(&self, m: usize) -> bool {
        let (id, config) = (self.nodes[m].id, &self.committed_config.1);
        let is_out = config.lost.contains(&id) && !config.outgoing.contains(&id);
        is_out && !self.disaster.on && !self.was_lost(id)
    }

    /// Their operators empty the disks of those, and start them again.
    pub(super) fn replace_expelled_later(&mut self) {
        let expelled: Vec<usize> = self.slots().filter(|m| self.is_expelled(*m)).collect();
        for m in expelled {
            let delay = self.rng.range(1_000, self.scenario.election_us() * 10);
            self.later(delay, move |w| {
                if w.is_expelled(m) && !w.is_away(m) && w.others_decide(m) {
                    w.mark(Mark::Expelled);
                    w.wipe(m);
                    w.start(m);
                }
            });
        }
    }

    /// Whether what this member knows does not count any more.
    pub(super) fn was_lost(&self, id: MemberId) -> bool {
        self.disaster.lost.contains(&id)
    }

    /// A membership that was committed.
    pub(super) fn check_lost(&mut self, config: &Config) {
        let mut members = config.members.keys().filter(|_| !self.disaster.on);
        let lost = members.find(|id| self.disaster.lost.contains(id));
        self.oracle.fail_for(lost, Rule::GivenUpStaysOut, |id| {
            format!("{id:?} was given up for lost, and is a member")
        });
    }

    /// Members without a majority, one of which has the data, as a set of bits. Each knows who belongs
    /// to the group.
    fn draw_survivors(&mut self) -> Option<u16> {
        let (at, config) = self.committed_config.clone();
        let made = self.configs_made.iter().any(|(made, _)| *made > at);
        let unfinished = changes(&config) || made || self.somebody_waits();
        // With other votes, or without one that leaves, the rest may be a majority after all.
        if unfinished || self.is_somebody_lost() || !self.has_its_votes(&config) {
            return None;
        }
        let left: Vec<usize> = self.slots().filter(|_| self.rng.chance(450)).collect();
        let ids: Vec<MemberId> = left.iter().map(|m| self.nodes[*m].id).collect();
        let mut infos = ids.iter().filter_map(|id| config.members.get(id));
        let fit = !config.is_quorum(|id| ids.contains(&id))
            && infos.any(|info| info.role != MemberRole::Logger)
            && left.iter().all(|m| self.nodes[*m].goes_by(&config) && self.has_index(*m, at))
            && (!self.scenario.staff.loses_commits || !left.iter().any(|m| self.has_newest(*m)));
        fit.then(|| left.iter().fold(0, |set, m| set | 1 << m))
    }

    /// Whether `m` has its log on disk up to here: else what is on its way to it may still be.
    fn has_index(&self, m: usize, index: Index) -> bool {
        let process = self.nodes[m].process.as_ref();
        process.is_some_and(|process| process.wal.persisted().index >= index)
    }

    fn has_newest(&self, m: usize) -> bool {
        let process = self.nodes[m].process.as_ref();
        process.is_none_or(|process| process.wal.persisted().index >= self.oracle.commit())
    }

    /// One of the lost that will be found again, and does not decide by itself.
    fn draw_returning(&mut self, left: u16) -> Option<usize> {
        let config = self.committed_config.1.clone();
        let lost: Vec<usize> = self.slots().filter(|m| left & (1 << m) == 0).collect();
        let m = self.rng.pick(&lost).filter(|_| self.rng.chance(600))?;
        let id = self.nodes[m].id;
        (!config.is_quorum(|other| other == id)).then_some(m)
    }
}
