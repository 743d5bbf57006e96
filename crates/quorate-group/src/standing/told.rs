//! What the others were told of this member's server last.

use quorate_wire::Standing;

#[derive(Default)]
pub(super) struct Told {
    last: Option<Standing>,
    at_ms: u64,
}

impl Told {
    pub fn note(&mut self, standing: Standing, now_ms: u64) {
        (self.last, self.at_ms) = (Some(standing), now_ms);
    }

    pub fn last(&self) -> Option<Standing> {
        self.last
    }

    pub fn differs(&self, own: &Standing) -> bool {
        self.last.is_none_or(|last| last != *own)
    }

    /// Whether the others are to behave in another way from now on.
    pub fn is_other_state(&self, own: &Standing) -> bool {
        let state = |standing: &Standing| (standing.synced, standing.prompt);
        self.last.is_none_or(|last| state(&last) != state(own))
    }

    pub fn is_older(&self, now_ms: u64, than_ms: u64) -> bool {
        self.last.is_none() || now_ms.saturating_sub(self.at_ms) >= than_ms
    }
}
