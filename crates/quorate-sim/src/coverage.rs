//! How often the interesting things happened: a simulator that stopped visiting a corner finds
//! nothing there.

use std::collections::BTreeMap;

macro_rules! marks {
    ($($mark:ident),* $(,)?) => {
        /// One kind of thing worth counting.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Mark { $($mark),* }

        impl Mark {
            pub const ALL: &'static [Mark] = &[$(Mark::$mark),*];
        }
    };
}

marks! {
    // Processes and machines.
    Kill, Stopped, PowerCut, PowerCutOfAll, CrashInsideWrite, Pause, Founded, Joined,
    // Disks.
    SyncFailure, DiskFull, LostDisk, TornTail, RolledBack, RolledBackRefused, Rot, RefusedToStart,
    InstallFinished, SegmentReleased,
    // The network.
    Dialled, NotThere, DialTimeout, Refused, Reset, LinkTimeout, Partition, OneWayCut,
    // The core.
    Election, Truncation, LogFetch, LogFetchRefused,
    // Snapshots.
    SnapshotTaken, SnapshotSent, SnapshotReceived, SnapshotInstalled,
    // Entries, as the first member applies them.
    Noop, Config, JointConfig, View, Passed, Conflict, TooOld, Duplicate, Orphan, NotPrimary,
    FragmentPassed, LargeEntry,
    ZonedCommit,
    // Clients.
    PrimaryWrite, Followed, Read, LeaseRead, ReadUnanswered, WriteRefused, UnknownOutcome, ClientLeft,
    WentElsewhere, FoundDone, TriedAgain, LaterEpoch, GivenUpPassed,
    // Who belongs to a membership that was committed, and its rule of zones.
    Learner, Logger, Joining, WithoutVote, SeveralVotes, WithoutPriority, ZoneRule,
    // Leaders that only hand over, and leaders that told somebody to stand.
    Caretaker, HandOver,
    // Orders as they are given.
    Switchover, AlterRole, AlterPriority, AlterZone, Remove, SetRules, WantVotes, GoOnAlone, AllowAlone,
    RefreshView, SuspectAfter, Isolate, IsolateProcess, Hang,
    // Those that may be refused: done, and refused.
    SwitchoverDone, SwitchoverRefused, AlterDone, AlterRefused, RemoveDone, RemoveRefused,
    RulesDone, RulesRefused, ForceDone, ForceRefused, LeaveDone, LeaveRefused, JoinDone, JoinRefused,
    AloneDone, AloneRefused,
    // One of two went on alone. A majority was lost: a group again, without what the lost alone had;
    // one of the lost that was found again.
    WentAlone, Disaster, Forced, LostByForce, GivenUpReturns,
    // Stages.
    WithoutMinority, WithoutCutOff, BrokenLinks, WentOnBroken, PrimaryServes, LeadershipRests, Healed,
}

#[derive(Clone, Default, Debug)]
pub struct Coverage(BTreeMap<Mark, u64>);

impl Coverage {
    pub fn mark(&mut self, mark: Mark) {
        *self.0.entry(mark).or_default() += 1;
    }

    pub fn count(&self, mark: Mark) -> u64 {
        self.0.get(&mark).copied().unwrap_or_default()
    }

    pub fn add(&mut self, other: &Coverage) {
        other.0.iter().for_each(|(mark, count)| *self.0.entry(*mark).or_default() += count);
    }

    pub fn iter(&self) -> impl Iterator<Item = (Mark, u64)> + '_ {
        Mark::ALL.iter().map(|mark| (*mark, self.count(*mark)))
    }
}
