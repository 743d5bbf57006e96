//! How this node stands, for the other members: told several times a second, and at once where they wait for it.
//!
//! Invariant: whoever leaves apply order looks whether others wait after it has left, and whoever begins to wait is
//! told where the node stands after that was noted: so no step is missed.

use super::{Local, LocalState};
use crate::settings::Consistency;
use quorate_live::Standing;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};

#[derive(Default)]
pub struct Telling {
    /// Clients of other nodes wait for what this one applies.
    awaited: AtomicBool,
    /// What they were told last.
    told: AtomicI64,
    /// The group's rule asks for it, whatever this node's settings say.
    after: AtomicBool,
}

impl Local {
    pub fn standing(&self) -> Standing {
        let link = self.link();
        let certified = link.as_ref().map_or(-1, |link| link.progress.seqno());
        let applied = self.apply.last_left();
        let lag = match applied {
            ..0 => 0,
            applied => self.lag.age(certified, applied).as_millis(),
        };
        Standing {
            synced: self.state() == LocalState::Synced,
            prompt: self.consistency() != Consistency::Eventual,
            applied,
            certified,
            index: link.as_ref().map_or(0, |link| link.progress.index()),
            lag_ms: u32::try_from(lag).unwrap_or(u32::MAX),
            written: link.map_or(0, |link| link.flow.passed()),
        }
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
        match self.telling.after.load(SeqCst) {
            true => Consistency::After { at_least: None },
            false => self.settings(|settings| settings.consistency),
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
