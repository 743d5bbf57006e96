//! What goes wrong, and when; within a budget: rot and older images leave a majority of intact copies
//! of every entry, by each membership that somebody may still go by, and one member at a time is damaged.

use super::check::{changes, decides};
use super::{Damage, Fault, Mark, Node, Phase, World};
use quorate_consensus::MemberId;
use quorate_wal::sim::{Crash, Faults, SimDisk};

/// Orders after which somebody may be needed who was not before.
const CHANGES_MEMBERS: [&str; 4] = ["alter", "leave", "remove", "rules"];

/// How often a moment is looked for at which a disk may be rolled back.
const TRIES: u32 = 12;

impl World {
    pub(super) fn schedule_faults(&mut self) {
        self.fault_later(World::fault);
        if self.scenario.may(Fault::Orders) {
            self.fault_later(World::order);
        }
        self.schedule_operators();
    }

    pub(super) fn fault_later(&mut self, act: fn(&mut World)) {
        let mean = self.scenario.fault_every_us;
        let delay = self.rng.range(mean / 4, mean * 2);
        self.later(delay, if_faults(act));
    }

    pub(super) fn has_faults(&self) -> bool {
        self.phase == Phase::Faults
    }

    pub(super) fn fault(&mut self) {
        self.fault_later(World::fault);
        let Some(fault) = self.rng.weighted(&self.scenario.odds()) else { return };
        let m = self.draw_node(400);
        self.strike(fault, m);
    }

    fn strike(&mut self, fault: Fault, m: usize) {
        match fault {
            Fault::Kill => self.end_process(m, Crash::Kill),
            Fault::Power => self.end_process(m, Crash::Power),
            Fault::PowerOfAll => {
                self.mark(Mark::PowerCutOfAll);
                self.slots().for_each(|m| self.end_process(m, Crash::Power));
            }
            Fault::DiesInWrite if self.nodes[m].is_up() => {
                let dies_after = Some(self.rng.below(12));
                self.nodes[m].disk.inject(Faults { dies_after, ..Faults::default() });
            }
            Fault::Pause => self.pause(m),
            Fault::Partition => {
                self.mark(Mark::Partition);
                let side = self.rng.below(1 << self.nodes.len()) as u16;
                self.net.split(side);
                self.join_later();
            }
            Fault::OneWay => {
                self.mark(Mark::OneWayCut);
                let to = self.rng.index(self.nodes.len());
                self.net.cut(m, to);
                self.join_later();
            }
            Fault::Reset => {
                let per_mille = self.rng.one_of([100, 500, 1000]);
                self.reset_some(per_mille);
            }
            Fault::SlowDisk => {
                let delay = self.rng.below(self.scenario.stall_us);
                self.nodes[m].slow_disk_until = self.schedule.now() + delay;
            }
            Fault::SyncFails if self.nodes[m].is_up() => {
                self.mark(Mark::SyncFailure);
                let sync_fails_after = Some(self.rng.below(3));
                self.nodes[m].disk.inject(Faults { sync_fails_after, ..Faults::default() });
            }
            Fault::Full => {
                self.mark(Mark::DiskFull);
                let used: u64 = self.nodes[m].disk.files().iter().map(|(_, bytes)| bytes).sum();
                let capacity = Some(used);
                self.nodes[m].full = true;
                self.nodes[m].disk.inject(Faults { capacity, ..Faults::default() });
                let delay = self.rng.range(1_000, self.scenario.election_us() * 6);
                self.later(delay, move |w| w.make_room(m));
            }
            Fault::Wipe if self.may_lose(m) => {
                self.wipe(m);
                self.restart_later(m);
            }
            Fault::Rot if self.may_forget(m) => self.rot(m),
            Fault::Image if self.nodes[m].damage.is_none() && !self.may_decide_alone(m) => {
                self.nodes[m].image = Some(self.nodes[m].disk.image());
            }
            Fault::RollBack => self.roll_back_some(TRIES),
            Fault::Hang => self.hang(m),
            _ => {}
        }
    }

    /// Ends the process that runs there, if one does, for a while.
    pub(super) fn end_process(&mut self, m: usize, crash: Crash) {
        if self.nodes[m].is_up() {
            self.crash(m, crash);
            self.restart_later(m);
        }
    }

    fn join_later(&mut self) {
        let delay = self.rng.range(1_000, self.scenario.election_us() * 8);
        self.later(delay, World::join_links);
    }

    /// Whether what `m` has on its disk may be lost: everybody else who votes runs, is whole, and has
    /// all that anybody has, in the same term; and nobody's log holds, nor is about to, a change of
    /// membership that is not committed, by which the others may be too few; nor is one ordered.
    fn may_lose(&mut self, m: usize) -> bool {
        let changes_members = |node: &Node| {
            node.process.as_ref().is_some_and(|process| process.has_order_of(&CHANGES_MEMBERS))
        };
        if self.nodes.iter().any(|node| changes_members(node) || !node.is_whole()) {
            return false;
        }
        let (at, config) = &self.committed_config;
        let differs = |node: &mut Node| node.is_up() && !node.goes_by(config);
        if *at == 0 || self.nodes.iter_mut().any(differs) {
            return false;
        }
        let others = |id: MemberId| id != self.nodes[m].id;
        // Who is about to vote may be lost just when the others begin to need it.
        if changes(config) || !decides(config, others) {
            return false;
        }
        let ends: Vec<_> = self
            .nodes
            .iter()
            .filter(|node| config.members.contains_key(&node.id))
            .map(|node| {
                let process = node.process.as_ref().filter(|_| !node.paused)?;
                let (last, persisted) = (process.wal.last(), process.wal.persisted());
                (last == persisted && process.install.is_none()).then_some((process.term, last))
            })
            .collect();
        let known = ends.len() == config.members.len();
        known && ends.iter().all(|end| end.is_some() && *end == ends[0])
    }

    /// Whether `m` may come back as an older state of itself. Those who never heard of the present
    /// membership (they are not in it, and need not run) must be too few for an earlier one even with
    /// `m`: nobody can tell a majority that knows no better from one in which somebody forgot.
    fn may_forget(&mut self, m: usize) -> bool {
        if !self.may_lose(m) {
            return false;
        }
        let at = self.committed_config.0;
        let term = self.oracle.committed_term(at).unwrap_or_default();
        let forgets = |id: MemberId| {
            self.slot(id).is_some_and(|slot| {
                let node = &self.nodes[slot];
                let process = node.process.as_ref();
                let end = process.map_or(node.promised, |process| Some(process.wal.persisted()));
                slot == m || end.is_none_or(|end| end.index < at || end.term < term)
            })
        };
        let alone = |id: MemberId| id == self.nodes[m].id;
        let mut earlier = self.configs_made.iter().filter(|(made, _)| *made < at);
        !earlier.any(|(_, config)| config.is_quorum(forgets) && !config.is_quorum(alone))
    }

    /// A state in which a member is all of its group would lead at once, whatever came after it; and the
    /// disk may still be in it when the membership in memory has others already. Of a member that does
    /// not run nobody knows.
    fn may_decide_alone(&mut self, m: usize) -> bool {
        let node = &mut self.nodes[m];
        let Some(process) = &mut node.process else { return true };
        let (config, persisted) = (process.config(), process.wal.persisted().index);
        let made = self.configs_made.iter().rev().find(|(_, made)| *made == config);
        let on_disk = made.is_none_or(|(at, _)| *at <= persisted);
        !on_disk || config.is_quorum(|id| id == node.id)
    }

    fn rot(&mut self, m: usize) {
        self.crash(m, Crash::Kill);
        self.mark(Mark::Rot);
        let files = self.nodes[m].disk.files();
        let Some((name, bytes)) = self.rng.pick(&files) else { return };
        let sector = self.rng.below(bytes / 512 + 1);
        self.nodes[m].disk.rot(&name, sector);
        self.nodes[m].damage = Some(Damage::Rot);
        note!(self, "m{m}: sector {sector} of {name} rots");
        self.restart_later(m);
    }

    /// Somebody of whom there is an image, as soon as its disk may be lost.
    pub(super) fn roll_back_some(&mut self, tries: u32) {
        let has_image = |m: &usize| self.nodes[*m].image.is_some();
        let found: Vec<usize> = self.slots().filter(has_image).collect();
        let Some(m) = self.rng.pick(&found).filter(|_| self.has_faults()) else { return };
        if self.may_forget(m) {
            self.roll_back(m);
        } else if tries > 0 {
            let most = self.scenario.election_us() / 2;
            self.act_later(most, move |w| w.roll_back_some(tries - 1));
        }
    }

    fn roll_back(&mut self, m: usize) {
        self.crash(m, Crash::Kill);
        self.mark(Mark::RolledBack);
        let Some(image) = self.nodes[m].image.take() else { return };
        self.nodes[m].disk = SimDisk::restore(&image, self.rng.next_u64());
        self.nodes[m].damage = Some(Damage::RolledBack);
        note!(self, "m{m}: an older image of its disk is restored");
        self.restart_later(m);
    }
}

/// What is done only as long as there are faults.
pub(super) fn if_faults(act: fn(&mut World)) -> impl FnOnce(&mut World) {
    move |world| {
        if world.has_faults() {
            act(world);
        }
    }
}
