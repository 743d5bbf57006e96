//! Reads that must not be stale, and waiting for a position.

use crate::blocking;
use crate::host::Answer;
use crate::session::Sessions;
use crate::start::Position;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl Sessions {
    /// Blocks until everything acknowledged before the call (or everything up to `upto`) is
    /// visible here. `seconds` of -1: `Settings::read_timeout`.
    pub fn sync_wait(&self, upto: Option<Position>, seconds: i32) -> Answer {
        let timeout = match u64::try_from(seconds) {
            Ok(s) => Duration::from_secs(s),
            Err(_) => self.local.settings(|settings| settings.read_timeout),
        };
        let deadline = blocking::now() + timeout;
        let Some(link) = self.local.link() else { return Answer::Refused };
        if !link.primary() {
            return Answer::Refused; // There is no telling what others acknowledge meanwhile.
        }
        if upto.is_none() && self.lags_too_much() {
            return Answer::Failed;
        }
        let target = match upto {
            Some(p) if p.uuid != link.history => return Answer::Missing,
            Some(p) => p.seqno,
            None => match link.barrier(deadline) {
                Ok(Some(seqno)) => seqno,
                Ok(None) | Err(_) => return Answer::Failed,
            },
        };
        if self.local.apply.wait_until(target, deadline) {
            self.local.counters.causal_reads.fetch_add(1, Relaxed);
            Answer::Done
        } else {
            Answer::Failed
        }
    }

    /// Whether this node lags more than its operator lets a read wait for; then its session is told so.
    fn lags_too_much(&self) -> bool {
        let Some(most) = self.local.settings(|settings| settings.lag_max) else { return false };
        let lag = self.local.lag();
        if lag > most {
            self.local.host.warn(&format!(
                "{} is {lag:.1?} behind its group, more than it is to be for reads that must not miss anything \
                 ({most:?}): read on another node",
                self.local.config.name
            ));
        }
        lag > most
    }

    /// The last seqno whose effects are all visible here.
    pub fn last_committed(&self) -> Option<Position> {
        let link = self.local.link()?;
        Some(Position { uuid: link.history, seqno: self.local.apply.last_left() })
    }
}
