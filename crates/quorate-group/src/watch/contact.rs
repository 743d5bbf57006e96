//! Whether there is contact with a quorum, as the host is told.

/// Says so at once when there is, and after a while when there is not.
pub(crate) struct Contact {
    /// When the last leader was lost, if there is none.
    leaderless_ms: Option<u64>,
    primary: bool,
    /// Ever had contact.
    was_primary: bool,
}

/// What the host is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Lost,
    /// Not for the first time: it has missed views.
    Regained,
    Gained,
}

impl Contact {
    pub fn new(now_ms: u64) -> Self {
        Self { leaderless_ms: Some(now_ms), primary: false, was_primary: false }
    }

    pub fn is_primary(&self) -> bool {
        self.primary
    }

    /// For how long there has been no leader; 0 if there is one.
    pub fn leaderless_for(&self, now_ms: u64) -> u64 {
        self.leaderless_ms.map_or(0, |since| now_ms.saturating_sub(since))
    }

    /// `cut_off`: an operator has isolated this member from those without whom it decides nothing.
    pub fn look(
        &mut self,
        has_leader: bool,
        cut_off: bool,
        now_ms: u64,
        patience_ms: u64,
    ) -> Option<Change> {
        if has_leader && !cut_off {
            self.leaderless_ms = None;
            if std::mem::replace(&mut self.primary, true) {
                return None;
            }
            let again = std::mem::replace(&mut self.was_primary, true);
            return Some(if again { Change::Regained } else { Change::Gained });
        }
        self.leaderless_ms.get_or_insert(now_ms);
        let lost = cut_off || self.leaderless_for(now_ms) >= patience_ms;
        (lost && std::mem::replace(&mut self.primary, false)).then_some(Change::Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contact_is_lost_after_a_while_and_regained_at_once() {
        let mut contact = Contact::new(0);
        assert_eq!(contact.look(false, false, 5_000, 100), None, "it never had any");
        assert_eq!(contact.look(true, false, 5_000, 100), Some(Change::Gained));
        assert_eq!(contact.look(false, false, 6_000, 100), None);
        assert_eq!(contact.look(true, false, 6_050, 100), None);
        assert_eq!(contact.look(false, false, 7_000, 100), None);
        assert_eq!(contact.look(false, false, 7_100, 100), Some(Change::Lost));
        assert!(!contact.is_primary() && contact.leaderless_for(7_100) == 100);
        assert_eq!(contact.look(true, false, 7_200, 100), Some(Change::Regained));
        assert_eq!(contact.look(true, true, 7_201, 100), Some(Change::Lost), "isolated: at once");
    }
}
