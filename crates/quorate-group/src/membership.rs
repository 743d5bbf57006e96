//! Whether this member belongs to the group, for those who wait for it, and how asking for
//! admission goes.

use parking_lot::{Condvar, Mutex};
use std::time::Instant;

#[derive(Default)]
pub(crate) struct Membership {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    member: bool,
    closed: bool,
    /// Admission is to be asked for.
    asking: bool,
    /// Counts the leaders, terms and memberships seen.
    changes: u64,
    /// A leader answered that our removal is committed.
    left: bool,
    /// Why the last attempt to be admitted did not succeed.
    reason: String,
    /// Everybody asked refused for good: (address, reason).
    refused: Option<(String, String)>,
}

pub(crate) enum Wait {
    Joined,
    Closed,
    Refused { addr: String, reason: String },
    TimedOut { reason: String },
}

impl Membership {
    /// The configuration contains this member, or does not (any more).
    pub fn changed(&self, member: bool) {
        let mut state = self.state.lock();
        state.member = member;
        state.changes += 1;
        drop(state);
        self.changed.notify_all();
    }

    pub fn set_left(&self) {
        self.state.lock().left = true;
        self.changed.notify_all();
    }

    pub fn leader_changed(&self) {
        self.state.lock().changes += 1;
        self.changed.notify_all();
    }

    /// For [`Membership::wait_change`].
    pub fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// Waits for a change of leader, term or membership (made, committed) after the `seen`-th; how
    /// many there were now.
    pub fn wait_change(&self, seen: u64, deadline: Instant) -> u64 {
        let mut state = self.state.lock();
        while state.changes == seen && !state.closed {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.changes
    }

    /// Waits until `done`, looking again whenever the configuration or the leader changed.
    pub fn wait_changed(&self, deadline: Instant, done: impl Fn() -> bool) {
        loop {
            let seen = self.state.lock().changes;
            if done() {
                return;
            }
            let mut state = self.state.lock();
            while state.changes == seen && !state.closed {
                if self.changed.wait_until(&mut state, deadline).timed_out() {
                    return;
                }
            }
            if state.closed {
                return;
            }
        }
    }

    pub fn set_asking(&self, asking: bool) {
        let mut state = self.state.lock();
        if state.asking != asking {
            state.asking = asking;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Waits until admission is to be asked for; false if closed.
    pub fn wait_asking(&self) -> bool {
        let mut state = self.state.lock();
        while !state.asking && !state.closed {
            self.changed.wait(&mut state);
        }
        !state.closed
    }

    /// Waits until `deadline`, or until there is nothing to ask for; false if closed.
    pub fn pause_asking(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        while state.asking && !state.closed {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        !state.closed
    }

    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    pub fn set_reason(&self, reason: String) {
        self.state.lock().reason = reason;
    }

    pub fn reason(&self) -> String {
        self.state.lock().reason.clone()
    }

    pub fn set_refused(&self, refused: Option<(String, String)>) {
        self.state.lock().refused = refused;
        self.changed.notify_all();
    }

    pub fn wait_joined(&self, deadline: Instant) -> Wait {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return Wait::Closed;
            }
            if state.member {
                return Wait::Joined;
            }
            if let Some((addr, reason)) = state.refused.clone() {
                return Wait::Refused { addr, reason };
            }
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return Wait::TimedOut { reason: state.reason.clone() };
            }
        }
    }

    /// Waits for the leader's word that this member was removed; false at `deadline`.
    pub fn wait_left(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        while !state.left && !state.closed {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.left
    }

    /// Waits until `deadline`; false if closed.
    pub fn pause(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        while !state.closed {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        !state.closed
    }
}
