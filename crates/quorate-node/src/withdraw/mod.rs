//! How a node that cannot go on leaves the group: nobody reads from it, the others go on.
//!
//! Invariant: after a violated order, or a panic, nothing is committed, applied or acknowledged here
//! any more. Whoever waits in an order is let go with an error, and the position is taken out of
//! `grastate.dat`: what is in the database may not be what the group has, so the next start fetches
//! the state.

mod helpers;

pub use helpers::Helpers;

use crate::blocking::{catch, Mutex};
use crate::link::Link;
use crate::local::{Local, LocalState};
use crate::order::Event;
use crate::order::Halted;
use crate::records::Records;
use quorate_live::EventKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// How long a node tries to take leave before it just stops (and stays a voter).
pub const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

const RESTART: &str =
    "Restart it; if it fails again, empty its data directory to fetch the state anew";
const START_OVER: &str =
    "Its server ends, and fetches the state from another node by itself when it is started \
    again, by its service manager or by you";

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
pub fn guard<T>(withdrawal: Option<&Withdrawal>, otherwise: T, call: impl FnOnce() -> T) -> T {
    catch(call).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("unknown");
        if let Some(withdrawal) = withdrawal {
            // Should that panic, too, it is not known whether anything holds the node back.
            let withdrawn = catch(|| withdrawal.panicked(what));
            withdrawn.unwrap_or_else(|_| std::process::abort());
        }
        otherwise
    })
}

/// A part with threads that wait for what a connection may bring, as long as it is not closing.
pub trait Waits: Send + Sync {
    /// They look again.
    fn wake(&self);
}

pub struct Withdrawal {
    local: Arc<Local>,
    records: Arc<Records>,
    waiting: Vec<Arc<dyn Waits>>,
    /// The server is to be started again.
    starts_again: AtomicBool,
    /// Held until all is as in a node that is withdrawn: whoever is let go by it finds that it is.
    withdrawing: Mutex<()>,
}

impl Withdrawal {
    pub fn new(local: Arc<Local>, records: Arc<Records>, waiting: Vec<Arc<dyn Waits>>) -> Self {
        let (starts_again, withdrawing) = (AtomicBool::new(false), Mutex::default());
        Self { local, records, waiting, starts_again, withdrawing }
    }

    /// From here on nobody waits for what this connection may still bring.
    pub fn begin_closing(&self, link: &Link) {
        link.set_server_stays(false);
        self.wake_all(link);
        self.local.commit.open_isolated_gate();
    }

    fn wake_all(&self, link: &Link) {
        link.begin_closing();
        link.nudge_all();
        self.waiting.iter().for_each(|part| part.wake());
    }

    /// Disconnects for good, without taking leave: nobody may be there to take leave of.
    pub fn give_up_connection(&self) {
        let Some(link) = self.local.link().filter(|link| !link.closing()) else { return };
        // The server goes on, and so does a transfer of its state: what that holds back, it lets go.
        link.set_server_stays(true);
        self.wake_all(&link);
        self.end(&link);
    }

    /// The connection ends behind what is sequenced by now. The group may go on feeding its log until it
    /// is closed; that is for the next start. Whoever waited for it here would wait for ever.
    pub fn end(&self, link: &Link) {
        let mut ended = link.ended();
        *ended = true;
        self.local.queue.push(Event::Final);
    }

    /// The end of a connection that stands still (a global read lock, a backup, a state transfer): what waits behind that
    /// cannot be applied, and who would let it go on may wait for the end. The next start applies it.
    pub fn end_standing(&self, link: &Link) {
        if link.closed() {
            return;
        }
        let why = "It is told to end while it stands still: its tables are locked, or its state is being copied.";
        if self.withdraw_once(why, "What waits to be applied is applied at its next start.") {
            self.records.look_at_ends(link);
        }
        // In this order: what is copied meanwhile does not change.
        self.local.queue.leave_only_the_end();
        self.local.move_on();
    }

    /// This database can no longer follow the group: it leaves, so that nobody reads from it.
    pub fn inconsistent(&self, why: &str) {
        self.withdraw(&inconsistency(why));
    }

    /// Leaves the group for good, for the reason that the sentence `why` gives.
    pub fn withdraw(&self, why: &str) {
        let _first = self.withdraw_once(why, RESTART);
    }

    /// The group's log does not get through to this node: `why`, and what to do.
    pub fn cannot_follow(&self, why: &str) {
        let _first = self.withdraw_once(&format!("{why}."), "");
    }

    /// Gives up what this node has not applied yet, for the reason that the sentence `why` gives: it leaves the
    /// group and ends, and its next start fetches the state.
    pub fn start_over(&self, why: &str) {
        self.starts_again.store(true, Ordering::Release);
        if self.withdraw_once(why, START_OVER) {
            self.records.note_unusable();
            // Nobody applies what is before the end, nor waits for what holds it back.
            self.local.queue.leave_only_the_end();
        }
    }

    /// The data of a write set cannot be read here, and others may have it: so this node fetches another state.
    pub fn cannot_read(&self, seqno: i64, why: &str) {
        self.start_over(&format!(
            "The data of the transaction of seqno {seqno} cannot be read to apply it: {why}."
        ));
    }

    /// Whether the server is to end, and to be started again, once its connection is closed.
    pub fn starts_again(&self) -> bool {
        self.starts_again.load(Ordering::Acquire)
    }

    /// False: it is withdrawn already.
    fn withdraw_once(&self, why: &str, what_next: &str) -> bool {
        let withdrawing = self.withdrawing.lock();
        if self.local.state() == LocalState::Error {
            return false;
        }
        self.local.error(&format!(
            "{why} The node leaves the group; the others are not affected and lose nothing. {what_next}"
        ));
        // Before anybody sees that it is so: from then on nothing is applied, and what is behind that must
        // not be committed, nor passed. The server would store its seqno as the position of a database
        // that lacks what is below.
        self.local.commit.halt(why);
        self.local.apply.halt(why);
        self.local.set_state(LocalState::Error);
        drop(withdrawing);
        if let Some(link) = self.local.link() {
            link.group.happened(EventKind::Withdrawal, why.to_owned());
            self.begin_closing(&link);
            self.local.queue.push(Event::Final);
        }
        true
    }

    /// Takes the result of passing an order. None: the order is halted, and the node withdrawn.
    pub fn in_order<T>(&self, passed: Result<T, Halted>) -> Option<T> {
        passed.map_err(|why| self.stop_at_once(&why.to_string())).ok()
    }

    /// The provider panicked, in a call of the server's or on a thread of its own: what it was about
    /// to do is half done.
    fn panicked(&self, what: &str) {
        self.local.error(&format!("BUG: the provider panicked: {what}. Please report the line"));
        self.stop_at_once(&format!("the provider panicked ({what})"));
    }

    fn stop_at_once(&self, why: &str) {
        if self.withdraw_once(&inconsistency(why), RESTART) {
            self.records.note_unusable();
        }
    }
}

fn inconsistency(why: &str) -> String {
    format!("Inconsistency detected: {why}.")
}
