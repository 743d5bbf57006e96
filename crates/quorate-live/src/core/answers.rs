//! Who waits for the machine to answer an order. Each is woken by its own answer alone.

use parking_lot::Mutex;
use quorate_group::Answer;
use std::collections::BTreeMap;
use std::thread::{self, Thread};

#[derive(Default)]
pub(crate) struct Answers {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    open: BTreeMap<u64, Open>,
    /// Nobody answers any more: a bug stopped this member.
    broken: bool,
}

struct Open {
    answer: Option<Answer>,
    waits: Thread,
}

impl Answers {
    /// The id of a new order, for whose answer this thread will wait.
    pub fn expect(&self) -> u64 {
        let mut state = self.state.lock();
        state.next += 1;
        let id = state.next;
        state.open.insert(id, Open { answer: None, waits: thread::current() });
        id
    }

    /// `None`: there will be no answer.
    pub fn wait(&self, id: u64) -> Option<Answer> {
        loop {
            let mut state = self.state.lock();
            if state.broken || state.open.get(&id).is_none_or(|open| open.answer.is_some()) {
                return state.open.remove(&id)?.answer;
            }
            drop(state);
            // Whoever answers between the look and here has left a token.
            thread::park();
        }
    }

    /// Who is to be woken for that.
    pub fn put(&self, answers: impl Iterator<Item = (u64, Answer)>) -> Vec<Thread> {
        let mut state = self.state.lock();
        let put = |(id, answer)| {
            let open = state.open.get_mut(&id)?;
            open.answer = Some(answer);
            Some(open.waits.clone())
        };
        answers.filter_map(put).collect()
    }

    pub fn give_up(&self) {
        let mut state = self.state.lock();
        state.broken = true;
        state.open.values().for_each(|open| open.waits.unpark());
    }
}
