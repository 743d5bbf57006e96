//! The way of a state from one server to another, past the group: the scripts at both ends, and what
//! lies between them.
//!
//! As in reality, whoever sends knows an address and not who listens there: the next process of the
//! same server may get what was meant for the one before.

mod donor;
mod joiner;

use crate::baton::Process;
use crate::engine::Copy;
use simulated_node::blocking::{now, Condvar, Mutex};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// What arrives at a joiner.
pub enum Parcel {
    /// Some files, of which this would be the whole.
    Part(Copy),
    Whole(Copy),
    /// The connection has ended.
    Broken,
}

struct Listener {
    process: Process,
    sender: Option<Process>,
    parcels: VecDeque<Parcel>,
}

/// Who listens at each server's address.
#[derive(Default)]
pub struct Wire {
    listeners: Mutex<BTreeMap<usize, Listener>>,
    changed: Condvar,
}

impl Wire {
    pub fn listen(&self, address: usize, process: Process) {
        let listener = Listener { process, sender: None, parcels: VecDeque::new() };
        self.listeners.lock().insert(address, listener);
        self.changed.notify_all();
    }

    pub fn hang_up(&self, address: usize, process: Process) {
        let mut listeners = self.listeners.lock();
        if listeners.get(&address).is_some_and(|listener| listener.process == process) {
            listeners.remove(&address);
        }
    }

    /// Waits until somebody listens there whom nobody else sends to; who it is.
    fn connect(&self, address: usize, sender: Process, patience: Duration) -> Option<Process> {
        let deadline = now() + patience;
        let mut listeners = self.listeners.lock();
        loop {
            let free = listeners.get_mut(&address).filter(|listener| listener.sender.is_none());
            if let Some(listener) = free {
                listener.sender = Some(sender);
                return Some(listener.process);
            }
            if self.changed.wait_until(&mut listeners, deadline).timed_out() {
                return None;
            }
        }
    }

    /// False: whoever it was is gone.
    fn send(&self, address: usize, (from, to): (Process, Process), parcel: Parcel) -> bool {
        let mut listeners = self.listeners.lock();
        let there =
            |listener: &&mut Listener| listener.process == to && listener.sender == Some(from);
        let Some(listener) = listeners.get_mut(&address).filter(there) else { return false };
        listener.parcels.push_back(parcel);
        self.changed.notify_all();
        true
    }

    /// The next parcel; `None` after the deadline, or if `cancelled`.
    fn receive(
        &self,
        address: usize,
        deadline: Instant,
        cancelled: impl Fn() -> bool,
    ) -> Option<Parcel> {
        let mut listeners = self.listeners.lock();
        loop {
            let parcel = listeners.get_mut(&address).and_then(|l| l.parcels.pop_front());
            if parcel.is_some() || cancelled() {
                return parcel;
            }
            if self.changed.wait_until(&mut listeners, deadline).timed_out() {
                return None;
            }
        }
    }

    /// A process is gone. Where it sent to, that may be seen at once, or never.
    pub fn process_died(&self, process: Process, is_seen: bool) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|_, listener| listener.process != process);
        for listener in listeners.values_mut().filter(|l| l.sender == Some(process)) {
            if is_seen {
                listener.parcels.push_back(Parcel::Broken);
            }
        }
        self.changed.notify_all();
    }

    fn count_senders(&self) -> usize {
        self.listeners.lock().values().filter(|listener| listener.sender.is_some()).count()
    }

    /// Scripts look again whether they should go on.
    pub fn wake(&self) {
        self.changed.notify_all();
    }
}
