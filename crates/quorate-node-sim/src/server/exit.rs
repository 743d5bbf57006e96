//! What the node has its server do beside transactions: take no writes, refuse one, stop.

use super::Server;
use crate::baton::installed;
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

    /// The node does as its operator wants, if nobody has told it that a majority is back. One may come
    /// back at that very moment.
    pub(super) fn acts_on_its_loss(&self) {
        if !self.network.knows_of_loss(self.number) {
            self.oracle.fail(format!("n{} leaves a majority that it knows of", self.number));
        }
        if installed().random(|rng| rng.chance(500)) {
            self.oracle.mark(Mark::ReturnsAtExit);
            self.network.reconnect();
        }
    }

    /// As `gmcast.isolate=2` does.
    pub fn give_up(&self) {
        let Some(node) = self.node().filter(|node| node.link().is_some()) else { return };
        self.oracle.mark(Mark::GivesUp);
        self.say(|| "gives its connection up".into());
        self.gives_up.store(true, Ordering::Release);
        node.give_up_connection();
    }

    /// The connection is at its end. If nobody asked for that, the node has given it up.
    pub(super) fn is_disconnected(&self) {
        if !self.is_shutting_down() && !self.is_withdrawn() {
            if !self.gives_up.load(Ordering::Acquire) {
                self.oracle.mark(Mark::ExitGoesOffline);
                self.check_exit(ExitAction::Offline);
            }
            self.offline.store(true, Ordering::Release);
        }
    }

    /// Who is let go by that finds a node that is withdrawn, and no other reason for it.
    pub(super) fn is_withdrawn_once(&self) {
        if self.withdrawn.swap(true, Ordering::AcqRel) {
            self.oracle.fail(format!("n{} is withdrawn twice", self.number));
        }
    }

    /// It is stopped, or its node has given its connection up: it may hear nothing more of its group.
    pub(super) fn is_leaving(&self) -> bool {
        let closing = || self.node()?.link().map(|link| link.closing());
        let may = || self.gives_up.load(Ordering::Acquire) || self.exits_as(ExitAction::Offline);
        self.is_shutting_down() || (may() && closing().unwrap_or(false))
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
        self.asked_to_stop.load(Ordering::Acquire) || self.offline.load(Ordering::Acquire)
    }
}
