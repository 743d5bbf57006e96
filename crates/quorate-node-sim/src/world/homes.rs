//! What stays of a server when its process ends, and how it starts and ends.

use super::World;
use crate::baton::installed;
use crate::engine::Disk;
use crate::group::HISTORY;
use crate::oracle::Mark;
use crate::plant::Plant;
use crate::server::{Place, Server};
use parking_lot::Mutex as Plain;
use simulated_node::start::grastate::Grastate;
use simulated_node::start::Position;
use std::sync::Arc;

/// A server's place: what stays when its process ends.
pub(super) struct Home {
    pub(super) disk: Arc<Plain<Disk>>,
    pub(super) incarnation: u32,
    pub(super) server: Option<Arc<Server>>,
}

impl Home {
    /// The group is founded on the first. Another has a copy of the same empty database, or nothing.
    pub(super) fn new(number: usize) -> Self {
        let has_copy = number == 0 || installed().random(|rng| rng.chance(600));
        let disk = if has_copy { Disk::founded() } else { Disk::default() };
        Home { disk: Arc::new(Plain::new(disk)), incarnation: 0, server: None }
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
        let lost = self.homes[number].disk.lock().crash();
        self.oracle().tell(|| format!("n{number} crashes and loses {lost} commits"));
        if lost > 0 {
            self.oracle().mark(Mark::CrashLostTail);
        }
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
            }
        }
    }

    /// Whether another has the group's data, and can give it to this one.
    fn others_have_all(&self, number: usize) -> bool {
        self.servers().iter().any(|server| server.number != number && server.is_dependable())
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
