//! What the observer is to be told, in order, and the bell of the keeper thread, which tells it.
//! Notices are queued under any lock; the observer is called under none.

use crate::machine::LogLevel;
use parking_lot::{Condvar, Mutex};
use quorate_consensus::{MemberId, Rules, Term};
use std::time::{Duration, Instant};

pub(crate) enum Notice {
    Leader(Term, Option<MemberId>),
    Rules(Rules),
    Fatal(String),
    Log(LogLevel, String),
}

#[derive(Default)]
pub(crate) struct Notices {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    queue: Vec<Notice>,
    rung: bool,
}

impl Notices {
    pub fn push(&self, notice: Notice) {
        let mut state = self.state.lock();
        state.queue.push(notice);
        state.rung = true;
        self.bell.notify_one();
    }

    /// Something changed that the keeper looks at.
    pub fn wake(&self) {
        self.state.lock().rung = true;
        self.bell.notify_one();
    }

    /// Waits for the bell, at most `patience`, and takes what is queued.
    pub fn wait(&self, patience: Duration) -> Vec<Notice> {
        let deadline = Instant::now() + patience;
        let mut state = self.state.lock();
        while !state.rung {
            if self.bell.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.rung = false;
        std::mem::take(&mut state.queue)
    }
}
