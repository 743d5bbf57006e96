//! What the node has its server do beside transactions: take no writes, refuse one, stop.

use super::Server;
use crate::oracle::Mark;
use simulated_node::blocking::simulated::scheduler;
use simulated_node::settings::ExitAction;
use std::sync::atomic::Ordering;

impl Server {
    pub fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Acquire)
    }

    pub(super) fn set_read_only(&self, on: bool) {
        self.say(|| format!("read_only: {on}"));
        self.oracle.mark(match on {
            true if self.network.is_secondary(self.number) => Mark::ReadOnlySecondary,
            true => Mark::ReadOnlyCutOff,
            false => Mark::ReadOnlyEnds,
        });
        self.read_only.store(on, Ordering::Release);
    }

    /// The statement of this thread's session is refused, for good.
    pub(super) fn is_refused(&self, text: &str) {
        self.oracle.mark(Mark::RefusedAsSecondary);
        if !text.contains("single-primary") {
            self.oracle.fail(format!("n{} refuses a write: {text}", self.number));
        }
        self.refusals.lock().insert(scheduler().current());
    }

    /// Whether that has happened to this thread since it last asked.
    pub fn was_refused(&self) -> bool {
        self.refusals.lock().remove(&scheduler().current())
    }

    /// Only after a long time without a majority.
    pub(super) fn shall_stop(&self) {
        self.oracle.mark(Mark::ExitAborts);
        self.check_exit(ExitAction::Abort);
        self.asked_to_stop.store(true, Ordering::Release);
    }

    fn check_exit(&self, action: ExitAction) {
        if !self.exits_as(action) {
            self.oracle.fail(format!("n{} does {action:?} without a reason", self.number));
        }
    }

    /// Its operator wants that, and it had to lose its majority first.
    fn exits_as(&self, action: ExitAction) -> bool {
        self.load.exit.is_some_and(|plan| plan.action == action)
            && self.network.has_lost(self.number)
    }

    /// It does nothing more by itself: its operator is to stop and start it.
    pub fn is_out_of_use(&self) -> bool {
        self.asked_to_stop.load(Ordering::Acquire)
    }
}
