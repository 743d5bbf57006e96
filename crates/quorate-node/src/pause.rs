//! The server has everything stand still, and go on.
//!
//! Locks: the queue's is held while commit order's is taken, to choose the point.

use crate::local::Local;
use crate::order::GateHolder;
use crate::withdraw::Withdrawal;
use std::sync::Arc;

/// For the server nothing has begun then, and nothing is to be ended.
const REFUSED: i64 = -1;

pub struct Pause {
    local: Arc<Local>,
    withdrawal: Arc<Withdrawal>,
}

impl Pause {
    pub fn new(local: Arc<Local>, withdrawal: Arc<Withdrawal>) -> Self {
        Self { local, withdrawal }
    }

    /// Stops applying and committing and returns the seqno at which everything stands still.
    /// A second pauser waits for the first to resume. -1: the node has no position yet, is withdrawn, or ends.
    pub fn pause(&self) -> i64 {
        self.local.still.begin();
        // With the queue held, nothing is taken out; what was taken out or decided before is at
        // or below the sequencer's seqno, and may finish.
        let at = self.local.queue.set_gate(|| {
            let sequenced = self.local.link().map_or(-1, |l| l.progress.seqno());
            self.local
                .commit
                .close_gate(GateHolder::Pause, sequenced.max(self.local.apply.last_left()))
        });
        self.local.still.stand(at);
        if at < 0 || self.ends() {
            self.local.move_on();
            return REFUSED;
        }
        // What holds it back may be waiting for this pause: a backup that sends the state.
        self.local.commit.raise_isolated_gate(at);
        if self.withdrawal.in_order(self.local.apply.wait(at)).is_none() {
            self.local.move_on();
            return REFUSED;
        }
        self.local.info(&format!("Provider paused at seqno {at}"));
        at
    }

    /// Whoever ends the connection looks for a pause after it has said so: this one has come too late for that. The
    /// server keeps its locks all the same, and what waits for them would be in the way of the end.
    fn ends(&self) -> bool {
        let ending = self.local.link().filter(|link| link.closing() && !link.server_stays());
        if let Some(link) = &ending {
            self.withdrawal.end_standing(link);
        }
        ending.is_some()
    }

    pub fn resume(&self) {
        self.local.move_on();
        self.local.info("Provider resumed");
    }

    /// A session learns its verdict, and drops its locks if it failed, only once its predecessors may go on. One that
    /// was `aborted` learns it at once: a predecessor waits for its locks, and the pause for that predecessor.
    pub fn hold(&self, seqno: i64, aborted: impl Fn() -> bool) {
        self.local.still.hold(seqno, aborted);
    }

    /// A session was aborted, which may be held.
    pub fn look_again(&self) {
        self.local.still.look_again();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Records;

    #[test]
    fn a_node_without_a_position_is_not_paused() {
        let local = Arc::new(Local::for_tests());
        let records = Arc::new(Records::new(local.clone()));
        let withdrawal = Arc::new(Withdrawal::new(local.clone(), records, Vec::new()));
        let pause = Pause::new(local.clone(), withdrawal);
        assert_eq!(pause.pause(), REFUSED);
        assert!(!local.still.is_begun());
        assert_eq!(pause.pause(), REFUSED, "nobody waits for the one before");
    }
}
