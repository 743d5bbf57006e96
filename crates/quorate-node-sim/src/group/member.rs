//! One start of one member: what feeds the log to its node, and tells it when it loses the majority.

use super::id_of;
use super::log::Entry;
use super::network::{Network, TICK};
use super::standing::Shown;
use crate::baton::{installed, Process};
use crate::engine::Disk;
use crate::oracle::Mark;
use crate::plant::Plant;
use bytes::Bytes;
use parking_lot::Mutex as Plain;
use quorate_certify::process_uuid;
use quorate_consensus::{Index, LogPosition, Term, LEVEL};
use quorate_live::{Committed, LogLevel, Observer, Rehearsal, StateMachine};
use simulated_node::blocking::{now, Condvar, Mutex};
use simulated_node::start::resume::Beginning;
use std::sync::Arc;
use std::time::Duration;

/// How long a member is without a majority before its node hears of it.
const PRIMARY_TIMEOUT: Duration = Duration::from_millis(300);

/// Of all entries here.
const TERM: Term = 1;

/// What is fed next.
enum Next {
    Entry(Entry),
    /// The log was replaced by the leader's snapshot.
    Snapshot(usize, Bytes),
}

/// One start of one member.
pub struct Member {
    pub(super) network: Arc<Network>,
    pub(super) node: usize,
    incarnation: u32,
    process: Process,
    fresh: bool,
    /// Its own log is let go of as soon as nothing in it is needed here.
    retains_little: bool,
    disk: Arc<Plain<Disk>>,
    pub(super) running: Mutex<Running>,
    pub(super) stopped: Condvar,
}

pub(super) struct Running {
    pub(super) closed: bool,
    pub(super) feeding: bool,
}

impl Member {
    /// A `blank` newcomer, whose state will come from another, is sent the leader's newest snapshot,
    /// and so is any other that the leader's log does not reach back to.
    pub fn open(
        network: Arc<Network>,
        (node, incarnation): (usize, u32),
        process: Process,
        blank: bool,
        disk: &Arc<Plain<Disk>>,
    ) -> Arc<Self> {
        let mut state = network.state.lock();
        let fresh = state.places[node].own.is_empty();
        let welcome = state.newest_snapshot().filter(|_| fresh && (blank || state.floor > 0));
        if let Some((index, snapshot)) = welcome {
            network.oracle.mark(Mark::SnapshotWelcome);
            state.places[node].own.replace(index, snapshot);
        }
        let place = &mut state.places[node];
        place.incarnation = Some(incarnation);
        place.leaving = false;
        place.told_lost = false;
        place.has_lost = false;
        place.knows_of_loss = false;
        place.left_behind = false;
        place.standing = None;
        place.since = Some(now());
        drop(state);
        network.changed.notify_all();
        let running = Mutex::new(Running { closed: false, feeding: false });
        let retains_little = installed().random(|rng| rng.chance(400));
        let stopped = Condvar::new();
        Arc::new(Self {
            network,
            node,
            incarnation,
            process,
            fresh,
            retains_little,
            disk: disk.clone(),
            running,
            stopped,
        })
    }

    pub fn uuid(&self) -> u128 {
        process_uuid(id_of(self.node).0, self.incarnation)
    }

    /// The log was empty when it was opened: a new member, or the founder.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Where its log can be begun, as `quorate-live` lists them.
    pub fn beginnings(&self) -> Vec<Beginning> {
        let state = self.network.state.lock();
        let own = &state.places[self.node].own;
        let stored = own.snapshots.iter().map(|(index, (seqno, _))| Beginning {
            last: LogPosition { index: *index as Index, term: TERM },
            log_term: own.has(*index).then_some(TERM),
            seqno: Some(*seqno),
        });
        let first = Beginning {
            last: LogPosition::default(),
            log_term: own.has(0).then_some(0),
            seqno: Some(0),
        };
        // Left by another life of the directory: the log has another entry there.
        let superseded = Beginning {
            last: LogPosition { index: own.end as Index, term: TERM + 1 },
            log_term: Some(TERM),
            seqno: Some(0),
        };
        stored.chain([first, superseded]).collect()
    }

    /// Begins to feed the log to this machine, from the snapshot of this index.
    pub fn start(
        self: &Arc<Self>,
        mut machine: Box<dyn StateMachine>,
        snapshot: Index,
        observer: Arc<dyn Observer>,
    ) -> Result<(), String> {
        let from = snapshot as usize;
        let stored = self.network.state.lock().places[self.node].own.snapshots.get(&from).cloned();
        machine.restore(snapshot, stored.map_or_else(Bytes::new, |(_, bytes)| bytes))?;
        let rehearsed = machine.rehearsal().and_then(|rehearsal| self.rehearse(rehearsal, from));
        self.tell_rules(&*observer);
        let member = self.clone();
        let name = format!("n{}.sequencer", self.node);
        installed().start(self.process, &name, move || member.feed(&mut *machine, from, rehearsed));
        let member = self.clone();
        let name = format!("n{}.watch", self.node);
        installed().start(self.process, &name, move || member.watch(&*observer));
        Ok(())
    }

    /// Where its own log ends, and whether that has all that the database has, as the node finds out.
    fn rehearse(&self, mut rehearsal: Box<dyn Rehearsal>, from: usize) -> Option<(usize, bool)> {
        let state = self.network.state.lock();
        let end = state.places[self.node].own.end;
        let mut own = state.log[..end].iter().enumerate().skip(from);
        let reaches = own.any(|(at, logged)| {
            let entry = logged.entry.clone();
            let committed = committed(at + 1, entry, logged.primary_term);
            rehearsal.reaches_database(committed).unwrap_or_default()
        });
        if !reaches {
            self.network.oracle.mark(Mark::DatabaseAhead);
        }
        Some((end, reaches))
    }

    fn feed(
        &self,
        machine: &mut dyn StateMachine,
        mut fed: usize,
        rehearsed: Option<(usize, bool)>,
    ) {
        while let Some(next) = self.next(fed) {
            {
                let mut running = self.running.lock();
                if running.closed {
                    return;
                }
                running.feeding = true;
            }
            let done = match next {
                Next::Entry(entry) => {
                    fed += 1;
                    self.apply(machine, fed, entry)
                }
                Next::Snapshot(index, bytes) => {
                    self.network.oracle.mark(Mark::SnapshotReceived);
                    fed = index;
                    machine.restore(index as Index, bytes)
                }
            };
            if let Err(why) = done {
                self.network.oracle.fail(why);
            }
            if rehearsed
                .is_some_and(|(end, reaches)| end == fed && machine.is_unlogged(true) == reaches)
            {
                self.network.oracle.fail("the rehearsal on the log said otherwise");
            }
            self.running.lock().feeding = false;
            self.stopped.notify_all();
        }
    }

    fn apply(
        &self,
        machine: &mut dyn StateMachine,
        fed: usize,
        entry: Entry,
    ) -> Result<(), String> {
        let index = fed as Index;
        let primary_term = self.network.state.lock().log[fed - 1].primary_term;
        machine.apply(committed(fed, entry, primary_term))?;
        machine.passed(index);
        if installed().random(|rng| rng.chance(20)) {
            self.keep_snapshot(fed, machine.freeze()(), machine.needs_from())
        } else {
            Ok(())
        }
    }

    /// All members must have the same at the same place of the log.
    fn keep_snapshot(&self, index: usize, bytes: Bytes, needs_from: Index) -> Result<(), String> {
        let seqno = quorate_certify::Sequenced::restore(&bytes)?.certifier.seqno();
        let mut state = self.network.state.lock();
        let former = state.snapshots.insert(index, (seqno, bytes.clone()));
        if former.is_some_and(|(_, other)| other != bytes) {
            return Err("two members have different states at one place of the log".into());
        }
        let needs_from = match self.network.plant {
            Some(Plant::PartsLetGo) => Index::MAX,
            _ => needs_from,
        };
        let needed = needs_from.min(index as Index + 1) as usize;
        let own = &mut state.places[self.node].own;
        own.snapshots.insert(index, (seqno, bytes));
        if self.retains_little && own.purge(needed, self.disk.lock().durable()) {
            self.network.oracle.mark(Mark::OwnLogPurged);
        }
        Ok(())
    }

    /// Blocks until there is something after `fed` that this member has heard of; `None`: closed.
    fn next(&self, fed: usize) -> Option<Next> {
        let mut state = self.network.state.lock();
        loop {
            if state.ended || self.running.lock().closed {
                return None;
            }
            let mut until = None;
            if state.in_contact(self.node) && state.log.len() > fed {
                let (at, floor) = (state.log[fed].at, state.floor);
                let place = &mut state.places[self.node];
                let lag = place.lag;
                let stored = fed < place.own.end;
                if stored || at + lag <= now() {
                    if !stored && fed < floor {
                        let (index, snapshot) = state.newest_snapshot()?;
                        let place = &mut state.places[self.node];
                        place.own.replace(index, snapshot.clone());
                        place.left_behind = true;
                        // A member asks for a view if that with itself may not come by.
                        state.fresh_view = true;
                        return Some(Next::Snapshot(index, snapshot.1));
                    }
                    place.own.end = place.own.end.max(fed + 1);
                    return Some(Next::Entry(state.log[fed].entry.clone()));
                }
                until = Some(at + lag);
            }
            match until {
                Some(due) => {
                    self.network.changed.wait_until(&mut state, due);
                }
                None => self.network.changed.wait(&mut state),
            }
        }
    }

    /// Tells the node when it loses the majority, and when it has it again.
    fn watch(&self, observer: &dyn Observer) {
        let mut lost_since = None;
        let mut seen = (0, None, false);
        let mut shown = Shown::new();
        loop {
            self.exchange_standings(observer, &mut shown);
            let mut state = self.network.state.lock();
            if state.ended || self.running.lock().closed {
                return;
            }
            let contact = state.in_contact(self.node);
            let told = state.places[self.node].told_lost;
            if contact {
                lost_since = None;
            } else {
                lost_since.get_or_insert_with(now);
            }
            let late = lost_since.is_some_and(|since| now() - since > PRIMARY_TIMEOUT);
            if contact && told {
                state.places[self.node].told_lost = false;
                state.fresh_view = true;
                drop(state);
                observer.primary(true);
                self.network.state.lock().places[self.node].knows_of_loss = false;
            } else if seen != self.leader_seen(&state) {
                seen = self.leader_seen(&state);
                drop(state);
                let (term, leader, leads) = seen;
                observer.leader(term, leader, leads);
            } else if late && !told {
                state.places[self.node].told_lost = true;
                state.places[self.node].has_lost = true;
                state.places[self.node].knows_of_loss = true;
                drop(state);
                self.network.oracle.mark(Mark::LosesMajority);
                observer.primary(false);
                observer.log(LogLevel::Debug, String::new());
            } else {
                let until = now() + TICK;
                self.network.changed.wait_until(&mut state, until);
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.running.lock().closed
    }
}

fn committed(index: usize, entry: Entry, primary_term: Option<Term>) -> Committed {
    let index = index as Index;
    match entry {
        Entry::Data(data) => Committed::Data { index, data, primary_term, level: LEVEL },
        Entry::View(view) => Committed::View { index, view },
    }
}
