//! What must hold, whatever happens, and how often the interesting things did.
//!
//! - The same at the same position: the first server that commits something at a seqno says what it
//!   is; every other, and the same one after a crash, must commit that there, and nothing else.
//! - Acknowledged is kept: at the end every server has every transaction whose client was told so.
//! - Refused never appears: a transaction whose client was told that it failed for good is nowhere.
//! - A streaming transaction is there as a whole or not at all, and whether a fragment finds it open is the
//!   same everywhere: nobody keeps one open that has ended for the others, or whose origin is gone.
//! - What a transaction writes follows from what was there when it commits: nobody overwrites what it
//!   has not seen.
//! - Nobody waits for ever.

use crate::calls::Answered;
use crate::engine::{Rows, Writes, SCHEMA};
use parking_lot::Mutex;
use quorate_seeds::{Coverage, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// One transaction of one client, over all servers and starts.
pub type Tag = u64;

quorate_seeds::marks! {
    Committed, CertificationFailed, UnknownOutcome, UnknownButCommitted, NotConnected,
    AbortExecuting, AbortCertifying, AbortCommitting, AbortRefused, AbortImmutable, Killed,
    ReplayedAfterCertify, ReplayedAfterOrder, Replayed, LockTimeout,
    Applied, Dummy, ViewSeen, NonPrimarySeen, Connected, Synced,
    LosesMajority, SurvivesInALog, ReadBack,
    Crash, CrashLostTail, CrashLostLog, DatabaseAhead, CrashOfAll, CleanStop, Restart, Cut, CutMajority,
    Ddl, DdlFails,
    Paused, Desynced, CausalRead,
    StartContinues, StartFetches, StartOnUnknown, StartOnHalfCopy, StartOnBlank, StartWithoutLog, DataLost,
    SnapshotWelcome, SnapshotReceived, OwnLogPurged, LeaderPurges,
    Donates, DonorStill, DonorFlowing, Donated, StateReceived, StateRefused,
    ScriptFailsToStart, ScriptFails, ScriptFindsNobody, StreamBreaks, JoinerTimesOut,
    TransferCancelled, TwoJoiners, ExitsByItself, Withdrawn,
    Fragment, FragmentFailed, FragmentRefused, FragmentAbortedInOrder, FragmentAbortedLate,
    RolledBack, RolledBackStreaming,
    StreamCommitted, StreamReplayed, StreamRolledBack, StreamEndsInTotalOrder, RollbackUnsent, RollbackSentLater,
    StreamApplied, StreamAppliedCommit, StreamAppliedRollback, RollbackForNothing, FragmentForNothing,
    StreamRecovered, OrphanRolledBack, EqualViews, OwnStreamsEndWithView,
    StreamSevered, FetchesForStreams,
    PrimaryMoves, ReadOnlySecondary, ReadOnlyCutOff, ReadOnlyEnds, RefusedAsSecondary, ExitAborts, ExitGoesOffline,
    ReturnsAtExit, GivesUp, StreamAbortedByDdl,
    Corrupted, ErrorOfOne, CutBeforeVote, TooLarge,
    AppliedElsewhere, AppliedTooLate, Throttled,
    Packed, PartSent, LargeSent, PartsGivenUp, PartRead, PartsGone, DiskFull,
}

#[derive(Default)]
struct Seen {
    /// What was committed at each seqno.
    history: BTreeMap<i64, (u64, Writes)>,
    /// The DDL that was executed at each seqno.
    executed: BTreeMap<i64, Tag>,
    /// Whether what a fragment at a seqno belongs to was open.
    fragments: BTreeMap<i64, bool>,
    committed: BTreeSet<Tag>,
    /// Which server committed which seqno.
    reached: BTreeSet<(usize, i64)>,
    /// Up to where a server was sent a copy of another.
    copied: BTreeMap<usize, i64>,
    acknowledged: BTreeSet<Tag>,
    refused: BTreeSet<Tag>,
    unknown: BTreeSet<Tag>,
    marks: Coverage<Mark>,
    answers: BTreeMap<Answered, u64>,
    violation: Option<String>,
    trace: Trace,
}

#[derive(Default)]
pub struct Oracle(Mutex<Seen>);

impl Oracle {
    pub fn new(trace: Trace) -> Self {
        Self(Mutex::new(Seen { trace, ..Seen::default() }))
    }

    pub fn fail(&self, what: impl Into<String>) {
        let what = what.into();
        self.tell(|| format!("VIOLATION {what}"));
        self.0.lock().violation.get_or_insert(what);
    }

    pub fn violation(&self) -> Option<String> {
        self.0.lock().violation.clone()
    }

    pub fn mark(&self, mark: Mark) {
        self.0.lock().marks.mark(mark);
    }

    /// A node has answered a call.
    pub fn answered(&self, answered: Answered) {
        *self.0.lock().answers.entry(answered).or_default() += 1;
    }

    pub fn answers(&self) -> BTreeMap<Answered, u64> {
        self.0.lock().answers.clone()
    }

    pub fn marks(&self) -> Coverage<Mark> {
        self.0.lock().marks.clone()
    }

    /// A line of the story, made only if somebody reads it.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        let trace = &mut self.0.lock().trace;
        if trace.is_on() {
            trace.line(crate::baton::installed().elapsed(), &line());
        }
    }

    pub fn trace(&self) -> Vec<String> {
        self.0.lock().trace.clone().into_lines()
    }

    /// A server commits this at this seqno.
    pub fn committed(&self, node: usize, seqno: i64, digest: u64, writes: &Writes) {
        let mut seen = self.0.lock();
        let first = seen.history.entry(seqno).or_insert_with(|| (digest, writes.clone())).0;
        let tags = writes.iter().map(|write| write.tag);
        let refused = tags.clone().find(|tag| seen.refused.contains(tag));
        seen.committed.extend(tags);
        seen.reached.insert((node, seqno));
        drop(seen);
        if first != digest {
            self.fail(format!("n{node} commits something else at seqno {seqno} than another did"));
        }
        if let Some(tag) = refused {
            self.fail(format!("n{node} commits {tag:x} at {seqno}, whose client was refused"));
        }
    }

    /// A server is through with this seqno, and commits nothing: it gives an error, as on all of them.
    pub fn fails_alike(&self, node: usize, seqno: i64) {
        self.0.lock().reached.insert((node, seqno));
    }

    pub fn executed(&self, seqno: i64, tag: Tag) {
        self.0.lock().executed.insert(seqno, tag);
    }

    /// A joiner begins on a copy of this position: it must be what all commits up to there make.
    pub fn check_copy(&self, node: usize, position: i64, rows: &Rows) {
        let mut expected = Rows::new();
        let mut seen = self.0.lock();
        seen.copied.insert(node, position);
        for (_, writes) in seen.history.range(..=position).map(|(_, committed)| committed) {
            for write in writes {
                expected.entry(write.key).or_default().push(write.tag);
            }
        }
        expected.insert(SCHEMA, seen.executed.range(..=position).map(|(_, tag)| *tag).collect());
        drop(seen);
        if *rows != expected {
            self.fail(format!(
                "n{node} is sent a copy of {position} with {rows:x?}, where {expected:x?} was committed"
            ));
        }
    }

    /// A fragment that passed finds its transaction open here, or ended.
    pub fn fragment(&self, node: usize, seqno: i64, open: bool) {
        let first = *self.0.lock().fragments.entry(seqno).or_insert(open);
        if first != open {
            self.fail(format!(
                "n{node} has the stream of the fragment at {seqno} {}, unlike another",
                if open { "open" } else { "ended" }
            ));
        }
    }

    /// A client is told of its commit because these have it, too. DDL that failed everywhere is in the history if
    /// a server found after a restart that it had run it.
    pub fn check_applied(&self, seqno: i64, nodes: &[usize]) {
        let seen = self.0.lock();
        let has = |node: &usize| {
            seen.reached.contains(&(*node, seqno)) || seen.copied.get(node) >= Some(&seqno)
        };
        let lacks = nodes.iter().find(|node| !has(node)).copied();
        let is_write = seen.history.contains_key(&seqno);
        drop(seen);
        if let Some(node) = lacks.filter(|_| is_write) {
            self.fail(format!("n{node} says that it has applied {seqno}, and has not"));
        }
    }

    pub fn acknowledged(&self, tag: Tag) {
        self.mark(Mark::Committed);
        self.0.lock().acknowledged.insert(tag);
    }

    pub fn refused(&self, tag: Tag) {
        let mut seen = self.0.lock();
        seen.refused.insert(tag);
        let appeared = seen.committed.contains(&tag);
        drop(seen);
        if appeared {
            self.fail(format!("the client of {tag:x} is refused, but it is committed"));
        }
    }

    pub fn unknown(&self, tag: Tag) {
        self.mark(Mark::UnknownOutcome);
        self.0.lock().unknown.insert(tag);
    }

    /// What one server has at the end.
    pub fn check_end(&self, node: usize, rows: &BTreeMap<u8, Vec<Tag>>) {
        let there: BTreeSet<Tag> = rows.values().flatten().copied().collect();
        let seen = self.0.lock();
        let lost = seen.acknowledged.difference(&there).next().copied();
        let false_one = seen.refused.intersection(&there).next().copied();
        let late = seen.unknown.intersection(&there).count() as u64;
        drop(seen);
        if let Some(tag) = lost {
            self.fail(format!("{tag:x} was acknowledged, and is not on n{node} at the end"));
        }
        if let Some(tag) = false_one {
            self.fail(format!("{tag:x} was refused, and is on n{node} at the end"));
        }
        if node == 0 {
            self.0.lock().marks.add(Mark::UnknownButCommitted, late);
        }
    }

    pub fn last_acknowledged(&self) -> BTreeSet<Tag> {
        self.0.lock().acknowledged.clone()
    }

    /// A read that must not be stale: everything acknowledged before it began is there.
    pub fn check_read(&self, node: usize, before: BTreeSet<Tag>, rows: &BTreeMap<u8, Vec<Tag>>) {
        let there: BTreeSet<Tag> = rows.values().flatten().copied().collect();
        if let Some(tag) = before.difference(&there).next() {
            self.fail(format!(
                "n{node} reads after a barrier without {tag:x}, acknowledged before"
            ));
        }
    }

    pub fn last_seqno(&self) -> i64 {
        self.0.lock().history.last_key_value().map_or(0, |(seqno, _)| *seqno)
    }
}
