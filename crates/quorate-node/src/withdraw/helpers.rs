//! Threads of a node's own, which wait for something in the server's place. They are joined before the
//! node is freed: the server may unload the library after that.

use super::{guard, Withdrawal};
use crate::blocking::{self, JoinHandle, Mutex};
use std::sync::Arc;

pub struct Helpers {
    withdrawal: Arc<Withdrawal>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

impl Helpers {
    pub fn new(withdrawal: Arc<Withdrawal>) -> Self {
        Self { withdrawal, running: Mutex::default() }
    }

    /// Runs `body` on a thread of its own. Should it panic, the node is withdrawn.
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let withdrawal = self.withdrawal.clone();
        let guarded = move || guard(Some(&withdrawal), (), body);
        let mut running = self.running.lock();
        running.retain(|helper| !helper.is_finished());
        running.push(blocking::spawn(format!("qrt-{name}"), guarded)?);
        Ok(())
    }

    /// Waits for all of them; they were told to end.
    pub fn join(&self) {
        let running = std::mem::take(&mut *self.running.lock());
        for helper in running {
            // A panic has withdrawn the node by then.
            let _ended = helper.join();
        }
    }
}
