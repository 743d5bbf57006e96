//! What every sweep should have seen.

quorate_seeds::marks! {
    // Processes and machines.
    Kill, Stopped, PowerCut, PowerCutOfAll, CrashInsideWrite, Pause, Founded, Joined,
    // Disks.
    SyncFailure, DiskFull, LostDisk, TornTail, RolledBack, RolledBackRefused, Rot, RefusedToStart,
    InstallFinished, SegmentReleased, Encrypted, KeyChanged,
    // The network.
    Dialled, NotThere, DialTimeout, Refused, Reset, LinkTimeout, Partition, OneWayCut,
    // The core.
    Election, CountedItself, Truncation, LogFetch, LogFetchRefused,
    // Snapshots.
    SnapshotTaken, SnapshotSent, SnapshotReceived, SnapshotInstalled,
    // Entries, as the first member applies them.
    Noop, Config, JointConfig, View, Note, NotedAgain, LeaderNoted, MembershipNoted, ViewNoted, Passed, Conflict,
    TooOld, Duplicate, Orphan, NotPrimary, FragmentPassed, LargeEntry,
    ZonedCommit,
    // Databases that are ahead of the own disk.
    FedAhead, DatabaseAhead,
    // Clients.
    PrimaryWrite, Followed, Read, LeaseRead, ReadUnanswered, WriteRefused, UnknownOutcome, ClientLeft,
    AppliedElsewhere, AppliedTooLate, WentElsewhere, FoundDone, TriedAgain, LaterEpoch, GivenUpPassed,
    // Who belongs to a membership that was committed, and its rule of zones.
    Learner, Logger, Joining, WithoutVote, SeveralVotes, WithoutPriority, ZoneRule,
    // Leaders that only hand over, and leaders that told somebody to stand.
    Caretaker, HandOver,
    // Orders as they are given.
    Switchover, AlterRole, AlterPriority, AlterZone, Remove, SetRules, PauseGroup, WantVotes, GoOnAlone, AllowAlone,
    RefreshView, SuspectAfter, Isolate, IsolateProcess, Hang,
    // Those that may be refused: done, and refused.
    SwitchoverDone, SwitchoverRefused, AlterDone, AlterRefused, RemoveDone, RemoveRefused,
    RulesDone, RulesRefused, ForceDone, ForceRefused, LeaveDone, LeaveRefused, JoinDone, JoinRefused,
    AloneDone, AloneRefused,
    // One of two went on alone. A majority was lost: a group again, without what the lost alone had;
    // one of the lost that was found again.
    WentAlone, Disaster, Forced, LostByForce, GivenUpReturns,
    // A member that was removed by order comes back as a new one.
    Expelled,
    // Stages.
    WithoutMinority, WithoutCutOff, BrokenLinks, WentOnBroken, PrimaryServes, LeadershipRests, Healed,
}
