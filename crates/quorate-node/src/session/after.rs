//! A client that is told of its commit once others have applied it, too.
//!
//! The commit is over by then: it is safe, in force here, and out of the order of commits. What its session holds until
//! its statement ends, the names of its tables among it, it holds while it waits, too: DDL on them waits for it.

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
        let timeout = self.local.settings(|settings| settings.consistency_timeout);
        let applied = match self.local.link() {
            Some(link) => link.group.await_applied(seqno, at_least, timeout),
            None => Err(GroupError::Closed),
        };
        let Err(error) = applied else { return };
        let said = match &error {
            GroupError::Order(OrderError::NotApplied { .. }) => error.to_string(),
            _ => format!(
                "what {} has committed is safe, but whether all others have applied it is not known: {error}",
                self.local.config.name
            ),
        };
        self.local.counters.not_applied.fetch_add(1, Relaxed);
        self.local.host.warn(&said);
        self.log_late(&said);
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
