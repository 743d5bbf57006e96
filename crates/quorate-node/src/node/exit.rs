//! What a node does that has been without a majority (or expelled and not taken back) for long.
//!
//! ```text
//! contact lost ─ quorate.primary_timeout ─▶ non-Primary ─ unreachable_majority_timeout ─▶ read_only
//!      ─ autorejoin_tries × autorejoin_interval ─▶ exit action: read-only | offline | abort
//! ```
//!
//! The group is looked for all the time, and a node that finds it before the exit action goes on as
//! if nothing had been. After `read-only` it still does; `offline` and `abort` end that, and with it
//! the node's vote: they are for those who would rather have no answer than an old one.
//! Nothing is lost by any of them: what was acknowledged is on a majority's disks.

use super::Node;
use crate::blocking::{self, Condvar, Mutex};
use crate::settings::{ExitAction, ExitPlan};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

#[derive(Default)]
pub struct Exit {
    /// Counts losses and returns of contact; odd while it is lost.
    contact: Mutex<u64>,
    changed: Condvar,
    read_only: AtomicBool,
}

impl Exit {
    /// Without a majority for longer than its operator wants to take for passing.
    pub fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Acquire)
    }

    /// The number of this loss, if it is a new one.
    fn lost(&self) -> Option<u64> {
        let mut contact = self.contact.lock();
        let new = *contact % 2 == 0;
        *contact += u64::from(new);
        new.then_some(*contact)
    }

    fn regained(&self) {
        let mut contact = self.contact.lock();
        *contact += *contact % 2;
        self.changed.notify_all();
    }

    /// Waits; false if contact came back.
    fn still_lost_after(&self, wait: Duration, loss: u64) -> bool {
        let deadline = blocking::now() + wait;
        let mut contact = self.contact.lock();
        while *contact == loss {
            if self.changed.wait_until(&mut contact, deadline).timed_out() {
                break;
            }
        }
        *contact == loss
    }
}

impl Node {
    /// Contact with a majority was lost, or is back.
    pub fn contact_changed(self: &Arc<Self>, primary: bool) {
        if primary {
            self.exit.regained();
            if self.exit.read_only.swap(false, Ordering::AcqRel) {
                self.settle_primary();
            }
            return;
        }
        let plan = self.settings.lock().exit;
        let (Some(loss), Some(plan)) = (self.exit.lost(), plan) else { return };
        let run = move |node: &Arc<Node>| node.await_majority(loss, plan);
        if let Err(e) = self.help("exit", run) {
            self.warn(&format!(
                "No thread for quorate.exit_action ({e}): this node just waits for a majority"
            ));
        }
    }

    /// A connection begins or ends: nobody waits for contact any more.
    pub fn forget_contact(&self) {
        self.exit.regained();
        self.exit.read_only.store(false, Ordering::Release);
    }

    fn await_majority(self: &Arc<Self>, loss: u64, plan: ExitPlan) {
        if !self.exit.still_lost_after(plan.timeout, loss) {
            return;
        }
        self.warn(&format!(
            "No majority for quorate.unreachable_majority_timeout: this node is read_only, and looks \
             for its group {} times more, {:?} apart, before it does as quorate.exit_action says",
            plan.tries, plan.interval
        ));
        self.exit.read_only.store(true, Ordering::Release);
        self.settle_primary();
        for _ in 0..plan.tries {
            if !self.exit.still_lost_after(plan.interval, loss) {
                self.info("A majority is back");
                return;
            }
        }
        self.leave_for(plan.action);
    }

    fn leave_for(self: &Arc<Self>, action: ExitAction) {
        match action {
            ExitAction::ReadOnly => self.warn(
                "quorate.exit_action=read-only: this node stays non-Primary and read_only, goes on \
                 looking for its group, and returns by itself",
            ),
            ExitAction::Offline => {
                self.error(&format!(
                    "quorate.exit_action=offline: this node gives its connection to the group up, and \
                     its vote is missed. Nothing acknowledged is lost. Restart it, or {}, to return",
                    self.config.words.reconnect
                ));
                self.give_up_connection();
            }
            ExitAction::Abort => {
                self.error(
                    "quorate.exit_action=abort: this server is shut down. Nothing acknowledged is \
                     lost. Start it again when a majority can be reached",
                );
                self.host.shut_down();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_ends_when_contact_returns() {
        let exit = Exit::default();
        let loss = exit.lost().unwrap();
        assert_eq!(exit.lost(), None);
        assert!(exit.still_lost_after(Duration::ZERO, loss));
        exit.regained();
        exit.regained();
        assert!(!exit.still_lost_after(Duration::from_secs(60), loss));
        assert_ne!(exit.lost(), Some(loss));
    }
}
