//! Between the machine and whoever feeds: how far entries may be read, and how far they were.

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
    /// The feeder's thread is to look, though it may find nothing to apply.
    look: bool,
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
    /// Entries up to here may be applied. Wakes nobody.
    pub fn open(&self, index: Index) {
        let mut state = self.state.lock();
        state.open_to = state.open_to.max(index);
    }

    pub fn open_to(&self) -> Index {
        self.state.lock().open_to
    }

    /// Whether entries may be applied, and were not.
    pub fn waits(&self) -> bool {
        let state = self.state.lock();
        let behind = |applied: &Applied| applied.last.index < state.open_to;
        !state.stop && state.install.is_none() && state.applied.as_ref().is_some_and(behind)
    }

    /// Has the feeder's thread look.
    pub fn wake(&self) {
        self.state.lock().look = true;
        self.moved.notify_one();
    }

    pub fn install(&self, index: Index) {
        self.state.lock().install = Some(index);
        self.moved.notify_all();
    }

    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.moved.notify_all();
    }

    /// Waits until there is something to do after what was applied.
    pub fn next(&self) -> Next {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return Next::Stop;
            }
            let applied = state.applied.as_ref().map_or(0, |applied| applied.last.index);
            if let Some(index) = state.install.take() {
                if index > applied {
                    return Next::Install(index);
                }
            }
            if std::mem::take(&mut state.look) || state.open_to > applied {
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
