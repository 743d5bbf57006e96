//! Where a node stands on its way into the group.

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum LocalState {
    Undefined = 0,
    Joiner = 1,
    Donor = 2,
    Joined = 3,
    Synced = 4,
    Error = 5,
}

impl LocalState {
    pub(super) fn of(number: u8) -> Self {
        match number {
            1 => LocalState::Joiner,
            2 => LocalState::Donor,
            3 => LocalState::Joined,
            4 => LocalState::Synced,
            5 => LocalState::Error,
            _ => LocalState::Undefined,
        }
    }

    /// As status variables and reports show it; tools look for these very words.
    pub fn comment(self) -> &'static str {
        match self {
            LocalState::Undefined => "Initialized",
            LocalState::Joiner => "Joining: receiving State Transfer",
            LocalState::Donor => "Donor/Desynced",
            LocalState::Joined => "Joined",
            LocalState::Synced => "Synced",
            LocalState::Error => "Inconsistent",
        }
    }

    /// Clients are served, if there is a majority.
    pub fn serves(self) -> bool {
        matches!(self, LocalState::Synced | LocalState::Donor)
    }

    /// As Galera writes it in its log lines, which people search for.
    pub(super) fn shift_name(self) -> &'static str {
        match self {
            LocalState::Undefined => "CLOSED",
            LocalState::Joiner => "JOINER",
            LocalState::Donor => "DONOR/DESYNCED",
            LocalState::Joined => "JOINED",
            LocalState::Synced => "SYNCED",
            LocalState::Error => "INCONSISTENT",
        }
    }
}
