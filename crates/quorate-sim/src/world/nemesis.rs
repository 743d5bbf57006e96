//! What goes wrong, and when.

use super::{Event, Phase, World};
use crate::coverage::Mark;
use crate::member::CrashPoint;
use quorate_consensus::Event as CoreEvent;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Crash,
    CrashLeader,
    CrashAtPoint,
    CrashMajority,
    CrashAll,
    Pause,
    Partition,
    OneWay,
    MuteLeader,
    Flap,
    Clog,
    DiskStall,
    SyncFailure,
    Wipe,
    FalseAlarm,
    CutLeaderWithResets,
    CutLeaderAndRestart,
    Hang,
}

impl World {
    pub(super) fn schedule_faults(&mut self) {
        self.schedule.at(self.scenario.chaos_us, Event::HealCheck);
        let delay = self.rng.below(self.scenario.fault_every_us * 2);
        self.schedule.after(delay, Event::Fault);
        let faults = &self.scenario.faults;
        if faults.membership || faults.transfer || faults.wipe {
            let delay = self.rng.below(self.scenario.election_us() * 4);
            self.schedule.after(delay, Event::Operate);
        }
    }

    /// A fault, and the appointment for the next.
    pub(super) fn fault(&mut self) {
        if self.phase != Phase::Faults {
            return;
        }
        let every = self.scenario.fault_every_us;
        let delay = self.rng.range(every / 4, every * 7 / 4);
        self.schedule.after(delay, Event::Fault);
        self.strike();
    }

    /// Something delicate is going on: a good moment for a fault.
    pub(super) fn provoke(&mut self) {
        if self.phase == Phase::Faults && self.rng.chance(self.scenario.provoked_per_mille) {
            let soon = self.scenario.election_us() / if self.rng.chance(500) { 100 } else { 4 };
            let delay = self.rng.below(soon);
            let operator = self.scenario.faults.membership && self.rng.chance(400);
            let event = if operator { Event::OperateNow } else { Event::Strike };
            self.schedule.after(delay, event);
        }
    }

    pub(super) fn strike(&mut self) {
        if self.phase != Phase::Faults {
            return;
        }
        let enabled = self.enabled_faults();
        let Some(fault) = self.rng.weighted(&enabled) else { return };
        let m = self.rng.index(self.slots());
        match fault {
            Fault::Crash => self.crash_now(m),
            Fault::CrashLeader => self.crash_leader(),
            Fault::CrashAtPoint => self.arm_crash(m),
            Fault::CrashMajority => self.crash_each(700),
            Fault::CrashAll => self.crash_each(1000),
            Fault::Pause => {
                let m = self.leader_or(m);
                let micros = self.draw_duration();
                self.pause(m, micros);
            }
            Fault::Partition => self.partition(),
            Fault::OneWay => self.cut_one_way(),
            Fault::MuteLeader => self.mute_leader(),
            Fault::Flap => {
                let side = self.draw_side();
                self.flap(side, 6);
            }
            Fault::Clog => self.clog(),
            Fault::DiskStall => {
                let m = self.leader_or(m);
                let stall = self.draw_duration();
                self.members[m].slow_disk_until = self.schedule.now() + stall;
            }
            Fault::SyncFailure => {
                let run = self.members[m].run;
                self.schedule.after(1, Event::SyncFailed { m, run });
            }
            Fault::Wipe => self.wipe_if_harmless(m),
            Fault::FalseAlarm => {
                let other = self.rng.index(self.slots());
                self.alarm(m, other);
            }
            Fault::CutLeaderWithResets => self.cut_leader_with_resets(),
            Fault::CutLeaderAndRestart => self.cut_leader_and_restart(),
            Fault::Hang => self.hang(m),
        }
    }

    fn enabled_faults(&self) -> [(Fault, u32); 18] {
        let on = &self.scenario.faults;
        let weight = |enabled: bool, weight: u32| if enabled { weight } else { 0 };
        [
            (Fault::Crash, weight(on.crash, 8)),
            (Fault::CrashLeader, weight(on.crash, 8)),
            (Fault::CrashAtPoint, weight(on.crash, 16)),
            (Fault::CrashMajority, weight(on.crash, 3)),
            (Fault::CrashAll, weight(on.crash, 4)),
            (Fault::Pause, weight(on.pause, 12)),
            (Fault::Partition, weight(on.partition, 16)),
            (Fault::OneWay, weight(on.one_way, 10)),
            (Fault::MuteLeader, weight(on.one_way, 6)),
            (Fault::Flap, weight(on.flap, 4)),
            (Fault::Clog, weight(on.clog, 10)),
            (Fault::DiskStall, weight(on.disk_stall, 10)),
            (Fault::SyncFailure, weight(on.sync_failure, 4)),
            (Fault::Wipe, weight(on.wipe, 5)),
            (Fault::FalseAlarm, weight(on.false_alarms, 10)),
            (Fault::CutLeaderWithResets, weight(on.partition && on.false_alarms, 8)),
            (Fault::CutLeaderAndRestart, weight(on.partition && on.crash, 4)),
            (Fault::Hang, weight(self.scenario.staff.hangs, 8)),
        ]
    }

    // ---- processes ----

    fn crash_now(&mut self, m: usize) {
        if self.members[m].is_up() {
            self.crash(m);
        }
    }

    fn crash_leader(&mut self) {
        if let Some(m) = self.any_leader() {
            self.crash(m);
        }
    }

    fn crash_each(&mut self, per_mille: u32) {
        for m in 0..self.slots() {
            if self.rng.chance(per_mille) {
                self.crash_now(m);
            }
        }
    }

    /// The member will die in the middle of one of its next steps.
    fn arm_crash(&mut self, m: usize) {
        let m = self.leader_or(m);
        let sent = self.rng.index(4);
        let point = self.rng.weighted(&[
            (CrashPoint::BeforeHardState, 2),
            (CrashPoint::AfterHardState, 3),
            (CrashPoint::AfterAppend, 3),
            (CrashPoint::AfterMessages(sent), 4),
        ]);
        self.members[m].crash_at = point;
    }

    fn wipe_if_harmless(&mut self, m: usize) {
        if !self.members[m].gone && self.quorums_survive(|slot| slot == m) {
            self.wipe(m);
        }
    }

    /// `m` is told that `peer` refuses connections, whether or not it does.
    fn alarm(&mut self, m: usize, peer: usize) {
        let (run, peer) = (self.members[m].run, self.members[peer].id);
        let delay = self.rng.below(1_000);
        self.schedule.after(delay, Event::Unreachable { m, run, peer });
    }

    /// A firewall that rejects: the leader is cut off, though alive, and everybody's connection to
    /// it is reset as if it were dead.
    fn cut_leader_with_resets(&mut self) {
        let Some(leader) = self.any_leader() else { return };
        self.partition_off(1 << leader);
        for m in (0..self.slots()).filter(|m| *m != leader) {
            self.alarm(m, leader);
        }
    }

    /// The leader is cut off, and the others forget what was only in their memory.
    fn cut_leader_and_restart(&mut self) {
        let Some(leader) = self.any_leader() else { return };
        self.partition_off(1 << leader);
        for m in (0..self.slots()).filter(|m| *m != leader) {
            if self.rng.chance(800) {
                self.crash_now(m);
            }
        }
    }

    /// What the member works for stands still for a while, and the member is told.
    fn hang(&mut self, m: usize) {
        let m = self.leader_or(m);
        if !self.members[m].runs() {
            return;
        }
        self.mark(Mark::Hang);
        if self.tells() {
            self.note(format!("the host of m{m} hangs"));
        }
        self.must_accept(m, CoreEvent::HostHangs(true));
        let (run, delay) = (self.members[m].run, self.draw_duration());
        self.schedule.after(delay, Event::Unhang { m, run });
    }

    /// A leader half of the time, if there is one.
    fn leader_or(&mut self, m: usize) -> usize {
        let leader = self.any_leader();
        if self.rng.chance(500) {
            leader.unwrap_or(m)
        } else {
            m
        }
    }

    pub(super) fn any_leader(&mut self) -> Option<usize> {
        let leads: Vec<usize> =
            (0..self.slots()).filter(|m| self.members[*m].is_leader()).collect();
        self.rng.pick(&leads).copied()
    }

    // ---- links ----

    fn partition(&mut self) {
        let isolated = self.rng.index(self.slots());
        let side = match self.rng.below(3) {
            0 => 1 << isolated,
            1 => 1 << self.leader_or(isolated),
            _ => self.draw_side(),
        };
        self.partition_off(side);
    }

    /// Puts some on one side and everybody else on the other.
    pub(super) fn partition_off(&mut self, side: u16) {
        self.net.split(side);
        self.mark(Mark::Partition);
        self.tell_links(format!("partition, one side {side:#b}"));
        self.rejoin_later();
    }

    fn cut_one_way(&mut self) {
        let links = self.rng.range(1, 4);
        let both = self.rng.chance(300);
        for _ in 0..links {
            let (from, to) = (self.rng.index(self.slots()), self.rng.index(self.slots()));
            if from != to {
                self.net.cut(from, to);
                if both {
                    self.net.cut(to, from);
                }
                self.tell_links(format!("m{from} -> m{to} is cut, both ways: {both}"));
            }
        }
        self.rejoin_later();
    }

    /// Some of the others no longer hear the leader, and perhaps it does not hear them.
    fn mute_leader(&mut self) {
        let Some(leader) = self.any_leader() else { return };
        let deaf = self.draw_side();
        let both = self.rng.chance(500);
        for m in (0..self.slots()).filter(|m| *m != leader && deaf & (1 << m) != 0) {
            self.net.cut(leader, m);
            if both {
                self.net.cut(m, leader);
            }
        }
        self.tell_links(format!("m{leader} cannot reach {deaf:#b}, both ways: {both}"));
        self.rejoin_later();
    }

    pub(super) fn flap(&mut self, side: u16, left: u32) {
        if self.phase != Phase::Faults {
            return;
        }
        self.net.join_all();
        if left == 0 {
            return;
        }
        if left % 2 == 0 {
            self.net.split(side);
        }
        self.tell_links(format!("flapping partition {side:#b}, {left} changes left"));
        let delay = self.rng.below(self.scenario.election_us());
        self.schedule.after(delay, Event::Flap { side, left: left - 1 });
    }

    fn clog(&mut self) {
        let (from, to) = (self.rng.index(self.slots()), self.rng.index(self.slots()));
        let until = self.schedule.now() + self.draw_duration();
        self.net.clog(from, to, until);
        self.tell_links(format!("m{from} -> m{to} is clogged"));
    }

    pub(super) fn rejoin(&mut self) {
        if self.phase == Phase::Faults {
            self.net.join_all();
            self.tell_links("all links are whole".into());
        }
    }

    fn rejoin_later(&mut self) {
        let delay = self.draw_duration();
        self.schedule.after(delay, Event::Rejoin);
    }

    fn draw_side(&mut self) -> u16 {
        self.rng.below(1 << self.slots()) as u16
    }

    /// From a blink to several election timeouts.
    fn draw_duration(&mut self) -> u64 {
        let election = self.scenario.election_us();
        match self.rng.below(3) {
            0 => self.rng.below(election),
            1 => self.rng.below(election * 2),
            _ => self.rng.below(election * 5),
        }
    }

    fn tell_links(&mut self, text: String) {
        if self.tells() {
            self.note(text);
        }
    }
}
