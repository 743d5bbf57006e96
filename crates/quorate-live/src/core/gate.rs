//! Between the machine and the feeder: how far entries may be read, and how far they were.

use parking_lot::{Condvar, Mutex};
use quorate_consensus::{Index, LogPosition};
use quorate_group::{Applied, View};

#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    open_to: Index,
    /// The log was replaced by a snapshot of this index.
    install: Option<Index>,
    stop: bool,
    /// Where the state machine stands, once it was started.
    applied: Option<Applied>,
}

/// What the feeder is to do next.
pub(crate) enum Next {
    Stop,
    /// Continue from the snapshot of this index.
    Install(Index),
    /// Entries up to here may be applied.
    UpTo(Index),
}

impl Gate {
    pub fn advance(&self, index: Index) {
        let mut state = self.state.lock();
        if index > state.open_to {
            state.open_to = index;
            drop(state);
            self.moved.notify_all();
        }
    }

    pub fn install(&self, index: Index) {
        self.state.lock().install = Some(index);
        self.moved.notify_all();
    }

    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.moved.notify_all();
    }

    /// Waits until there is something after `applied`.
    pub fn next(&self, applied: Index) -> Next {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return Next::Stop;
            }
            if let Some(index) = state.install.take() {
                if index > applied {
                    return Next::Install(index);
                }
            }
            if state.open_to > applied {
                return Next::UpTo(state.open_to);
            }
            self.moved.wait(&mut state);
        }
    }

    /// Whether a snapshot is to be installed next.
    pub fn install_waits(&self) -> bool {
        self.state.lock().install.is_some()
    }

    pub fn start(&self, applied: Applied) {
        self.state.lock().applied = Some(applied);
    }

    pub fn set_applied(&self, last: LogPosition) {
        if let Some(applied) = &mut self.state.lock().applied {
            applied.last = last;
        }
    }

    pub fn set_view(&self, view: View) {
        if let Some(applied) = &mut self.state.lock().applied {
            applied.view = view;
        }
    }

    pub fn applied(&self) -> Option<Applied> {
        self.state.lock().applied.clone()
    }
}
