//! How often the interesting things happened: a simulator that stopped visiting a corner finds
//! nothing there.

macro_rules! marks {
    ($($mark:ident),* $(,)?) => {
        /// One kind of thing worth counting.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Mark { $($mark),* }

        impl Mark {
            pub const ALL: &'static [Mark] = &[$(Mark::$mark),*];
        }
    };
}

marks! {
    // Processes and machines.
    Kill, PowerCut, PowerCutOfAll, CrashInsideWrite, Pause, Founded, Joined,
    // Disks.
    SyncFailure, DiskFull, LostDisk, TornTail, RolledBack, RolledBackRefused, Rot, RefusedToStart,
    InstallFinished, SegmentReleased,
    // The network.
    Dialled, NotThere, DialTimeout, Refused, Reset, Partition, OneWayCut,
    // The core.
    Election, Truncation, LogFetch, LogFetchRefused,
    // Snapshots.
    SnapshotTaken, SnapshotSent, SnapshotReceived, SnapshotInstalled,
    // Entries, as the first member applies them.
    Noop, Config, JointConfig, View, Passed, Conflict, TooOld, Duplicate, Orphan, NotPrimary,
    FragmentPassed, LargeEntry,
    ZonedCommit,
    // Clients.
    PrimaryWrite, Followed, Read, LeaseRead, ReadUnanswered, WriteRefused, UnknownOutcome,
    // Orders: done, and refused.
    OrderDone, OrderRefused, Switchover, AlterRole, AlterWeight, Remove, SetRules,
    WantVotes, GoOnAlone, AllowAlone, RefreshView, Hang,
    // Stages.
    WithoutMinority, BrokenLinks, WentOnBroken, ModeSettled, Healed,
}

#[derive(Clone, Debug)]
pub struct Coverage([u64; Mark::ALL.len()]);

impl Coverage {
    pub fn mark(&mut self, mark: Mark) {
        self.0[mark as usize] += 1;
    }

    pub fn count(&self, mark: Mark) -> u64 {
        self.0[mark as usize]
    }

    pub fn add(&mut self, other: &Coverage) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Mark, u64)> + '_ {
        Mark::ALL.iter().map(|mark| (*mark, self.0[*mark as usize]))
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Coverage([0; Mark::ALL.len()])
    }
}
