//! One start of one member: what feeds the log to its node, and tells it when it loses the majority.

use super::id_of;
use super::log::Entry;
use super::network::{Network, TICK};
use crate::baton::{installed, Process};
use crate::oracle::Mark;
use bytes::Bytes;
use quorate_certify::process_uuid;
use quorate_consensus::Index;
use quorate_live::{Committed, LogLevel, Observer, StateMachine};
use simulated_node::blocking::{now, Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// How long a member is without a majority before its node hears of it.
const PRIMARY_TIMEOUT: Duration = Duration::from_millis(300);

/// One start of one member.
pub struct Member {
    pub(super) network: Arc<Network>,
    pub(super) node: usize,
    incarnation: u32,
    process: Process,
    pub(super) running: Mutex<Running>,
    pub(super) stopped: Condvar,
}

pub(super) struct Running {
    pub(super) closed: bool,
    pub(super) feeding: bool,
}

impl Member {
    pub fn open(
        network: Arc<Network>,
        node: usize,
        incarnation: u32,
        process: Process,
    ) -> Arc<Self> {
        let mut state = network.state.lock();
        let place = &mut state.places[node];
        place.incarnation = Some(incarnation);
        place.leaving = false;
        place.told_lost = false;
        place.since = Some(now());
        drop(state);
        network.changed.notify_all();
        let running = Mutex::new(Running { closed: false, feeding: false });
        Arc::new(Self { network, node, incarnation, process, running, stopped: Condvar::new() })
    }

    pub fn uuid(&self) -> u128 {
        process_uuid(id_of(self.node).0, self.incarnation)
    }

    /// Begins to feed the log to this machine, from a snapshot after `from` entries.
    pub fn start(
        self: &Arc<Self>,
        mut machine: Box<dyn StateMachine>,
        (from, snapshot): (usize, Bytes),
        observer: Arc<dyn Observer>,
    ) -> Result<(), String> {
        machine.restore(from as Index, snapshot)?;
        let member = self.clone();
        let name = format!("n{}.sequencer", self.node);
        installed().start(self.process, &name, move || member.feed(&mut *machine, from));
        let member = self.clone();
        let name = format!("n{}.watch", self.node);
        installed().start(self.process, &name, move || member.watch(&*observer));
        Ok(())
    }

    fn feed(&self, machine: &mut dyn StateMachine, mut fed: usize) {
        while let Some(entry) = self.next_entry(fed) {
            {
                let mut running = self.running.lock();
                if running.closed {
                    return;
                }
                running.feeding = true;
            }
            fed += 1;
            let index = fed as Index;
            let applied = machine.apply(match entry {
                Entry::Data(data) => Committed::Data { index, data, primary_term: None },
                Entry::View(view) => Committed::View { index, view },
            });
            if let Err(why) = applied {
                self.network.oracle.fail(why);
            }
            machine.passed(index);
            if installed().random(|rng| rng.chance(20)) {
                self.keep_snapshot(fed, machine.snapshot());
            }
            self.running.lock().feeding = false;
            self.stopped.notify_all();
        }
    }

    /// All members must have the same at the same place of the log.
    fn keep_snapshot(&self, index: usize, bytes: Bytes) {
        let Ok(sequenced) = quorate_certify::Sequenced::restore(&bytes) else {
            return self.network.oracle.fail("a snapshot cannot be read again");
        };
        let seqno = sequenced.certifier.seqno();
        let mut state = self.network.state.lock();
        let former = state.snapshots.insert(index, (seqno, bytes.clone()));
        if former.is_some_and(|(_, other)| other != bytes) {
            self.network.oracle.fail("two members have different states at one place of the log");
        }
    }

    /// Blocks until there is an entry after `fed` that this member has heard of; `None`: closed.
    fn next_entry(&self, fed: usize) -> Option<Entry> {
        let mut state = self.network.state.lock();
        loop {
            if state.ended || self.running.lock().closed {
                return None;
            }
            let mut until = None;
            if state.in_contact(self.node) && state.log.len() > fed {
                let logged = &state.log[fed];
                let due = logged.at + state.places[self.node].lag;
                if due <= now() {
                    return Some(logged.entry.clone());
                }
                until = Some(due);
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
        loop {
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
            } else if late && !told {
                state.places[self.node].told_lost = true;
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
