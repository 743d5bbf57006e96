//! How often the interesting things happened: a simulator that stopped visiting a corner finds
//! nothing there.

use crate::machine::Applied;
use quorate_certify::Outcome;

/// One kind of thing worth counting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mark {
    Crash,
    CrashInsideStep,
    TornBatch,
    Pause,
    Partition,
    SyncFailure,
    LostDisk,
    Election,
    Truncation,
    /// A sync returned for entries that were overwritten meanwhile.
    StaleSync,
    LogFetch,
    LogFetchRefused,
    SnapshotTaken,
    Compaction,
    SnapshotInstalled,
    SnapshotRefused,
    MembershipChange,
    RulesChange,
    JointMembership,
    Transfer,
    /// A leader, on whatever grounds, told somebody to stand.
    HandOver,
    /// Somebody was elected that may only hand over.
    Caretaker,
    /// A commit under a rule of several zones.
    ZonedCommit,
    Hang,
    /// Links broke for good.
    LameLinks,
    /// A majority lost its disks.
    Disaster,
    /// A member was told to make the rest the group, and did.
    Force,
    Forced,
    /// One of two went on without the other.
    Alone,
    WithoutMinority,
    Read,
    ReadUnanswered,
    Passed,
    Conflict,
    TooOld,
    Duplicate,
    View,
    ViewRefused,
    ProposalRefused,
    StreamBroken,
    /// A client asked a member that takes no writes.
    WriteRefused,
    /// A write of a single primary passed.
    PrimaryWrite,
    /// A write of one that is not the primary, or not any more, came into the log.
    NotPrimary,
    /// A leader made room for whom the writes come from.
    Followed,
    /// The group was well in its mode.
    ModeSettled,
}

#[derive(Clone, Debug)]
pub struct Coverage([u64; Mark::ALL.len()]);

impl Mark {
    pub const ALL: [Mark; 45] = [
        Mark::Crash,
        Mark::CrashInsideStep,
        Mark::TornBatch,
        Mark::Pause,
        Mark::Partition,
        Mark::SyncFailure,
        Mark::LostDisk,
        Mark::Election,
        Mark::Truncation,
        Mark::StaleSync,
        Mark::LogFetch,
        Mark::LogFetchRefused,
        Mark::SnapshotTaken,
        Mark::Compaction,
        Mark::SnapshotInstalled,
        Mark::SnapshotRefused,
        Mark::MembershipChange,
        Mark::RulesChange,
        Mark::JointMembership,
        Mark::Transfer,
        Mark::HandOver,
        Mark::Caretaker,
        Mark::ZonedCommit,
        Mark::Hang,
        Mark::LameLinks,
        Mark::Disaster,
        Mark::Force,
        Mark::Forced,
        Mark::Alone,
        Mark::WithoutMinority,
        Mark::Read,
        Mark::ReadUnanswered,
        Mark::Passed,
        Mark::Conflict,
        Mark::TooOld,
        Mark::Duplicate,
        Mark::View,
        Mark::ViewRefused,
        Mark::ProposalRefused,
        Mark::StreamBroken,
        Mark::WriteRefused,
        Mark::PrimaryWrite,
        Mark::NotPrimary,
        Mark::Followed,
        Mark::ModeSettled,
    ];
}

impl Coverage {
    pub fn mark(&mut self, mark: Mark) {
        self.0[mark as usize] += 1;
    }

    pub fn count(&self, mark: Mark) -> u64 {
        self.0[mark as usize]
    }

    /// What an entry came to, when the first member applied it.
    pub fn mark_applied(&mut self, applied: &Applied) {
        let mark = match applied {
            Applied::Nothing => return,
            Applied::View { accepted: true } => Mark::View,
            Applied::View { accepted: false } => Mark::ViewRefused,
            Applied::Write(decision) => match decision.outcome {
                Outcome::Ok => Mark::Passed,
                Outcome::Conflict { .. } => Mark::Conflict,
                Outcome::TooOld | Outcome::Orphan => Mark::TooOld,
                Outcome::NotPrimary => Mark::NotPrimary,
                Outcome::Duplicate => Mark::Duplicate,
            },
        };
        self.mark(mark);
    }

    pub fn add(&mut self, other: &Coverage) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Mark, u64)> + '_ {
        Mark::ALL.into_iter().map(|mark| (mark, self.0[mark as usize]))
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Coverage([0; Mark::ALL.len()])
    }
}
