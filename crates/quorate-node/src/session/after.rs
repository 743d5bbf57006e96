//! A client that is told of its commit once others have applied it, too.
//!
//! The commit is over by then: it is safe, in force here, and out of the way of all that comes after it. So whoever
//! waits here keeps nobody else waiting, and can only be told later.

use crate::blocking::now;
use crate::session::Sessions;
use crate::settings::Consistency;
use quorate_live::{GroupError, OrderError};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const LINE_INTERVAL: Duration = Duration::from_secs(10);

impl Sessions {
    /// Returns when it is applied everywhere, as far as that is asked for and can be known in time.
    pub(super) fn await_others(&self, seqno: i64) {
        let Consistency::After { at_least } = self.local.consistency() else { return };
        let Some(link) = self.local.link().filter(|link| !link.closing()) else { return };
        let timeout = self.local.settings(|settings| settings.consistency_timeout);
        match link.group.await_applied(seqno, at_least, timeout) {
            Ok(()) => {}
            Err(late @ GroupError::Order(OrderError::NotApplied { .. })) => {
                let late = late.to_string();
                self.local.counters.not_applied.fetch_add(1, Relaxed);
                self.local.host.warn(&late);
                self.log_late(&late);
            }
            // The connection ends.
            Err(_) => {}
        }
    }

    /// All are counted, and each is told its own client.
    fn log_late(&self, late: &str) {
        let mut logged = self.late_logged.lock();
        let at = now();
        if logged.is_none_or(|before| at.saturating_duration_since(before) >= LINE_INTERVAL) {
            *logged = Some(at);
            drop(logged);
            self.local.warn(late);
        }
    }
}
