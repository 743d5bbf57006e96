//! What the observer is to be told, in order, and the thread that tells it. Notices are queued under
//! any lock; the observer is called under none.

use crate::host::Observer;
use parking_lot::{Condvar, Mutex};
use quorate_consensus::MemberId;
use quorate_group::{LogLevel, Notice};
use std::time::Instant;

#[derive(Default)]
pub(crate) struct Notices {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    queue: Vec<Notice>,
    /// The last error, for operators who ask.
    fault: Option<(Instant, String)>,
    stop: bool,
}

impl Notices {
    pub fn push(&self, notices: &mut Vec<Notice>) {
        let mut state = self.state.lock();
        if let Some(fault) = notices.iter().rev().find_map(fault_of) {
            state.fault = Some((Instant::now(), fault.to_owned()));
        }
        state.queue.append(notices);
        drop(state);
        self.bell.notify_one();
    }

    pub fn log(&self, level: LogLevel, message: String) {
        self.push(&mut vec![Notice::Log(level, message)]);
    }

    pub fn fatal(&self, message: String) {
        self.push(&mut vec![Notice::Fatal(message)]);
    }

    pub fn stuck(&self, message: String) {
        self.push(&mut vec![Notice::Stuck(message)]);
    }

    /// The last error that was told, and when.
    pub fn last_fault(&self) -> Option<(Instant, String)> {
        self.state.lock().fault.clone()
    }

    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.bell.notify_one();
    }

    /// The thread. What was queued before [`Notices::stop`] is told.
    pub fn run(&self, own: MemberId, observer: &dyn Observer) {
        let mut notices = Vec::new();
        while self.wait(&mut notices) {
            for notice in notices.drain(..) {
                match notice {
                    Notice::Leader(term, leader) => {
                        observer.leader(term, leader, leader == Some(own));
                    }
                    Notice::Rules(rules) => observer.rules(rules),
                    Notice::Standings(all) => observer.standings(&all),
                    Notice::Awaited(awaited) => observer.is_awaited(awaited),
                    Notice::Primary(primary) => observer.primary(primary),
                    Notice::Fatal(message) => observer.fatal(message),
                    Notice::Stuck(message) => observer.stuck(message),
                    Notice::Log(level, message) => observer.log(level, message),
                }
            }
        }
    }

    /// False when there will be no more.
    fn wait(&self, notices: &mut Vec<Notice>) -> bool {
        let mut state = self.state.lock();
        while state.queue.is_empty() && !state.stop {
            self.bell.wait(&mut state);
        }
        notices.append(&mut state.queue);
        !notices.is_empty()
    }
}

fn fault_of(notice: &Notice) -> Option<&str> {
    match notice {
        Notice::Fatal(message) | Notice::Stuck(message) => Some(message),
        Notice::Log(LogLevel::Error, message) => Some(message),
        _ => None,
    }
}
