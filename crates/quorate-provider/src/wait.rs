//! Reads that must not be stale: `wsrep_sync_wait` and WAIT_FOR_GTID.

use crate::abi::{status, wsrep_status_t};
use crate::blocking;
use crate::node::{Node, Position};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl Node {
    /// Blocks until everything acknowledged before the call (or everything up to `upto`) is
    /// visible here. `seconds` of -1: `repl.causal_read_timeout`.
    pub fn sync_wait(&self, upto: Option<Position>, seconds: i32) -> wsrep_status_t {
        let timeout = match u64::try_from(seconds) {
            Ok(s) => Duration::from_secs(s),
            Err(_) => self.options.lock().period("repl.causal_read_timeout"),
        };
        let deadline = blocking::now() + timeout;
        let Some(link) = self.link() else { return status::CONN_FAIL };
        if !link.primary() {
            return status::CONN_FAIL; // There is no telling what others acknowledge meanwhile.
        }
        let target = match upto {
            Some(p) if p.uuid != link.history => return status::TRX_MISSING,
            Some(p) => p.seqno,
            None => match link.barrier(deadline) {
                Ok(Some(seqno)) => seqno,
                Ok(None) | Err(_) => return status::TRX_FAIL,
            },
        };
        if self.apply.wait_until(target, deadline) {
            self.counters.causal_reads.fetch_add(1, Relaxed);
            status::OK
        } else {
            status::TRX_FAIL
        }
    }

    /// The last seqno whose effects are all visible here.
    pub fn last_committed(&self) -> Option<Position> {
        let link = self.link()?;
        Some(Position { uuid: link.history, seqno: self.apply.last_left() })
    }
}
