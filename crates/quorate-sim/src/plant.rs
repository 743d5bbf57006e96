//! Deliberately planted bugs, to show that the checks bite.
//!
//! Each is a mistake of the world: of who carries out what the machine wants, of the disk, of what
//! stands above the group. The product's crates carry no switch for them.
//!
//! So there is no plant for leadership that follows somebody who may not lead: the machine asks
//! (`placement::may_follow`), and the core refuses (`BadChange`). Their unit tests stand for that.

use clap::ValueEnum;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Plant {
    /// The log reports entries as persisted when they were only handed to the disk.
    AckBeforeSync,
    /// Term and vote are never written to the disk.
    TermNotSynced,
    /// A start takes what lies below a newer snapshot for committed, whatever its terms.
    CommitWithoutTerms,
    /// A proposal is sent to a new leader under a new serial, so it is applied twice.
    ProposedTwice,
    /// A view that some members go by leaves those in who are gone.
    ViewOnSomeOnly,
    /// A member that starts from a snapshot rebuilds its certification index without the last
    /// write sets before it.
    PartialIndex,
    /// Who is not the primary (any more) stamps what it wants to write with its successor's term.
    RestampTerm,
    /// Entries are fed that are committed nowhere.
    FedTooEarly,
    /// Acknowledgements say more than the follower has.
    InflatedReply,
    /// Members say that their servers have applied more than they have.
    InflatedStanding,
    /// A read point is answered from the own commit index, without asking anybody.
    LocalReads,
    /// A leader's clock runs so slowly that its lease outlasts the patience of the others.
    LongLease,
    /// A member that starts from a snapshot does not know that there is a single primary.
    ForgottenMode,
    /// A member that goes on from a leader's snapshot does not know what operators ordered before it.
    ForgottenNotes,
    /// Each start counts what it writes from one on, also where it was rolled back.
    SerialsFromOne,
    /// A client that does not know the outcome of its write writes it again without looking.
    BlindRetry,
    /// What a session gave up counts as kin of what its node writes later.
    KinOverwrites,
    /// Leadership follows every single write.
    RestlessFollow,
    /// A received snapshot replaces the log before it is on disk.
    SnapshotNotSaved,
    /// After a crash, entries that a new leader had overwritten come back, and what was written since
    /// is gone.
    ResurrectTruncated,
    /// A host that does not answer counts as one that refuses: nobody runs there.
    SilenceIsAbsence,
    /// A start takes a database that is ahead of its log for one that the log can show again.
    UnloggedUnknown,
    /// Whoever is asked agrees to a majority given up, whatever it has.
    AllAgreeToForce,
}
