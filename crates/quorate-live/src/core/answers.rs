//! Who waits for the machine to answer an order.

use parking_lot::{Condvar, Mutex};
use quorate_group::Answer;
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Answers {
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    next: u64,
    open: BTreeMap<u64, Option<Answer>>,
    /// Nobody answers any more: a bug stopped this member.
    broken: bool,
}

impl Answers {
    /// The id of a new order.
    pub fn expect(&self) -> u64 {
        let mut state = self.state.lock();
        state.next += 1;
        let id = state.next;
        state.open.insert(id, None);
        id
    }

    /// `None`: there will be no answer.
    pub fn wait(&self, id: u64) -> Option<Answer> {
        let mut state = self.state.lock();
        while !state.broken && matches!(state.open.get(&id), Some(None)) {
            self.answered.wait(&mut state);
        }
        state.open.remove(&id).flatten()
    }

    pub fn put(&self, answers: impl Iterator<Item = (u64, Answer)>) {
        let mut state = self.state.lock();
        for (id, answer) in answers {
            if let Some(open) = state.open.get_mut(&id) {
                *open = Some(answer);
            }
        }
        drop(state);
        self.answered.notify_all();
    }

    pub fn give_up(&self) {
        self.state.lock().broken = true;
        self.answered.notify_all();
    }
}
