//! What the machine's output is carried out with.

use super::{Alone, Answers, Arriving, Asks, Gate, Notices, Snapshots};
use crate::net::listener::Acceptor;
use crate::net::peer::Peer;
use parking_lot::Mutex;
use quorate_group::Notes;
use quorate_wal::Wal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Starts the thread that sends to a peer; false if there is none to give.
pub(crate) type StartSender = Box<dyn Fn(Arc<Peer>) -> bool + Send + Sync>;

pub(crate) struct Hands {
    /// Name of this node, its log directory, and how long a peer may be silent.
    pub node: String,
    pub dir: PathBuf,
    pub suspect_timeout: Duration,
    pub opened: Instant,
    pub wal: Wal,
    /// Bytes that the log is to have at most.
    pub log_max: u64,
    pub snapshots: Snapshots,
    pub arriving: Arriving,
    /// Who sends a long packet to this member, of those that it does not know.
    pub at_length: Alone,
    pub gate: Gate,
    /// Of events and operators' orders, as the state machine has passed them.
    pub notes: Mutex<Notes>,
    pub notices: Notices,
    pub answers: Answers,
    pub asks: Asks,
    pub acceptor: Acceptor,
    pub start_sender: StartSender,
    /// The log failed, or a bug was met: as the machine knows it, for those without its lock.
    pub failed: AtomicBool,
}

impl Hands {
    pub fn now_ms(&self) -> u64 {
        self.opened.elapsed().as_millis() as u64
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub fn note_failed(&self, failed: bool) {
        if failed {
            self.failed.store(true, Ordering::SeqCst);
        }
    }

    /// A panic left the machine in the middle of a step. Its thread may be one of the layer above,
    /// which catches it: so everybody is told.
    pub fn stepped_half(&self) {
        if !self.failed.swap(true, Ordering::SeqCst) {
            let node = &self.node;
            self.notices.fatal(format!(
                "a bug stopped node {node}: a panic in the core of the group, on thread {}",
                std::thread::current().name().unwrap_or("without a name")
            ));
        }
        self.answers.give_up();
    }
}
