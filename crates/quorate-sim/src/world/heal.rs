//! After the faults: everything must get going again, within bounded time, and agree.

use super::check::{changes, decides};
use super::{name, Mark, Node, Phase, Process, Rule, World};
use crate::database::op_of;
use quorate_consensus::{Config, MemberRole};
use quorate_group::{Alteration, Order};
use quorate_wal::sim::Crash;

/// What `config` may be once it has come into force: any of those that join may be given its vote just then,
/// and only some of them.
fn promotions(config: &Config) -> Vec<Config> {
    let mut all = vec![config.clone()];
    for (id, _) in config.members.iter().filter(|(_, info)| info.joining) {
        for mut with in all.clone() {
            with.members.entry(*id).and_modify(|info| info.joining = false);
            all.push(with);
        }
    }
    all
}

/// Election timeouts that a healed group may take until everything is decided everywhere.
const PATIENCE: u64 = 100;

impl World {
    pub(super) fn heal_check(&mut self) {
        self.forget_ended();
        let phase = self.phase;
        if matches!(phase, Phase::WithoutMinority | Phase::Healed) {
            self.replace_refused();
        }
        match phase {
            Phase::Founding if self.has_all_members() => {
                self.phase = Phase::Faults;
                self.phase_ends = self.schedule.now() + self.scenario.chaos_us;
                self.schedule_faults();
                for m in self.slots() {
                    (0..self.scenario.clients_per_member).for_each(|c| self.client_later(m, c));
                }
            }
            Phase::Faults if self.schedule.now() > self.phase_ends => self.end_faults(),
            Phase::WithoutMinority if self.unfinished().is_none() => self.bring_back_minority(),
            Phase::Healed if self.unfinished().is_none() => {
                self.check_acknowledged();
                if !self.begin_modes() && !self.begin_broken() {
                    self.mark(Mark::Healed);
                    self.phase = Phase::Done;
                }
            }
            Phase::Modes => self.check_modes(),
            Phase::Broken => self.check_broken(),
            Phase::WithoutMinority | Phase::Healed | Phase::Founding
                if self.schedule.now() > self.phase_ends =>
            {
                let why = self.unfinished().unwrap_or_default();
                self.oracle.fail(Rule::Progress, || {
                    format!("{phase:?} for {PATIENCE} election timeouts, but {why}")
                });
            }
            _ => {}
        }
        if self.phase != Phase::Done {
            self.later(self.scenario.election_us() / 4, World::heal_check);
        }
    }

    fn has_all_members(&mut self) -> bool {
        let config = &self.committed_config.1;
        let all = self.nodes.iter().all(|node| self.is_member(node));
        all && !changes(config) && self.has_its_votes(config) && self.unfinished().is_none()
    }

    fn end_faults(&mut self) {
        self.net.perfect = true;
        self.join_links();
        self.away = if self.scenario.minority_stays_away { self.draw_minority() } else { 0 };
        let (away, cut_off) = (self.away, self.scenario.minority_is_cut_off);
        note!(self, "the faults end; {away:#b} stay away, cut off: {cut_off}");
        let phase = if away == 0 { Phase::Healed } else { Phase::WithoutMinority };
        self.phase = phase;
        for m in self.slots() {
            match self.stays_down(m) {
                true => self.crash(m, Crash::Kill),
                false => self.make_well(m),
            }
        }
        if away != 0 && cut_off {
            self.net.split(away);
        }
        self.begin_stage(phase);
    }

    fn bring_back_minority(&mut self) {
        note!(self, "the group is well without the minority, which now comes back");
        let cut_off = self.scenario.minority_is_cut_off;
        self.mark(if cut_off { Mark::WithoutCutOff } else { Mark::WithoutMinority });
        self.away = 0;
        self.phase = Phase::Healed;
        self.join_links();
        self.slots().for_each(|m| self.make_well(m));
        self.begin_stage(Phase::Healed);
    }

    /// Whoever stopped is started again; whoever cannot, as a new member.
    pub(super) fn make_well(&mut self, m: usize) {
        self.nodes[m].apply_lag_us = 0;
        self.nodes[m].slow_disk_until = 0;
        self.make_room(m);
        let run = self.nodes[m].run;
        self.resume(m, run);
        self.unhang(m);
        self.reconnect(m);
        let stopped = |process: &Process| {
            process.fatal.is_some() || process.member.has_failed() || process.is_leaving()
        };
        if self.nodes[m].process.as_ref().is_some_and(stopped) {
            self.crash(m, Crash::Kill);
        }
        self.start(m);
        if self.nodes[m].refused.is_some() {
            self.wipe(m);
            self.start(m);
        }
        self.feed_soon(m);
    }

    /// Whoever was told that it is an older state of itself comes back as a new member, and so does
    /// whoever lacks what rotted.
    fn replace_refused(&mut self) {
        for m in self.slots() {
            let node = &mut self.nodes[m];
            let stopped = node.process.as_ref().is_some_and(|process| process.fatal.is_some());
            let told = node.mark.is_some() || node.refused.is_some() || node.is_disputed();
            let lacks = stopped && node.damage.is_some();
            let told = told || self.is_expelled(m);
            if (told || lacks || self.has_returned(m)) && !self.is_away(m) {
                if lacks && !told && self.promotes_before_it_wipes(m) {
                    continue;
                }
                let others_decide = self.others_decide(m);
                self.wipe(m);
                match others_decide || !self.scenario.allow_alone {
                    true => self.start(m),
                    // The other one goes on alone first: it does not believe whoever answers in this one's place.
                    false => {
                        let run = self.nodes[m].run;
                        self.later(2 * self.scenario.election_us(), move |w| {
                            if w.nodes[m].run == run {
                                w.start(m);
                            }
                        });
                    }
                }
            }
        }
    }

    /// Whether those that are not `m` decide without it: by the membership that is committed, and by what they go by,
    /// which may be a newer one that needs `m` to be committed.
    pub(super) fn others_decide(&mut self, m: usize) -> bool {
        let needed = self.nodes[m].id;
        let decide = |config: &Config| decides(config, |id| id != needed);
        let others = self.nodes.iter_mut().enumerate().filter(|(slot, _)| *slot != m);
        let mut processes = others.filter_map(|(_, node)| node.process.as_mut());
        decide(&self.committed_config.1)
            && processes.all(|process| {
                let config = process.config();
                config.members.is_empty() || decide(&config)
            })
    }

    /// An operator does not take the disk of a voter whom the others cannot decide without, as its log counts:
    /// first a learner, if there is one, gets a vote, or the other one of two the right to go on alone.
    fn promotes_before_it_wipes(&mut self, m: usize) -> bool {
        if self.others_decide(m) {
            return false;
        }
        let config = &self.committed_config.1;
        let is_well = |slot: &usize| {
            let node = &self.nodes[*slot];
            let learns = config.members.get(&node.id).is_some_and(|info| !info.is_voter());
            learns && node.process.as_ref().is_some_and(|process| process.fatal.is_none())
        };
        let Some(learner) = self.slots().find(is_well) else {
            let mut others = self.slots().filter(|slot| *slot != m);
            return self.scenario.allow_alone
                && others
                    .any(|slot| self.nodes[slot].process.as_ref().is_some_and(|p| !p.in_view));
        };
        let leader = self.slots().find(|slot| self.nodes[*slot].leads());
        if let Some(leader) = leader.filter(|_| !self.somebody_waits()) {
            let role = Some(MemberRole::Voter);
            let alteration = Alteration { role, ..Alteration::default() };
            self.tell(leader, "alter", Order::Alter { name: name(learner), alteration });
        }
        true
    }

    /// Everybody present writes and reads something new, and has so long for it.
    pub(super) fn begin_stage(&mut self, phase: Phase) {
        self.enter(phase, PATIENCE);
        for m in self.slots() {
            if self.nodes[m].is_up() && !self.is_away(m) && self.is_member(&self.nodes[m]) {
                self.write(m, 0);
                self.read(m, 0);
            }
        }
    }

    /// By the newest membership that was committed.
    pub(super) fn is_member(&self, node: &Node) -> bool {
        self.committed_config.1.members.contains_key(&node.id)
    }

    /// A random set of members without whom the membership still has its majority.
    ///
    /// Nobody stays away while a membership change is unfinished: two logs with different
    /// memberships may each need the vote of a member that has the better log but is no voter by
    /// it. That is how Raft is, and ends when the member that led comes back. Nor while an operator
    /// waits for something, which may be that somebody is removed who is needed then, or a member for
    /// the votes that it wants.
    fn draw_minority(&mut self) -> u16 {
        let mut away = 0u16;
        let config = self.committed_config.1.clone();
        if !self.nodes.iter_mut().all(|node| node.goes_by(&config)) || self.somebody_waits() {
            return away;
        }
        let settled = !config.is_joint() && self.has_its_votes(&config);
        if !settled || !self.nodes.iter().all(Node::is_whole) {
            return away;
        }
        let promoted = promotions(&config);
        for m in self.slots() {
            let with = away | 1 << m;
            let stays = |id| self.slot(id).is_some_and(|slot| with & (1 << slot) == 0);
            let now = decides(&config, stays);
            let then = now && promoted.iter().all(|config| decides(config, stays));
            if now && self.rng.chance(400) && then {
                away = with;
            }
        }
        away
    }

    /// Whether `m` is to be started only later.
    pub(super) fn stays_down(&self, m: usize) -> bool {
        self.is_away(m) && !self.scenario.minority_is_cut_off
    }

    pub(super) fn is_away(&self, m: usize) -> bool {
        self.away & (1 << m) != 0
    }

    /// The first reason found why the group is not well yet.
    fn unfinished(&mut self) -> Option<String> {
        let present: Vec<usize> = self.slots().filter(|m| !self.is_away(*m)).collect();
        let leads = |m: &usize| self.nodes[*m].leads();
        let leaders: Vec<usize> = present.iter().copied().filter(leads).collect();
        let [leader] = leaders[..] else { return Some(format!("{leaders:?} lead")) };
        let process = self.nodes[leader].process.as_mut()?;
        let status = process.member.status(0, Default::default());
        let commit = status.last_index;
        if status.config.is_joint() {
            return Some("a change of membership is not finished".into());
        }
        for m in present {
            let is_member = status.config.members.contains_key(&self.nodes[m].id);
            let process = match &self.nodes[m].process {
                Some(process) => process,
                None if is_member => return Some(format!("m{m} does not run")),
                None => continue,
            };
            if let Some(fatal) = &process.fatal {
                return Some(format!("m{m} stopped: {fatal}"));
            }
            if !is_member {
                return Some(format!("m{m} is not a member"));
            }
            if process.applied() != commit || process.wal.persisted().index != commit {
                let (applied, last) = (process.applied(), process.wal.last().index);
                return Some(format!("m{m} has applied {applied} of {last}, the end is {commit}"));
            }
            let (writes, reads) = (process.pending.len(), process.reads.len());
            if writes + reads > 0 {
                return Some(format!("m{m} has {writes} writes and {reads} reads open"));
            }
        }
        None
    }

    /// Everything that a client was told is in the log, where it was told.
    fn check_acknowledged(&mut self) {
        self.oracle.check_tasks();
        let leader = self.leader().and_then(|leader| self.nodes[leader].process.as_ref());
        let Some(process) = leader else { return };
        let base = process.wal.base().index;
        let lost = self.oracle.ops().iter().enumerate().find_map(|(op, fate)| {
            let index = fate.index.filter(|i| fate.acknowledged && *i > base)?;
            let mut entries = Vec::new();
            process.wal.read(index, 1, &mut entries).ok()?;
            let there = entries.first().and_then(|entry| op_of(&entry.data));
            (there != Some(op as u32)).then_some((op, index))
        });
        self.oracle.fail_for(lost, Rule::AcknowledgedSurvives, |(op, index)| {
            format!("operation {op} was acknowledged at {index}, where the leader has another")
        });
    }
}
