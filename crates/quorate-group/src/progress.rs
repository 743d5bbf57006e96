//! Between the core and the sequencer: how far entries may be read, and how far they were.

use crate::view::View;
use parking_lot::{Condvar, Mutex};
use quorate_consensus::{Index, LogPosition};

#[derive(Default)]
pub(crate) struct Progress {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    fed: Index,
    /// The log was replaced by a snapshot of this index.
    install: Option<Index>,
    stop: bool,
    applied: Applied,
}

/// Where the sequencer stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied {
    pub last: LogPosition,
    pub view: View,
    /// False until the state machine was started.
    pub started: bool,
}

/// What the sequencer is to do next.
pub(crate) enum Feed {
    Stop,
    /// Continue from the snapshot of this index.
    Install(Index),
    /// Entries up to here may be applied.
    UpTo(Index),
}

impl Progress {
    pub fn advance(&self, fed: Index) {
        let mut state = self.state.lock();
        if fed > state.fed {
            state.fed = fed;
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
    pub fn next(&self, applied: Index) -> Feed {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return Feed::Stop;
            }
            if let Some(index) = state.install.take() {
                if index > applied {
                    return Feed::Install(index);
                }
            }
            if state.fed > applied {
                return Feed::UpTo(state.fed);
            }
            self.moved.wait(&mut state);
        }
    }

    /// Whether a snapshot is to be installed next.
    pub fn install_waits(&self) -> bool {
        self.state.lock().install.is_some()
    }

    pub fn set_applied(&self, last: LogPosition) {
        self.state.lock().applied.last = last;
    }

    pub fn set_view(&self, view: View) {
        self.state.lock().applied.view = view;
    }

    pub fn set_started(&self) {
        self.state.lock().applied.started = true;
    }

    pub fn applied(&self) -> Applied {
        self.state.lock().applied.clone()
    }
}
