//! What goes wrong, and when; within a budget: rot and older images leave a majority of intact copies
//! of every entry, and one member at a time is damaged.

use super::check::decides;
use super::operators::Act;
use super::{Event, Phase, World};
use crate::coverage::Mark;
use crate::node::{Damage, Node, Process};
use quorate_consensus::MemberId;
use quorate_wal::sim::{Crash, Faults, SimDisk};

/// How often a moment is looked for at which a disk may be rolled back.
const TRIES: u32 = 12;

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Power,
    PowerOfAll,
    DiesInWrite,
    Pause,
    Partition,
    OneWay,
    Reset,
    SlowDisk,
    SyncFails,
    Full,
    Wipe,
    Rot,
    Image,
    RollBack,
    Hang,
}

impl World {
    pub(super) fn schedule_faults(&mut self) {
        let delay = self.fault_pause();
        self.schedule.after(delay, Event::Fault);
        if self.scenario.faults.orders {
            let delay = self.fault_pause();
            self.schedule.after(delay, Event::Order);
        }
        self.schedule_operators();
    }

    pub(super) fn fault_pause(&mut self) -> u64 {
        let mean = self.scenario.fault_every_us;
        self.rng.range(mean / 4, mean * 2)
    }

    pub(super) fn has_faults(&self) -> bool {
        self.phase == Phase::Faults
    }

    pub(super) fn fault(&mut self) {
        if !self.has_faults() {
            return;
        }
        let delay = self.fault_pause();
        self.schedule.after(delay, Event::Fault);
        let f = self.scenario.faults.clone();
        let odds = [
            (Fault::Kill, f.kill, 30),
            (Fault::Power, f.power, 20),
            (Fault::PowerOfAll, f.power_of_all, 4),
            (Fault::DiesInWrite, f.power || f.kill, 20),
            (Fault::Pause, f.pause, 20),
            (Fault::Partition, f.partition, 20),
            (Fault::OneWay, f.one_way, 20),
            (Fault::Reset, f.reset, 20),
            (Fault::SlowDisk, f.disk_stall, 20),
            (Fault::SyncFails, f.sync_failure, 10),
            (Fault::Full, f.full, 10),
            (Fault::Wipe, f.wipe, 10),
            (Fault::Rot, f.rot, 10),
            (Fault::Image, f.roll_back, 10),
            (Fault::RollBack, f.roll_back, 20),
            (Fault::Hang, f.hang, 10),
        ];
        let possible: Vec<_> = odds
            .into_iter()
            .filter(|(_, on, _)| *on)
            .map(|(fault, _, odds)| (fault, odds))
            .collect();
        let Some(fault) = self.rng.weighted(&possible) else { return };
        // The leader is where things happen.
        let count = self.nodes.len();
        let leader = (0..count).find(|m| self.nodes[*m].leads());
        let m = match leader {
            Some(leader) if self.rng.chance(400) => leader,
            _ => self.rng.index(count),
        };
        self.strike(fault, m);
    }

    fn strike(&mut self, fault: Fault, m: usize) {
        match fault {
            Fault::Kill => self.end_process(m, Crash::Kill),
            Fault::Power => self.end_process(m, Crash::Power),
            Fault::PowerOfAll => {
                self.mark(Mark::PowerCutOfAll);
                (0..self.nodes.len()).for_each(|m| self.end_process(m, Crash::Power));
            }
            Fault::DiesInWrite if self.nodes[m].is_up() => {
                let dies_after = Some(self.rng.below(12));
                self.nodes[m].disk.inject(Faults { dies_after, ..Faults::default() });
            }
            Fault::Pause => self.pause(m),
            Fault::Partition => {
                self.mark(Mark::Partition);
                let side = self.rng.below(1 << self.nodes.len()) as u16;
                self.net().split(side);
                self.join_later();
            }
            Fault::OneWay => {
                self.mark(Mark::OneWayCut);
                let to = self.rng.index(self.nodes.len());
                self.net().cut(m, to);
                self.join_later();
            }
            Fault::Reset => {
                let per_mille = *self.rng.pick(&[100, 500, 1000]).unwrap_or(&500);
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
                self.schedule.after(delay, Event::Room { m });
            }
            Fault::Wipe if self.may_lose(m) => {
                self.wipe(m);
                self.restart_later(m);
            }
            Fault::Rot if self.may_lose(m) => self.rot(m),
            Fault::Image
                if self.nodes[m].is_up()
                    && self.nodes[m].damage.is_none()
                    && !self.decides_alone(m) =>
            {
                self.nodes[m].image = Some(self.nodes[m].disk.image());
            }
            Fault::RollBack => self.roll_back_some(TRIES),
            Fault::Hang => self.hang(m),
            _ => {}
        }
    }

    fn end_process(&mut self, m: usize, crash: Crash) {
        if self.nodes[m].is_up() {
            self.crash(m, crash);
            self.restart_later(m);
        }
    }

    fn join_later(&mut self) {
        let delay = self.rng.range(1_000, self.scenario.election_us() * 8);
        self.schedule.after(delay, Event::Join);
    }

    /// Whether what `m` has on its disk may be lost: everybody else who votes runs, is whole, and has
    /// all that anybody has, in the same term; and nobody's log holds, nor is about to, a change of
    /// membership that is not committed, by which the others may be too few.
    fn may_lose(&mut self, m: usize) -> bool {
        let goes = |node: &Node| {
            let leaves = node.process.as_ref().is_some_and(Process::is_leaving);
            leaves || node.damage.is_some() || node.refused.is_some()
        };
        if self.nodes.iter().any(goes) {
            return false;
        }
        let (at, config) = &self.committed_config;
        let changes = |node: &mut Node| {
            let member = node.process.as_mut().map(|process| &mut process.member);
            member.is_some_and(|member| member.status(0, Default::default()).config != *config)
        };
        if *at == 0 || self.nodes.iter_mut().any(changes) {
            return false;
        }
        let others = |id: MemberId| id != self.nodes[m].id;
        // Who is about to vote may be lost just when the others begin to need it.
        let changes = config.is_joint() || config.members.values().any(|info| info.joining);
        if changes || !decides(config, others) {
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

    /// A state in which a member is all of its group would lead at once, whatever came after it.
    fn decides_alone(&mut self, m: usize) -> bool {
        let node = &mut self.nodes[m];
        let Some(process) = &mut node.process else { return false };
        process.member.status(0, Default::default()).config.is_quorum(|id| id == node.id)
    }

    fn rot(&mut self, m: usize) {
        self.crash(m, Crash::Kill);
        self.mark(Mark::Rot);
        let files = self.nodes[m].disk.files();
        let Some((name, bytes)) = self.rng.pick(&files).cloned() else { return };
        let sector = self.rng.below(bytes / 512 + 1);
        self.nodes[m].disk.rot(&name, sector);
        self.nodes[m].damage = Some(Damage::Rot);
        if self.tells() {
            self.note(format!("m{m}: sector {sector} of {name} rots"));
        }
        self.restart_later(m);
    }

    /// Somebody of whom there is an image, as soon as its disk may be lost.
    pub(super) fn roll_back_some(&mut self, tries: u32) {
        let has_image = |m: &usize| self.nodes[*m].image.is_some();
        let found: Vec<usize> = (0..self.nodes.len()).filter(has_image).collect();
        let Some(m) = self.rng.pick(&found).copied().filter(|_| self.has_faults()) else { return };
        if self.may_lose(m) {
            self.roll_back(m);
        } else if tries > 0 {
            self.act_later(Act::RollBack { tries: tries - 1 }, self.scenario.election_us() / 2);
        }
    }

    fn roll_back(&mut self, m: usize) {
        self.crash(m, Crash::Kill);
        self.mark(Mark::RolledBack);
        let Some(image) = self.nodes[m].image.take() else { return };
        self.nodes[m].disk = SimDisk::restore(&image, self.rng.next_u64());
        self.nodes[m].damage = Some(Damage::RolledBack);
        if self.tells() {
            self.note(format!("m{m}: an older image of its disk is restored"));
        }
        self.restart_later(m);
    }
}
