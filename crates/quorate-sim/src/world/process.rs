//! How members are born, start, crash and come back.

use super::start::{sync_all, NoStart};
use super::{Damage, Fault, Mark, Micros, Node, Phase, Plant, Process, Rule, World};
use crate::database::Database;
use crate::oracle::digest_of_notes;
use quorate_consensus::{Entry, EntryKind, HardState, MemberId};
use quorate_group::{Input, LogRoom, Notes};
use quorate_wal::sim::{self, Crash, SimDisk, Steps};
use quorate_wal::{Room, WalOptions};
use std::collections::VecDeque;

const GROUP: u128 = 7;

impl World {
    pub(super) fn begin(&mut self) {
        let count = self.scenario.voters + self.scenario.learners;
        for m in 0..count {
            let clock = self.draw_clock();
            let slow = self.scenario.may(Fault::SlowApply) && self.rng.chance(400);
            let lag = if slow { self.rng.range(1, self.scenario.election_us()) } else { 0 };
            let disk = SimDisk::new(self.rng.next_u64());
            self.nodes.push(Node {
                id: MemberId::default(),
                disk,
                process: None,
                run: 0,
                paused: false,
                backlog: VecDeque::new(),
                off: false,
                clock,
                slow_disk_until: 0,
                apply_lag_us: lag,
                promised: None,
                database_at: 0,
                database_term: None,
                damage: None,
                full: false,
                image: None,
                mark: None,
                refused: None,
                wish: self.first_wish(m),
            });
        }
        let empty = Database::new(self.scenario.window, self.retries.on).digest();
        self.oracle.state(MemberId::default(), 0, empty);
        self.oracle.notes(MemberId::default(), 0, digest_of_notes(&Notes::default()));
        if self.scenario.founded {
            self.enter(Phase::Founding, 200);
        } else {
            self.write_first_membership();
            self.schedule_faults();
        }
        (0..count).for_each(|m| self.start(m));
        self.later(self.scenario.election_us() / 4, World::heal_check);
    }

    /// A group that was founded before the run begins: its first entry is in all logs.
    fn write_first_membership(&mut self) {
        let opened: Vec<_> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(m, node)| {
                sim::open(&node.disk, self.wal_options(m), true).expect("an empty disk")
            })
            .collect();
        let ids: Vec<_> = opened.iter().map(|(.., found)| found.identity.member).collect();
        let config = self.scenario.config(&mut self.rng, &ids);
        self.keep_wishes(&config, &ids);
        let first = Entry::new(1, 1, EntryKind::Config, config.encode());
        self.oracle.given(&first, 0);
        self.configs_made.push((1, config));
        for (wal, mut steps, _) in opened {
            let saved = wal.save_group(GROUP, Default::default()).and_then(|()| {
                wal.save_hard_state(HardState { term: 1, voted_for: None })?;
                wal.append(std::slice::from_ref(&first));
                sync_all(&mut steps)
            });
            saved.expect("a disk without faults");
        }
        for node in &mut self.nodes {
            node.disk = node.disk.crash(Crash::Kill);
        }
    }

    pub(super) fn wal_options(&self, m: usize) -> WalOptions {
        WalOptions {
            segment_bytes: self.scenario.segment_bytes,
            cache_bytes: 16 << 10,
            retain_bytes: 0,
            retain_max: self.scenario.log_segments_max.map(|max| max * self.scenario.segment_bytes),
            keys: self.encryption.keys(m, self.nodes[m].run),
            ..WalOptions::new("/sim")
        }
    }

    /// Starts the process of `m` from what its disk holds.
    pub(super) fn start(&mut self, m: usize) {
        if self.nodes[m].is_up() || self.nodes[m].refused.is_some() || self.is_given_up(m) {
            return;
        }
        self.nodes[m].off = false;
        match self.try_start(m) {
            Ok(()) => {}
            Err(_) if self.nodes[m].full => self.restart_later(m),
            Err(_) if self.nodes[m].disk.is_dead() => {
                self.nodes[m].disk = self.nodes[m].disk.crash(Crash::Power);
                self.restart_later(m);
            }
            Err(NoStart(reason)) => {
                note!(self, "m{m} refuses to start: {reason}");
                self.mark(Mark::RefusedToStart);
                match self.nodes[m].damage {
                    Some(Damage::RolledBack) => self.mark(Mark::RolledBackRefused),
                    Some(Damage::Rot | Damage::GivenUp) => {}
                    None => self.oracle.fail(Rule::StartsAgain, || {
                        format!("m{m} refuses to start though its disk did what disks do: {reason}")
                    }),
                }
                self.nodes[m].refused = Some(reason);
            }
        }
    }

    /// Ends the process; the disk keeps what `crash` leaves.
    pub(super) fn crash(&mut self, m: usize, crash: Crash) {
        self.process_ends(m, crash, false);
    }

    /// Ends the process as the shell does when it is told to: the log is closed.
    pub(super) fn stop(&mut self, m: usize) {
        self.step(m, Input::Close);
        self.process_ends(m, Crash::Kill, true);
        self.restart_later(m);
    }

    fn process_ends(&mut self, m: usize, crash: Crash, in_order: bool) {
        let Some(process) = self.nodes[m].process.take() else { return };
        note!(self, "m{m} ends: {crash:?}, in order: {in_order}");
        self.keep_known(m, &process);
        let (applied, tasks) = (process.applied(), process.open_tasks());
        self.mark(match crash {
            Crash::Power => Mark::PowerCut,
            Crash::Kill if in_order && closes(process.steps) => Mark::Stopped,
            Crash::Kill => Mark::Kill,
        });
        let lost = if self.rng.chance(500) { 0 } else { self.rng.below(60) };
        let kept = applied.saturating_sub(lost);
        let node = &mut self.nodes[m];
        node.promised = Some(process.wal.persisted());
        // Of what it had before, and its log has not shown again, it loses nothing.
        if !process.unlogged {
            node.database_at = kept.max(node.database_at.min(applied));
            node.database_term = process.wal.term_at(node.database_at);
        }
        node.run += 1;
        node.paused = false;
        node.backlog.clear();
        node.off = crash == Crash::Power && self.rng.chance(500);
        node.disk = node.disk.crash(crash);
        if self.plant == Some(Plant::ResurrectTruncated) {
            if let Some(image) = node.image.take() {
                node.disk = SimDisk::restore(&image, 0);
            }
        }
        self.process_ended(m);
        for task in tasks {
            self.mark(Mark::UnknownOutcome);
            self.go_elsewhere(m, task);
        }
    }

    pub(super) fn restart_later(&mut self, m: usize) {
        let run = self.nodes[m].run;
        let delay = self.rng.range(1_000, self.scenario.election_us() * 4);
        self.later(delay, move |w| {
            if w.nodes[m].run == run && !w.stays_down(m) {
                w.start(m);
            }
        });
    }

    pub(super) fn pause(&mut self, m: usize) {
        if self.nodes[m].runs() {
            note!(self, "m{m} is stopped");
            self.mark(Mark::Pause);
            self.nodes[m].paused = true;
            let run = self.nodes[m].run;
            let delay = self.rng.range(1_000, self.scenario.election_us() * 4);
            self.later(delay, move |w| w.resume(m, run));
        }
    }

    pub(super) fn resume(&mut self, m: usize, run: u32) {
        let node = &mut self.nodes[m];
        if !node.paused || node.run != run {
            return;
        }
        node.paused = false;
        self.tick_later(m, 0);
        while let Some(what) = self.nodes[m].backlog.pop_front() {
            if self.nodes[m].run == run && self.nodes[m].runs() {
                what(self);
                self.bury(m);
            }
        }
    }

    /// The directory and the database of `m` are gone; it comes back as somebody else.
    pub(super) fn wipe(&mut self, m: usize) {
        self.crash(m, Crash::Kill);
        note!(self, "m{m} loses its disk");
        self.mark(Mark::LostDisk);
        let disk = SimDisk::new(self.rng.next_u64());
        let node = &mut self.nodes[m];
        node.disk = disk;
        node.id = MemberId::default();
        (node.promised, node.database_at, node.database_term) = (None, 0, None);
        (node.damage, node.image, node.refused, node.mark) = (None, None, None, None);
        node.run += 1;
    }

    /// As the product's clock does.
    fn tick(&mut self, m: usize) {
        self.step_standing(m);
        let now_ms = self.now_ms(m);
        let fast = self.nodes[m].clock.parts_per_million;
        let Some(Process { wal, member, out, feed, hangs, isolated, .. }) =
            &mut self.nodes[m].process
        else {
            return;
        };
        member.step(now_ms, Input::ProcessIsolated(*isolated), out);
        member.step(now_ms, Input::HostCommit(hangs.then_some(1)), out);
        let room = match wal.room() {
            Room::Enough => LogRoom::Enough,
            Room::Reserve { segments } => LogRoom::Reserve { segments: segments as u64 },
            Room::Blocked => LogRoom::Blocked,
        };
        member.step(now_ms, Input::LogRoom { room, warning: None, percent: 0 }, out);
        member.step(now_ms, Input::Applied(feed.applied()), out);
        member.step(now_ms, Input::Tick { unix_ms: now_ms }, out);
        self.keep_modes(m);
        self.carry_out(m);
        let pause = self.scenario.tick_us() as i64 * (1_000_000 - fast) / 1_000_000;
        self.tick_later(m, pause.max(1) as u64);
    }

    /// A timer that a paused process missed rings once, when it goes on.
    pub(super) fn tick_later(&mut self, m: usize, delay: Micros) {
        self.later_even_paused(m, delay, move |w| {
            if !w.nodes[m].paused {
                w.tick(m);
            }
        });
    }

    pub(super) fn hang(&mut self, m: usize) {
        let Some(process) = &mut self.nodes[m].process else { return };
        process.hangs = true;
        self.mark(Mark::Hang);
        let delay = self.rng.range(1, self.scenario.election_us() * 8);
        self.later_at(m, delay, move |w| w.unhang(m));
    }

    pub(super) fn unhang(&mut self, m: usize) {
        if let Some(process) = &mut self.nodes[m].process {
            process.hangs = false;
        }
    }
}

/// Closes the log in order. A disk that fails now leaves what a kill leaves.
fn closes(mut steps: Steps) -> bool {
    sync_all(&mut steps).is_ok() && steps.close().is_ok()
}
