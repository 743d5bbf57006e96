//! Leaders' snapshots on their way into this member's directory.
//!
//! A file has its name before the core has replaced the log by it, or has refused it; a process that
//! starts in between replaces the log. That is right as long as a snapshot stands for what stays
//! committed, so in every term that is elected. A majority given up for lost (`core/forced.rs` of
//! `quorate-consensus`) is the exception: what it committed, and none of those kept has, is lost, and a
//! snapshot of it on the way into a member that is kept would bring it back there with the next start.
//!
//! Invariants:
//! - while a snapshot is on its way, until it is in the log or gone from the directory, its member has no
//!   part in giving up a majority: it neither answers nor asks for a vote by force;
//! - what comes from a leader of a former term is not written, and what the core refuses is deleted.

use super::Received;
use quorate_consensus::Term;

/// One is being written, and one may wait for that.
#[derive(Default)]
pub(crate) struct Arrivals(Vec<Received>);

impl Arrivals {
    /// Whether to write it, in the core's term `term`.
    pub fn begin(&mut self, received: &Received, term: Term) -> bool {
        let wanted = received.term >= term;
        if wanted {
            self.0.push(received.clone());
        }
        wanted
    }

    /// It is in the log, or it is not in the directory.
    pub fn end(&mut self, received: &Received) {
        if let Some(at) = self.0.iter().position(|arriving| arriving == received) {
            self.0.remove(at);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn any(&self, is: impl Fn(&Received) -> bool) -> bool {
        self.0.iter().any(is)
    }
}
