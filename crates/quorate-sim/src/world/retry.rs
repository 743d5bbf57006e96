//! Clients whose write has an unknown outcome go to another node, look there whether it is done, and
//! if it is not they try again; sessions of a node without a quorum give up what they had proposed.
//!
//! Sessions of one node lock the rows they change until they know the outcome, and drop the locks
//! when they give up: so what a node writes has seen what it wrote before, except what it gave up.
//! Who waits how long, and which epoch a write set gets for that, is the code of `quorate-node`.

use super::{mix, Client, Mark, Pending, Plant, Process, Profile, Rng, World};
use crate::database::{row_path, Part, WriteRequest};
use quorate_certify::{Header, KeyType};
use quorate_node::link::giving_up::{is_patient, KinEpoch};
use std::collections::{BTreeMap, BTreeSet};

/// Tasks are rows from this one on.
const TASK_ROWS: u64 = 1 << 40;
/// A client does not try for ever.
const TRIES_MAX: u32 = 6;

/// The clients of a run that do not leave it at an unknown outcome.
pub struct Retries {
    pub on: bool,
    rng: Rng,
    /// Clients in a thousand that lose patience, or their connection, while their write is under way.
    leave_per_mille: u32,
    tasks: Vec<Task>,
}

/// What one client wants to be done, once.
struct Task {
    /// With the row that says that it is done.
    rows: Vec<(u64, KeyType)>,
    tries: u32,
}

/// The sessions of one process.
pub struct Sessions {
    first_epoch: u16,
    epoch: KinEpoch,
    /// Serials of what was given up.
    given_up: BTreeSet<u64>,
    /// There is no quorum.
    pub cut_off: bool,
}

impl Sessions {
    /// Of a life that began at `now_us`.
    pub fn new(now_us: u64) -> Self {
        Sessions {
            first_epoch: KinEpoch::of_life(now_us).get(),
            epoch: KinEpoch::of_life(now_us),
            given_up: BTreeSet::new(),
            cut_off: false,
        }
    }

    pub fn epoch(&self) -> u16 {
        self.epoch.get()
    }
}

impl Retries {
    /// Drawn apart from the rest, so that other seeds keep their meaning.
    pub fn draw(seed: u64, profile: Profile) -> Self {
        let mut rng = Rng::new(mix(seed, 0x5265_7472_6965));
        let on = rng.chance(350) && profile != Profile::Calm;
        let leave_per_mille = rng.one_of([0, 30, 200]);
        Retries { on, rng, leave_per_mille, tasks: Vec::new() }
    }
}

impl Process {
    /// Whether a session of this node holds one of these rows.
    fn is_locked(&self, rows: &[(u64, KeyType)]) -> bool {
        let held = |row: u64| self.pending.values().any(|pending| pending.changes.contains(&row));
        changed(rows).any(held)
    }

    /// Tasks whose clients lose their connection when this process ends.
    pub fn open_tasks(&self) -> BTreeSet<u32> {
        let written = self.pending.values().filter_map(|pending| pending.task);
        written.chain(self.clients.iter().filter_map(|client| client.guest)).collect()
    }
}

/// The rows that are changed.
pub fn changed(rows: &[(u64, KeyType)]) -> impl Iterator<Item = u64> + '_ {
    rows.iter().filter(|(_, kind)| *kind >= KeyType::Update).map(|(row, _)| *row)
}

pub fn task_row(task: u32) -> u64 {
    row_path(TASK_ROWS + u64::from(task))
}

impl World {
    /// Makes a client's write a task, which can be tried again elsewhere.
    pub(super) fn make_task(&mut self, request: &mut WriteRequest) -> Option<u32> {
        let retries = &mut self.retries;
        if !retries.on || request.part != Part::Whole || request.isolation {
            return None;
        }
        let task = retries.tasks.len() as u32;
        request.rows.push((TASK_ROWS + u64::from(task), KeyType::Exclusive));
        retries.tasks.push(Task { rows: request.rows.clone(), tries: 0 });
        Some(task)
    }

    /// Another session of this node has the lock, or the node takes no writes without a quorum.
    pub(super) fn must_wait(&self, m: usize, request: &WriteRequest) -> bool {
        let Some(process) = &self.nodes[m].process else { return true };
        let locked = !request.isolation && process.is_locked(&request.rows);
        self.retries.on && (locked || process.sessions.cut_off)
    }

    /// A write of a task is on its way; its client may not wait for the outcome.
    pub(super) fn may_leave(&mut self, m: usize, serial: u64) {
        if self.retries.rng.chance(self.retries.leave_per_mille) {
            let longest = self.retries.rng.one_of([1_000, 20_000, 400_000]);
            let delay = self.retries.rng.below(longest);
            self.later_at(m, delay, move |w| w.leave(m, serial));
        }
    }

    /// The client of this write loses its connection: the session goes on without it.
    pub(super) fn leave(&mut self, m: usize, serial: u64) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let Some(pending) = process.pending.get_mut(&serial) else { return };
        let (Some(client), Some(task)) = (pending.client.take(), pending.task.take()) else {
            return;
        };
        self.mark(Mark::ClientLeft);
        self.let_go(m, client);
        self.go_elsewhere(m, task);
    }

    /// The session of `client` is free; one that came from elsewhere is gone.
    fn let_go(&mut self, m: usize, client: usize) {
        let Some(process) = &mut self.nodes[m].process else { return };
        if std::mem::take(&mut process.clients[client]).guest.is_none() {
            self.client_later(m, client);
        }
    }

    /// The quorum is lost: whoever may not wait for ever gives up.
    pub(super) fn give_up_without_quorum(&mut self, m: usize) {
        if self.retries.on {
            self.give_up(m, |pending| !is_patient(&pending.header));
        }
    }

    /// The outcome of these writes of `m` is unknown, and the clients go to another node.
    pub(super) fn give_up(&mut self, m: usize, which: impl Fn(&Pending) -> bool) {
        let epochs = self.plant != Some(Plant::KinOverwrites);
        let Some(process) = &mut self.nodes[m].process else { return };
        let pending = std::mem::take(&mut process.pending);
        let (gone, kept): (BTreeMap<_, _>, _) = pending.into_iter().partition(|(_, p)| which(p));
        process.pending = kept;
        process.sessions.given_up.extend(gone.keys());
        for pending in gone.values().filter(|_| epochs) {
            process.sessions.epoch.given_up(&pending.header);
        }
        self.take_in(m, |intake| gone.keys().for_each(|serial| intake.decided(*serial)));
        for pending in gone.into_values() {
            self.mark(Mark::UnknownOutcome);
            if let Some(client) = pending.client {
                self.let_go(m, client);
            }
            if let Some(task) = pending.task {
                self.go_elsewhere(m, task);
            }
        }
    }

    /// The client of `task` looks for another node than `m`.
    pub(super) fn go_elsewhere(&mut self, m: usize, task: u32) {
        let tries = &mut self.retries.tasks[task as usize].tries;
        *tries += 1;
        if *tries > TRIES_MAX || !self.has_faults() {
            return;
        }
        let pause = self.retries.rng.range(1_000, self.scenario.election_us() * 2);
        self.later(pause, move |w| w.come_back(task, m));
    }

    pub(super) fn come_back(&mut self, task: u32, from: usize) {
        let runs = |m: &usize| self.nodes[*m].runs() && *m != from;
        let others: Vec<usize> = self.slots().filter(runs).collect();
        let Some(m) = self.retries.rng.pick(&others) else {
            return self.go_elsewhere(from, task);
        };
        let Some(process) = &mut self.nodes[m].process else { return };
        let client = process.clients.len();
        process.clients.push(Client { guest: Some(task), ..Client::default() });
        self.mark(Mark::WentElsewhere);
        self.read(m, client);
    }

    /// True if this is a client from elsewhere: it goes on, here or not.
    pub(super) fn guest_goes_on(&mut self, m: usize, client: usize) -> bool {
        let Some(process) = &mut self.nodes[m].process else { return false };
        let Some(task) = process.clients[client].guest else {
            // One of those may have left.
            return client >= self.scenario.clients_per_member;
        };
        if self.retries.rng.chance(500) {
            process.clients[client].guest = None;
            self.go_elsewhere(m, task);
        } else {
            let tries = &mut self.retries.tasks[task as usize].tries;
            *tries += 1;
            match *tries > TRIES_MAX {
                true => process.clients[client].guest = None,
                false => self.read(m, client),
            }
        }
        true
    }

    /// True if this is a client from elsewhere: it sees whether its task is done.
    pub(super) fn guest_looks(&mut self, m: usize, client: usize) -> bool {
        let Some(process) = &mut self.nodes[m].process else { return false };
        let Some(task) = process.clients[client].guest else { return false };
        let row = task_row(task);
        let looks = self.plant != Some(Plant::BlindRetry);
        let found = looks && process.database.last_change(row).is_some();
        if looks {
            self.oracle.looked(row, process.applied(), found);
        }
        if found {
            process.clients[client].guest = None;
            self.mark(Mark::FoundDone);
            self.oracle.told_done(row);
        } else {
            let rows = self.retries.tasks[task as usize].rows.clone();
            let request = WriteRequest { rows, ..WriteRequest::default() };
            if self.submit(m, client, request, Some(task)) {
                self.mark(Mark::TriedAgain);
            }
        }
        true
    }

    /// What `client` wrote took effect, or did not.
    pub(super) fn told(&mut self, m: usize, client: usize, task: Option<u32>, passed: bool) {
        let Some(task) = task.filter(|_| passed) else { return };
        self.oracle.told_done(task_row(task));
        if let Some(process) = &mut self.nodes[m].process {
            process.clients[client].guest = None;
        }
    }

    /// An own write set of `header` was sequenced.
    pub(super) fn mark_kin(&mut self, m: usize, header: &Header, passed: bool) {
        let Some(process) = &self.nodes[m].process else { return };
        let gave_up = process.sessions.given_up.contains(&header.serial);
        if header.kin_epoch > process.sessions.first_epoch {
            self.mark(Mark::LaterEpoch);
        }
        if gave_up && passed {
            self.mark(Mark::GivenUpPassed);
        }
    }
}
