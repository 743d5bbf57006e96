//! The question of the machine that is to be asked next, for the thread that asks.

use parking_lot::{Condvar, Mutex};
use quorate_group::Ask;

#[derive(Default)]
pub(crate) struct Asks {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    ask: Option<Ask>,
    stop: bool,
}

impl Asks {
    pub fn ask(&self, ask: Ask) {
        self.state.lock().ask = Some(ask);
        self.work.notify_one();
    }

    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.work.notify_one();
    }

    /// Waits for the next; `None` when there will be no more.
    pub fn next(&self) -> Option<Ask> {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return None;
            }
            if let Some(ask) = state.ask.take() {
                return Some(ask);
            }
            self.work.wait(&mut state);
        }
    }
}
