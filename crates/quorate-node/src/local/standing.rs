//! How this node stands, for the other members: told several times a second, and at once where they wait for it.
//!
//! Invariants:
//! - whoever leaves apply order looks whether others wait after it has left, and whoever begins to wait is told where
//!   the node stands after that was noted: so no step is missed;
//! - a server whose rows are still to come has passed nothing, wherever its certifier stands: a logger keeps for it
//!   what others may have let go of.

use super::{Local, LocalState};
use crate::link::Link;
use crate::settings::Consistency;
use quorate_live::Standing;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// Nobody, everybody, or so many beside [`FEW`].
const NOBODY: u16 = 0;
const EVERYBODY: u16 = 1;
const FEW: u16 = 2;

#[derive(Default)]
pub struct Telling {
    /// Clients of other nodes wait for what this one applies.
    awaited: AtomicBool,
    /// What they were told last.
    told: AtomicI64,
    /// Whom commits wait for by this node's settings.
    waits_for: AtomicU16,
    /// The group's rule asks for everybody, whatever the settings say.
    after: AtomicBool,
}

impl Telling {
    pub fn configure(&self, consistency: Consistency) {
        let waits_for = match consistency {
            Consistency::Eventual => NOBODY,
            Consistency::After { at_least: None } => EVERYBODY,
            Consistency::After { at_least: Some(count) } => FEW + u16::from(count),
        };
        self.waits_for.store(waits_for, SeqCst);
    }

    /// The connection has ended, and with it who waited.
    pub fn forget(&self) {
        self.awaited.store(false, SeqCst);
    }
}

impl Local {
    pub fn standing(&self) -> Standing {
        let (link, state) = (self.link(), self.state());
        let has_rows = |link: &&Arc<Link>| state != LocalState::Error && link.has_state();
        let certified = link.as_ref().map_or(-1, |link| link.progress.seqno());
        let (applied, lag) = (self.apply.last_left(), self.lag().as_millis());
        Standing {
            synced: state == LocalState::Synced,
            prompt: self.consistency() != Consistency::Eventual,
            applied,
            certified,
            index: link.as_ref().filter(has_rows).map_or(0, |link| link.progress.index()),
            lag_ms: u32::try_from(lag).unwrap_or(u32::MAX),
            written: link.map_or(0, |link| link.flow.passed()),
        }
    }

    /// How old, by the clock of its origin, the first write set is that is ordered and not applied. A database
    /// that is still to come from another node lags behind nothing.
    pub fn lag(&self) -> Duration {
        self.undone().map_or(Duration::ZERO, |(ordered, applied)| self.lags.age(ordered, applied))
    }

    /// `seqno` was ordered by the entry at `index`, and written at that time since 1970.
    pub fn note_ordered(&self, (seqno, index): (i64, u64), written: Duration) {
        self.lags.ordered((seqno, index), written, self.apply.last_left());
    }

    /// Where the log has the first write set that is ordered and not applied, or an entry before it: the next start may
    /// need all from there on.
    pub fn first_undone(&self) -> Option<u64> {
        self.undone().and_then(|(ordered, applied)| self.lags.first_index(ordered, applied))
    }

    /// The last seqnos that are ordered and applied, where there is a database.
    fn undone(&self) -> Option<(i64, i64)> {
        let ordered = self.link().map_or(-1, |link| link.progress.seqno());
        Some((ordered, self.apply.last_left())).filter(|(_, applied)| *applied >= 0)
    }

    /// This node stands in another way than it did: all others are to know.
    pub fn tell_standing(&self) {
        self.tell(self.apply.last_left());
    }

    /// Others wait for what is applied here (true), or do not any more.
    pub fn set_awaited(&self, awaited: bool) {
        self.telling.awaited.store(awaited, SeqCst);
        if awaited {
            self.tell(self.apply.last_left());
        }
    }

    /// The group asks that commits wait until they are applied.
    pub fn set_after(&self, after: bool) {
        self.telling.after.store(after, SeqCst);
    }

    /// What clients of this node can rely on.
    pub fn consistency(&self) -> Consistency {
        let waits_for = self.telling.waits_for.load(SeqCst);
        match waits_for {
            _ if self.telling.after.load(SeqCst) => Consistency::After { at_least: None },
            NOBODY => Consistency::Eventual,
            EVERYBODY => Consistency::After { at_least: None },
            few => Consistency::After { at_least: Some((few - FEW) as u8) },
        }
    }

    /// Something was applied: tells those who wait, if somebody does.
    pub(super) fn tell_if_awaited(&self) {
        if self.telling.awaited.load(SeqCst) {
            let applied = self.apply.last_left();
            if self.telling.told.swap(applied, SeqCst) != applied {
                self.tell(applied);
            }
        }
    }

    fn tell(&self, applied: i64) {
        if let Some(link) = self.link() {
            link.group.stands(Standing { applied, ..self.standing() });
        }
    }
}
