//! Bugs planted on purpose, to see that they are found.

use clap::ValueEnum;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Plant {
    /// Commit order is left before the commit.
    OrderLeftEarly,
    /// A session that has to be replayed is not, and its client is told that all is well.
    ReplaySkipped,
    /// A client is told that a transaction failed whose outcome nobody knows.
    UnknownAsRefused,
    /// After a crash the node is told a position that is one too low.
    AppliedTwice,
    /// An ordered write set waits for the rows of a session instead of aborting it.
    NobodyAborts,
    /// What a session gave up counts as kin of what its node proposes later.
    KinOverwrites,
    /// A donor's copy has the rows of an earlier time than its position.
    CopyTakenEarly,
    /// An applier keeps an error to itself.
    ErrorSwallowed,
    /// A start does not know that the copy on its disk is not whole.
    HalfCopyTrusted,
    /// A view without a stream's origin ends it on some servers only.
    OrphansStay,
    /// A member lets go of parts of a large transaction that it has not applied.
    PartsLetGo,
    /// What is read of a part lacks its first byte, and has another one at its end.
    PartsShifted,
    /// That a stream of parts was given up is not told.
    StreamsNotEnded,
    /// Others are told that the next write set is applied, too.
    ToldTooEarly,
}
