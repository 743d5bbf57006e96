//! What a node does that has been without a majority (or expelled and not taken back) for long.
//!
//! ```text
//! contact lost ─ quorate.primary_timeout ─▶ non-Primary ─ unreachable_majority_timeout ─▶ read_only
//!      ─ autorejoin_tries × autorejoin_interval ─▶ exit action: read-only | offline | abort
//! ```
//!
//! The group is looked for all the time, and a node that finds it before the exit action goes on as
//! if nothing had been: contact does not come back between the decision and the act. After `read-only` it still does; `offline` and `abort` end that, and with it
//! the node's vote: they are for those who would rather have no answer than an old one.
//! Nothing is lost by any of them: what was acknowledged is on a majority's disks.
//!
//! Locks: contact's, under it those of `primary`.

use crate::blocking::{self, Condvar, Mutex, MutexGuard};
use crate::local::Local;
use crate::primary::Primary;
use crate::settings::{ExitAction, ExitPlan};
use crate::withdraw::{Helpers, Withdrawal};
use std::sync::Arc;
use std::time::Duration;

pub struct Exit {
    local: Arc<Local>,
    withdrawal: Arc<Withdrawal>,
    helpers: Arc<Helpers>,
    primary: Arc<Primary>,
    contact: Contact,
}

impl Exit {
    pub fn new(
        local: Arc<Local>,
        withdrawal: Arc<Withdrawal>,
        helpers: Arc<Helpers>,
        primary: Arc<Primary>,
    ) -> Self {
        Self { local, withdrawal, helpers, primary, contact: Contact::default() }
    }

    /// Contact with a majority was lost, or is back.
    pub fn contact_changed(self: &Arc<Self>, primary: bool) {
        if primary {
            self.contact.regained();
            self.primary.set_cut_off(false);
            return;
        }
        let plan = self.local.settings(|settings| settings.exit);
        let (Some(loss), Some(plan)) = (self.contact.lost(), plan) else { return };
        let exit = self.clone();
        if let Err(e) = self.helpers.spawn("exit", move || exit.await_majority(loss, plan)) {
            self.local.warn(&format!(
                "No thread for quorate.exit_action ({e}): this node just waits for a majority"
            ));
        }
    }

    /// A connection begins or ends: nobody waits for contact any more.
    pub fn forget_contact(&self) {
        self.contact.regained();
    }

    fn await_majority(&self, loss: u64, plan: ExitPlan) {
        let Some(lost) = self.contact.still_lost_after(plan.timeout, loss) else { return };
        // With contact held: who hears that it is back, undoes this after it.
        self.primary.set_cut_off(true);
        drop(lost);
        self.local.warn(&format!(
            "No majority for quorate.unreachable_majority_timeout: this node is read_only, and looks \
             for its group {} times more, {:?} apart, before it does as quorate.exit_action says",
            plan.tries, plan.interval
        ));
        match self.contact.lost_through(&plan, loss) {
            // With contact held here, too: nothing comes between the last look and the act.
            Some(_lost) => self.leave_for(plan.action),
            None => self.local.info("A majority is back"),
        }
    }

    fn leave_for(&self, action: ExitAction) {
        match action {
            ExitAction::ReadOnly => self.local.warn(
                "quorate.exit_action=read-only: this node stays non-Primary and read_only, goes on \
                 looking for its group, and returns by itself",
            ),
            ExitAction::Offline => {
                self.local.error(&format!(
                    "quorate.exit_action=offline: this node gives its connection to the group up, and \
                     its vote is missed. Nothing acknowledged is lost. Restart it, or {}, to return",
                    self.local.config.words.reconnect
                ));
                self.withdrawal.give_up_connection();
            }
            ExitAction::Abort => {
                self.local.error(
                    "quorate.exit_action=abort: this server is shut down. Nothing acknowledged is \
                     lost. Start it again when a majority can be reached",
                );
                self.local.host.shut_down();
            }
        }
    }
}

/// Whether there is contact with a majority.
#[derive(Default)]
struct Contact {
    /// Counts losses and returns; odd while it is lost.
    count: Mutex<u64>,
    changed: Condvar,
}

impl Contact {
    /// The number of this loss, if it is a new one.
    fn lost(&self) -> Option<u64> {
        let mut count = self.count.lock();
        let new = *count % 2 == 0;
        *count += u64::from(new);
        new.then_some(*count)
    }

    fn regained(&self) {
        let mut count = self.count.lock();
        *count += *count % 2;
        self.changed.notify_all();
    }

    /// As [`Self::still_lost_after`] all tries.
    fn lost_through(&self, plan: &ExitPlan, loss: u64) -> Option<MutexGuard<'_, u64>> {
        for _ in 0..plan.tries {
            drop(self.still_lost_after(plan.interval, loss)?);
        }
        self.still_lost_after(Duration::ZERO, loss)
    }

    /// Waits; `None` if contact came back. It does not while what is returned is held.
    fn still_lost_after(&self, wait: Duration, loss: u64) -> Option<MutexGuard<'_, u64>> {
        let deadline = blocking::now() + wait;
        let mut count = self.count.lock();
        while *count == loss {
            if self.changed.wait_until(&mut count, deadline).timed_out() {
                break;
            }
        }
        (*count == loss).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Deaf;
    use crate::records::Records;
    use crate::settings::Settings;
    use std::sync::Weak;

    fn exit_of(local: Local) -> Exit {
        let local = Arc::new(local);
        let records = Arc::new(Records::new(local.clone()));
        let withdrawal = Arc::new(Withdrawal::new(local.clone(), records, Vec::new()));
        let helpers = Arc::new(Helpers::new(withdrawal.clone()));
        let primary = Arc::new(Primary::new(local.clone(), helpers.clone()));
        Exit::new(local, withdrawal, helpers, primary)
    }

    #[test]
    fn a_loss_ends_when_contact_returns() {
        let contact = Contact::default();
        let loss = contact.lost().unwrap();
        assert_eq!(contact.lost(), None);
        assert!(contact.still_lost_after(Duration::ZERO, loss).is_some());
        contact.regained();
        contact.regained();
        assert!(contact.still_lost_after(Duration::from_secs(60), loss).is_none());
        assert_ne!(contact.lost(), Some(loss));
    }

    #[test]
    fn contact_does_not_come_back_while_a_node_acts_on_its_loss() {
        let done = Arc::new(Mutex::new(Vec::new()));
        let exit = Arc::new_cyclic(|exit: &Weak<Exit>| {
            let (exit, done) = (exit.clone(), done.clone());
            let does = Arc::new(move |what| {
                let contact_may_return = exit.upgrade().unwrap().contact.count.try_lock().is_some();
                done.lock().push((what, contact_may_return));
            });
            let also = does.clone();
            let host = Deaf {
                read_only: Some(Box::new(move |on| {
                    does(if on { "stops writes" } else { "writes" })
                })),
                shut_down: Some(Box::new(move || also("ends"))),
            };
            let config = Local::for_tests().config;
            exit_of(Local::new(Box::new(host), config, Settings::default()))
        });
        let plan = ExitPlan {
            timeout: Duration::ZERO,
            tries: 0,
            interval: Duration::ZERO,
            action: ExitAction::Abort,
        };
        let loss = exit.contact.lost().unwrap();
        exit.await_majority(loss, plan);
        exit.contact_changed(true);
        exit.await_majority(loss, plan);
        assert_eq!(*done.lock(), [("stops writes", false), ("ends", false), ("writes", true)]);
    }
}
