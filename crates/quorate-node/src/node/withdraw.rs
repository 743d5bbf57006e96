//! How a node that cannot go on leaves the group: nobody reads from it, the others go on.
//!
//! Invariant: after a violated order, or a panic, nothing is committed, applied or acknowledged here
//! any more. Whoever waits in an order is let go with an error, and the position is taken out of
//! `grastate.dat`: what is in the database may not be what the group has, so the next start fetches
//! the state.

use super::{LocalState, Node};
use crate::link::Link;
use crate::order::queue::Event;
use crate::order::Halted;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// How long a node tries to take leave before it just stops (and stays a voter).
pub const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a node cannot go on, for its error log.
pub struct Stop {
    pub why: String,
    /// It was not this node's fault: another start may well succeed.
    pub for_now: bool,
}

impl From<String> for Stop {
    fn from(why: String) -> Stop {
        Stop { why, for_now: false }
    }
}

/// Runs `call`; a panic becomes `otherwise`, and withdraws the node, where there is one.
pub fn guard<T>(node: Option<&Node>, otherwise: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("unknown");
        if let Some(node) = node {
            // Should that panic, too, it is not known whether anything holds the node back.
            let withdrawn = catch_unwind(AssertUnwindSafe(|| node.panicked(what)));
            withdrawn.unwrap_or_else(|_| std::process::abort());
        }
        otherwise
    })
}

impl Node {
    /// Runs `body` on a thread of its own, which is joined before the node is freed.
    pub fn help(
        self: &Arc<Self>,
        name: &str,
        body: impl FnOnce(&Arc<Node>) + Send + 'static,
    ) -> std::io::Result<()> {
        let node = self.clone();
        self.helpers.spawn(name, move || guard(Some(&node), (), || body(&node)))
    }

    /// From here on nobody waits for what this connection may still bring.
    pub fn begin_closing(&self, link: &Link) {
        link.begin_closing();
        link.nudge_all();
        self.transfer.wake();
        self.commit.open_isolated_gate();
        self.desk.wake();
    }

    /// Disconnects for good, without taking leave: nobody may be there to take leave of.
    pub fn give_up_connection(&self) {
        let Some(link) = self.link().filter(|link| !link.closing()) else { return };
        self.begin_closing(&link);
        self.queue.push(Event::Final);
    }

    /// This database can no longer follow the group: it leaves, so that nobody reads from it.
    pub fn inconsistent(&self, why: &str) {
        self.withdraw(&format!("Inconsistency detected: {why}."));
    }

    /// Leaves the group for good, for the reason that the sentence `why` gives.
    pub fn withdraw(&self, why: &str) {
        if self.local_state() == LocalState::Error {
            return;
        }
        self.error(&format!(
            "{why} The node leaves the group; the others are not affected and lose nothing. \
             Restart it; if it fails again, empty its data directory to fetch the state anew"
        ));
        // Before anybody sees that it is so: from then on nothing is applied, and what is behind that must
        // not be committed, nor passed. The server would store its seqno as the position of a database
        // that lacks what is below.
        self.commit.halt(why);
        self.apply.halt(why);
        self.set_local_state(LocalState::Error);
        if let Some(link) = self.link() {
            self.begin_closing(&link);
            self.queue.push(Event::Final);
        }
    }

    /// Takes the result of passing an order. None: the order is halted, and the node withdrawn.
    pub fn in_order<T>(&self, passed: Result<T, Halted>) -> Option<T> {
        passed.map_err(|why| self.stop_at_once(&why.to_string())).ok()
    }

    /// The provider panicked, in a call of the server's or on a thread of its own: what it was about
    /// to do is half done.
    pub fn panicked(&self, what: &str) {
        self.error(&format!("BUG: the provider panicked: {what}. Please report the line"));
        self.stop_at_once(&format!("the provider panicked ({what})"));
    }

    fn stop_at_once(&self, why: &str) {
        if self.local_state() != LocalState::Error {
            self.inconsistent(why);
            self.record_unusable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::Mutex;
    use crate::fate::trx::{Handle, Phase, Trx};
    use crate::fate::trx::{Remote, RemoteProgress};
    use crate::host::Answer;

    #[test]
    fn a_panic_in_a_call_withdraws_the_node() {
        let node = Node::for_tests();
        node.commit.set_position(4);
        let answer = guard(Some(&node), Answer::Broken, || panic!("planted"));
        assert_eq!(answer, Answer::Broken);
        assert_eq!(node.local_state(), LocalState::Error);
        assert!(node.commit.enter(5, false).is_err(), "nothing is committed after it");
        assert!(node.apply.wait(5).is_err(), "nobody waits for ever");
    }

    #[test]
    fn a_panic_on_a_thread_of_its_own_withdraws_it_too() {
        let node = Arc::new(Node::for_tests());
        node.help("test", |_| panic!("planted")).unwrap();
        node.helpers.join();
        assert_eq!(node.local_state(), LocalState::Error);
    }

    #[test]
    fn what_a_withdrawn_node_does_not_apply_is_not_passed_either() {
        let node = Node::for_tests();
        node.commit.set_position(4);
        node.apply.set_position(4);
        node.inconsistent("an error that only this node has");
        let behind = Remote { seqno: 5, progress: Mutex::new(RemoteProgress::Applying) };
        assert_eq!(node.commit_order_enter(&Handle::Remote(behind)), Answer::Broken);
        assert_eq!((node.commit.last_left(), node.apply.last_left()), (4, 4));
    }

    #[test]
    fn a_violated_order_withdraws_the_node() {
        let node = Node::for_tests();
        node.commit.set_position(4);
        node.apply.set_position(4);
        let again =
            || Handle::Remote(Remote { seqno: 5, progress: Mutex::new(RemoteProgress::Applying) });
        let first = again();
        assert_eq!(node.commit_order_enter(&first), Answer::Done);
        assert_eq!(node.commit_order_leave(&first, &[]), Answer::Done);
        assert_eq!(node.local_state(), LocalState::Undefined);
        assert_eq!(node.commit_order_enter(&again()), Answer::Broken);
        assert_eq!(node.local_state(), LocalState::Error);

        let local = Trx::new(1);
        local.decide(crate::fate::trx::Fate {
            seqno: 6,
            depends_on: 0,
            certified: true,
            flags: quorate_certify::flags::TRX_START | quorate_certify::flags::TRX_END,
            payload: bytes::Bytes::new(),
        });
        local.lock().phase = Phase::Ordered;
        assert_eq!(node.commit_order_enter(&Handle::Local(local)), Answer::Broken);
        assert_eq!(node.commit.last_left(), 5, "its own transactions do not commit, either");
    }
}
