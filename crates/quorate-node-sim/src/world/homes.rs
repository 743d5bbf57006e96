//! What stays of a server when its process ends, and how it starts and ends.

use super::World;
use crate::baton::installed;
use crate::engine::{Disk, Key, SCHEMA};
use crate::group::HISTORY;
use crate::oracle::Mark;
use crate::plant::Plant;
use crate::server::{Place, Server};
use parking_lot::Mutex as Plain;
use quorate_seeds::Rng;
use simulated_node::start::grastate::Grastate;
use simulated_node::start::Position;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How long a vote may take.
const VOTE_MAX: Duration = Duration::from_secs(60);
/// How long a row stays damaged that nobody writes.
const CORRUPT_FOR: Duration = Duration::from_millis(1500);

/// A server's place: what stays when its process ends.
pub(super) struct Home {
    pub(super) disk: Arc<Plain<Disk>>,
    corrupt: Arc<Plain<BTreeSet<Key>>>,
    pub(super) incarnation: u32,
    pub(super) server: Option<Arc<Server>>,
}

impl Home {
    /// The group is founded on the first. Another has a copy of the same empty database, or nothing.
    pub(super) fn new(number: usize) -> Self {
        let has_copy = number == 0 || installed().random(|rng| rng.chance(600));
        let disk = if has_copy { Disk::founded() } else { Disk::default() };
        let disk = Arc::new(Plain::new(disk));
        Home { disk, corrupt: Arc::default(), incarnation: 0, server: None }
    }
}

impl World {
    pub(super) fn start_all(&mut self) {
        for number in 0..self.homes.len() {
            if self.homes[number].server.is_none() {
                self.start(number);
            }
        }
    }

    fn start(&mut self, number: usize) {
        let data_dir = self.folder.0.join(format!("n{number}"));
        if let Err(error) = std::fs::create_dir_all(data_dir.join("db")) {
            return self.oracle().fail(format!("{}: {error}", data_dir.display()));
        }
        if self.homes[number].incarnation > 0 {
            self.oracle().mark(Mark::Restart);
        }
        let (position, half) = {
            let disk = self.homes[number].disk.lock();
            (disk.recovered(), disk.is_half())
        };
        // An operator who forgets that on the last node with the data has to find it by hand.
        let told = !self.others_have_all(number) || installed().random(|rng| rng.chance(850));
        let mut recovered = position.filter(|_| told);
        match position {
            _ if half => self.oracle().mark(Mark::StartOnHalfCopy),
            None => self.oracle().mark(Mark::StartOnBlank),
            Some(_) if !told => self.oracle().mark(Mark::StartOnUnknown),
            Some(_) => {}
        }
        match self.around.plant {
            Some(Plant::AppliedTwice) => {
                recovered = recovered.map(|at| if at > 1 { at - 1 } else { at })
            }
            Some(Plant::HalfCopyTrusted) if half => self.trust(&data_dir),
            _ => {}
        }
        let home = &mut self.homes[number];
        home.incarnation += 1;
        let place = Place {
            number,
            incarnation: home.incarnation,
            disk: home.disk.clone(),
            data_dir,
            corrupt: home.corrupt.clone(),
            recovered,
            founds: number == 0 && home.incarnation == 1,
        };
        home.server = Some(Server::start(place, &self.around));
    }

    fn trust(&self, data_dir: &std::path::Path) {
        let position = Position { uuid: HISTORY, seqno: -1 };
        let group = HISTORY;
        let state = Grastate { position, safe_to_bootstrap: false, group, gtid_domain: None };
        if let Err(error) = state.write(data_dir) {
            self.oracle().fail(error.to_string());
        }
    }

    pub(super) fn crash(&mut self, number: usize) {
        if self.homes[number].server.is_some() {
            self.oracle().mark(Mark::Crash);
            self.end_process(number);
        }
    }

    fn end_process(&mut self, number: usize) {
        let Some(server) = self.homes[number].server.take() else { return };
        installed().kill(server.process);
        self.homes[number].disk.lock().forget_unnoted(&server.data_dir);
        let lost = self.homes[number].disk.lock().crash();
        self.oracle().tell(|| format!("n{number} crashes and loses {lost} commits"));
        if lost > 0 {
            self.oracle().mark(Mark::CrashLostTail);
        }
        self.network().lose_tail(number);
        self.part_with(number, &server);
    }

    pub(super) fn stop(&mut self, number: usize) {
        let Some(server) = self.homes[number].server.take() else { return };
        self.oracle().mark(Mark::CleanStop);
        self.oracle().tell(|| format!("n{number} is stopped"));
        server.stop();
        installed().kill(server.process);
        self.homes[number].disk.lock().flush();
        self.part_with(number, &server);
    }

    fn part_with(&self, number: usize, server: &Server) {
        let is_seen = installed().random(|rng| rng.chance(500));
        self.around.wire.process_died(server.process, is_seen);
        self.network().process_died(number);
        server.forget();
    }

    /// Takes away what has ended by itself, and stops what is of no use any more.
    pub(super) fn collect(&mut self) {
        for number in 0..self.homes.len() {
            let Some(server) = self.homes[number].server.clone() else { continue };
            if server.has_exited() {
                self.end_process(number);
            } else if server.is_withdrawn() {
                self.oracle().mark(Mark::Withdrawn);
                self.stop(number);
            } else if server.is_out_of_use() {
                self.stop(number);
            }
        }
    }

    /// Whether another has the group's data, and can give it to this one.
    fn others_have_all(&self, number: usize) -> bool {
        self.servers().iter().any(|server| server.number != number && server.is_dependable())
    }

    /// What is stored of one row (or of the table's definition) is damaged, for as long as nobody else has
    /// left: if the others lose those who know better, the group goes by what is left.
    pub(super) fn corrupt(&mut self, number: usize) {
        (0..self.homes.len()).for_each(|node| self.network().cut(node, false));
        let servers = self.servers();
        let all = servers.len() == self.homes.len() && servers.iter().all(|s| s.is_dependable());
        let Some(server) = self.homes[number].server.clone().filter(|_| all) else { return };
        let rows = self.around.load.rows;
        let row = |rng: &mut Rng| rng.below(rows.into()) as Key;
        let key = installed().random(|rng| if rng.chance(400) { SCHEMA } else { row(rng) });
        self.oracle().mark(Mark::Corrupted);
        self.oracle().tell(|| format!("n{number} cannot write row {key} any more"));
        server.corrupt.lock().insert(key);
        let until = installed().elapsed() + CORRUPT_FOR;
        let goes_on = || !server.is_withdrawn() && (server.errs() || installed().elapsed() < until);
        while goes_on() && !self.is_over() {
            if installed().elapsed() > until + VOTE_MAX {
                self.oracle().fail(format!("nobody decides on an error of n{number}"));
            }
            if server.errs() && installed().random(|rng| rng.chance(50)) {
                self.network().cut(number, false);
            }
            self.rest(Duration::from_millis(20));
        }
        if !server.errs() {
            server.corrupt.lock().clear();
        }
    }

    /// Both the database and, perhaps, the log directory are gone; if others have all of it.
    pub(super) fn lose_data(&mut self, number: usize) {
        if self.homes[number].server.is_none() || !self.others_have_all(number) {
            return;
        }
        self.crash(number);
        self.oracle().mark(Mark::DataLost);
        self.oracle().tell(|| format!("n{number} loses its data directory"));
        *self.homes[number].disk.lock() = Disk::default();
        self.homes[number].corrupt.lock().clear();
        let data_dir = self.folder.0.join(format!("n{number}"));
        if let Err(error) = std::fs::remove_dir_all(&data_dir) {
            self.oracle().fail(format!("{}: {error}", data_dir.display()));
        }
        if installed().random(|rng| rng.chance(500)) {
            self.oracle().mark(Mark::StartWithoutLog);
            self.network().forget_log(number);
        }
    }
}
