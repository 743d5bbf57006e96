//! Deliberately planted bugs, to show that the checks bite.
//!
//! Each is a mistake of the *driver*, the disk or the network as simulated here; the product's
//! crates carry no switch for them.

use clap::ValueEnum;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Plant {
    /// The log reports entries as persisted when they were only handed to the disk.
    AckBeforeSync,
    /// Votes leave before term and vote are on disk.
    VoteBeforePersist,
    /// After a crash, entries that a new leader had overwritten come back behind the log's end.
    ResurrectTruncated,
    /// A member that starts from a snapshot rebuilds its certification index without the last
    /// write sets before it.
    PartialIndex,
    /// A proposal is sent to a new leader under a new serial, so duplicates go unnoticed.
    ResendNewSerial,
    /// Acknowledgements say more than the follower has.
    InflatedReply,
    /// One member takes its lease for longer than the others wait before an election.
    LongLease,
    /// What a former primary still wants to write is stamped with its successor's term.
    RestampTerm,
    /// A member that starts from a snapshot does not know that there is a single primary.
    ForgottenMode,
    /// Leadership follows writes without looking who may lead.
    FollowAnybody,
    /// Leadership follows every single write.
    RestlessFollow,
}
