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

impl State {
    /// So many entries may be applied, and are not. None before the state machine was started.
    fn behind(&self) -> u64 {
        let applied = self.applied.as_ref().map(|applied| applied.last.index);
        applied.map_or(0, |applied| self.open_to.saturating_sub(applied))
    }
}

/// What is to be done next by whoever feeds.
pub(crate) enum Next {
    /// Continue from the snapshot of this index.
    Install(Index),
    /// Entries up to here may be applied.
    UpTo(Index),
}

impl Gate {
    /// Entries may be read up to `index`. Without `wakes` the caller sees to it that somebody does.
    pub fn advance(&self, index: Index, wakes: bool) {
        let mut state = self.state.lock();
        if index > state.open_to {
            state.open_to = index;
            drop(state);
            if wakes {
                self.wake();
            }
        }
    }

    /// The feeder thread looks again.
    pub fn wake(&self) {
        self.moved.notify_all();
    }

    pub fn install(&self, index: Index) {
        self.state.lock().install = Some(index);
        self.moved.notify_all();
    }

    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.moved.notify_all();
    }

    /// Waits until there is something to do; false: until this member closes.
    pub fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while !state.stop && state.install.is_none() && state.behind() == 0 {
            self.moved.wait(&mut state);
        }
        !state.stop
    }

    /// What there is to do; for who holds what is fed.
    pub fn next(&self) -> Option<Next> {
        let mut state = self.state.lock();
        if state.stop {
            return None;
        }
        let (up_to, behind) = (state.open_to, state.behind());
        let applied = state.applied.as_ref().map_or(0, |applied| applied.last.index);
        match state.install.take().filter(|index| *index > applied) {
            Some(index) => Some(Next::Install(index)),
            None => (behind > 0).then_some(Next::UpTo(up_to)),
        }
    }

    /// How many entries may be applied and are not, if there is nothing else to be done before.
    pub fn behind(&self) -> Option<u64> {
        let state = self.state.lock();
        (!state.stop && state.install.is_none()).then(|| state.behind())
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
