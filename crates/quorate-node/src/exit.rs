//! What a node does that has been without a majority (or expelled and not taken back) for long.
//!
//! ```text
//! contact lost ─ quorate.primary_timeout ─▶ non-Primary ─ unreachable_majority_timeout ─▶ read_only
//!      ─ autorejoin_tries × autorejoin_interval ─▶ exit action: read-only | offline | abort
//! ```
//!
//! The group is looked for all the time, and a node that finds it before the exit action goes on as
//! if nothing had been. After `read-only` it still does; `offline` and `abort` end that, and the node's
//! vote is missed: they are for those who would rather have no answer than an old one. Nothing is lost by
//! any of them: what was acknowledged is on a majority's disks.
//!
//! Invariants: contact does not come back between a decision and the act. The settings that hold when a
//! step is due decide, not those of when contact was lost.
//!
//! Locks: contact's, under it those of `primary`.

use crate::blocking::{self, Condvar, Mutex, MutexGuard};
use crate::local::Local;
use crate::primary::Primary;
use crate::settings::ExitAction;
use crate::withdraw::{Helpers, Withdrawal};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Clocks end.
const WAIT_MAX: Duration = Duration::from_secs(u32::MAX as u64);

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
        Self { local, withdrawal, helpers, primary, contact: Contact::new() }
    }

    /// Contact with a majority was lost, or is back.
    pub fn contact_changed(self: &Arc<Self>, primary: bool) {
        if primary {
            if self.primary.is_cut_off() {
                self.local.info("A majority is back");
            }
            self.contact.regained();
            self.primary.set_cut_off(false);
        } else {
            self.contact.lost();
            self.watch();
        }
    }

    /// Options were set: they count for a loss that lasts, too.
    pub fn settings_changed(self: &Arc<Self>) {
        self.contact.look_again();
        self.watch();
    }

    /// A connection begins or ends: nobody waits for contact any more.
    pub fn forget_contact(&self) {
        self.contact.regained();
        self.primary.set_cut_off(false);
    }

    /// Has somebody wait with a loss, unless somebody does, or nothing is to be done.
    fn watch(self: &Arc<Self>) {
        if self.local.settings(|settings| settings.exit).is_none() {
            return;
        }
        let Some(loss) = self.contact.begin_watch() else { return };
        let exit = self.clone();
        if let Err(e) = self.helpers.spawn("exit", move || exit.await_majority(loss)) {
            self.contact.unwatch(loss);
            self.local.warn(&format!(
                "No thread for quorate.exit_action ({e}): this node just waits for a majority"
            ));
        }
    }

    fn await_majority(&self, loss: u64) {
        // Since when the node shows itself read_only for this.
        let mut cut_off = None;
        let mut done = None;
        // What is set after this is noticed by who waits.
        while let Some((since, settings)) = self.contact.look(loss) {
            let Some(plan) = self.local.settings(|settings| settings.exit) else {
                let Some(_lost) = self.contact.end_watch(loss, settings) else { continue };
                if cut_off.is_some() {
                    self.primary.set_cut_off(false);
                    self.local.info("quorate.unreachable_majority_timeout=0: this node just waits for a majority");
                }
                return;
            };
            let tried = plan.interval.saturating_mul(plan.tries);
            let due = match cut_off {
                None => since + plan.timeout.min(WAIT_MAX),
                // Until it is back, or something else is set.
                Some(at) if done == Some(plan.action) => at + WAIT_MAX,
                Some(at) => at + tried.min(WAIT_MAX),
            };
            match self.contact.wait(due, loss, settings) {
                Wait::Changed => {}
                // With contact held: who hears that it is back, undoes this after it.
                Wait::Lost(lost) if cut_off.is_none() => {
                    self.primary.set_cut_off(true);
                    drop(lost);
                    cut_off = Some(blocking::now());
                    self.local.warn(&format!(
                        "No majority for quorate.unreachable_majority_timeout: this node is read_only, and looks for its \
                         group {} times more, {:?} apart, before it does as quorate.exit_action says",
                        plan.tries, plan.interval
                    ));
                }
                // Here, too: nothing comes between the last look and the act.
                Wait::Lost(_lost) => {
                    self.leave_for(plan.action);
                    if plan.action != ExitAction::ReadOnly {
                        return;
                    }
                    done = Some(plan.action);
                }
            }
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
struct Contact {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Counts losses and returns; odd while it is lost.
    count: u64,
    /// The last loss.
    since: Instant,
    /// Somebody waits with the last loss, or has ended the connection or the server for it.
    watched: bool,
    /// Counts changes of the settings.
    settings: u64,
}

enum Wait<'a> {
    /// It is still lost, and does not come back while this is held.
    Lost(MutexGuard<'a, State>),
    /// It is back, or other settings hold.
    Changed,
}

impl Contact {
    fn new() -> Self {
        let state = State { count: 0, since: blocking::now(), watched: false, settings: 0 };
        Self { state: Mutex::new(state), changed: Condvar::default() }
    }

    fn lost(&self) {
        let mut state = self.state.lock();
        if state.count % 2 == 0 {
            state.count += 1;
            state.since = blocking::now();
            state.watched = false;
        }
    }

    fn regained(&self) {
        let mut state = self.state.lock();
        state.count += state.count % 2;
        self.changed.notify_all();
    }

    fn look_again(&self) {
        self.state.lock().settings += 1;
        self.changed.notify_all();
    }

    /// The number of the loss that the caller is to wait with.
    fn begin_watch(&self) -> Option<u64> {
        let mut state = self.state.lock();
        let new = state.count % 2 == 1 && !std::mem::replace(&mut state.watched, true);
        new.then_some(state.count)
    }

    /// Nobody waits with this loss.
    fn unwatch(&self, loss: u64) {
        let mut state = self.state.lock();
        state.watched &= state.count != loss;
    }

    /// Unless other settings hold by now, or it is back.
    fn end_watch(&self, loss: u64, settings: u64) -> Option<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        if (state.count, state.settings) != (loss, settings) {
            return None;
        }
        state.watched = false;
        Some(state)
    }

    /// Since when it is lost, and which settings hold; `None`: it is back.
    fn look(&self, loss: u64) -> Option<(Instant, u64)> {
        let state = self.state.lock();
        (state.count == loss).then_some((state.since, state.settings))
    }

    fn wait(&self, until: Instant, loss: u64, settings: u64) -> Wait<'_> {
        let mut state = self.state.lock();
        loop {
            if (state.count, state.settings) != (loss, settings) {
                return Wait::Changed;
            }
            if blocking::now() >= until {
                return Wait::Lost(state);
            }
            self.changed.wait_until(&mut state, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Deaf;
    use crate::records::Records;
    use crate::settings::{ExitPlan, Settings};
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
        let contact = Contact::new();
        assert_eq!(contact.begin_watch(), None);
        contact.lost();
        let loss = contact.begin_watch().unwrap();
        assert_eq!(contact.begin_watch(), None, "one waits");
        let (since, settings) = contact.look(loss).unwrap();
        assert!(matches!(contact.wait(since, loss, settings), Wait::Lost(_)));
        contact.look_again();
        assert!(matches!(contact.wait(since, loss, settings), Wait::Changed));
        contact.regained();
        contact.regained();
        assert!(contact.look(loss).is_none());
        contact.lost();
        assert_ne!(contact.begin_watch(), Some(loss));
    }

    /// What a host is told to do, and whether contact could come back meanwhile.
    type Done = Arc<Mutex<Vec<(&'static str, bool)>>>;

    fn told(plan: Option<ExitPlan>) -> (Arc<Exit>, Done) {
        let done = Done::default();
        let exit = Arc::new_cyclic(|exit: &Weak<Exit>| {
            let (exit, done) = (exit.clone(), done.clone());
            let does = Arc::new(move |what| {
                let contact_may_return = exit.upgrade().unwrap().contact.state.try_lock().is_some();
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
            let settings = Settings { exit: plan, ..Settings::default() };
            exit_of(Local::new(Box::new(host), config, settings))
        });
        (exit, done)
    }

    fn at_once(action: ExitAction) -> Option<ExitPlan> {
        let (timeout, interval) = (Duration::ZERO, Duration::ZERO);
        Some(ExitPlan { timeout, tries: 0, interval, action })
    }

    #[test]
    fn contact_does_not_come_back_while_a_node_acts_on_its_loss() {
        let (exit, done) = told(at_once(ExitAction::Abort));
        exit.contact.lost();
        let loss = exit.contact.begin_watch().unwrap();
        exit.await_majority(loss);
        exit.contact_changed(true);
        exit.await_majority(loss);
        assert_eq!(*done.lock(), [("stops writes", false), ("ends", false), ("writes", true)]);
    }

    /// An operator who wants to keep the survivor of an outage says so during the outage.
    #[test]
    fn what_is_set_during_a_loss_counts_for_it() {
        let (exit, done) = told(None);
        let set = |exit_plan| {
            exit.local.configure(Settings { exit: exit_plan, ..Settings::default() });
            exit.settings_changed();
        };
        exit.contact_changed(false);
        set(Some(ExitPlan {
            timeout: Duration::from_secs(60),
            ..at_once(ExitAction::Abort).unwrap()
        }));
        set(Some(ExitPlan {
            tries: 1,
            interval: Duration::from_secs(60),
            ..at_once(ExitAction::Abort).unwrap()
        }));
        let at_most = blocking::now() + Duration::from_secs(20);
        let await_done = |count: usize| {
            while done.lock().len() < count && blocking::now() < at_most {
                std::thread::yield_now();
            }
        };
        await_done(1);
        set(at_once(ExitAction::ReadOnly));
        // It stays read_only until that is taken back.
        set(None);
        await_done(2);
        set(at_once(ExitAction::Abort));
        exit.helpers.join();
        let expected = ["stops writes", "writes", "stops writes", "ends"].map(|what| (what, false));
        assert_eq!(*done.lock(), expected, "it waited for neither of the minutes");
    }

    /// The tries that are announced are made, however long contact was lost before anybody asked for them.
    #[test]
    fn a_node_that_is_told_late_looks_for_its_group_all_the_same() {
        let (exit, done) = told(None);
        exit.contact_changed(false);
        exit.contact.state.lock().since =
            blocking::now().checked_sub(Duration::from_secs(60)).unwrap();
        let plan = ExitPlan {
            tries: 1,
            interval: Duration::from_secs(30),
            ..at_once(ExitAction::Abort).unwrap()
        };
        exit.local.configure(Settings { exit: Some(plan), ..Settings::default() });
        exit.settings_changed();
        let at_most = blocking::now() + Duration::from_secs(20);
        while done.lock().is_empty() && blocking::now() < at_most {
            std::thread::yield_now();
        }
        exit.contact_changed(true);
        exit.helpers.join();
        let done: Vec<_> = done.lock().iter().map(|(what, _)| *what).collect();
        assert_eq!(done, ["stops writes", "writes"]);
    }
}
