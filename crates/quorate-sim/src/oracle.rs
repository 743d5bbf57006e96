//! What must never happen, checked as the run goes on.
//!
//! The oracle sees all members at once. It keeps one global history (every entry ever appended,
//! the committed log, the leader of each term, the digest of the replicated state after each
//! index) and holds each member's steps against it. Each check costs a constant per entry.

mod digests;
mod notes;
mod primacy;
pub mod rows;
mod voice;

pub use notes::digest as digest_of_notes;

use crate::conflicts::Passed;
use crate::database::Decision;
use digests::Digests;
use quorate_certify::Outcome;
use quorate_consensus::{Entry, Index, LogPosition, MemberId, Term};
use quorate_seeds::mix;
use rows::Rows;
use std::collections::BTreeMap;
use std::fmt;
use twox_hash::XxHash3_64;
use voice::Voice;

/// The rule that was broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    OneLeaderPerTerm,
    LogMatching,
    LeaderCompleteness,
    CommittedNeverChanges,
    CommitNeedsPersistedMajority,
    CommitInEnoughZones,
    /// What the layer above sees is in the own log; after a crash the disk has it, or the beginning of it.
    LogFitsDatabase,
    /// What a sync covered is found by every later start.
    SyncedIsKept,
    /// A member whose disk did only what disks do starts, and goes on.
    StartsAgain,
    AcknowledgeOnlyPersisted,
    VoteOnlyPersisted,
    OneVotePerTerm,
    TermNeverGoesBack,
    ReadsNeverStale,
    /// Who is told that all have applied something can read it everywhere.
    AppliedEverywhere,
    ExactlyOnce,
    /// Nobody overwrites what it has not seen.
    NoLostUpdate,
    AcknowledgedSurvives,
    SameVerdictsEverywhere,
    ConflictsAreCaught,
    Progress,
    /// With a single primary a write set passes only where its origin leads, as it did when it
    /// wrote; and nothing of a primary passes once a later one's did.
    OnlyThePrimaryWrites,
    /// Leadership that follows writes comes to rest.
    LeadershipRests,
    /// A logger, or a member of priority 0, takes no proposals as leader.
    CaretakersOnlyHandOver,
    /// Of two only one goes on alone, and it has all that the other one knew to be committed.
    AloneWithAll,
    /// Who was given up for lost is never a member again.
    GivenUpStaysOut,
    /// All that are at the same place of the log show the same notes. Of an order they say what its operator was
    /// told; of events, what had happened by then.
    SameNotesEverywhere,
    NotesAreTrue,
    Panic,
}

#[derive(Clone, Debug)]
pub struct Violation {
    pub rule: Rule,
    pub detail: String,
}

/// One entry that some leader made, as everybody else must have it.
struct Known {
    prev_term: Term,
    hash: u64,
}

#[derive(Clone, Copy)]
struct Committed {
    term: Term,
    /// The term of the leader that first counted it as committed.
    counted_in: Term,
}

/// The fate of one client operation.
#[derive(Clone, Copy, Default)]
pub struct OpFate {
    /// Where it took effect.
    pub index: Option<Index>,
    pub acknowledged: bool,
    /// Who wrote it, and in which term as the primary; 0: as one of many.
    pub written: (MemberId, Term),
}

#[derive(Default)]
pub struct Oracle {
    known: BTreeMap<LogPosition, Known>,
    committed: Vec<Committed>,
    leaders: BTreeMap<Term, MemberId>,
    voices: BTreeMap<MemberId, Voice>,
    /// Digest of the replicated state after each index.
    states: Digests,
    orders: notes::Orders,
    ops: Vec<OpFate>,
    passed: Passed,
    pub rows: Rows,
    /// The primary whose write set passed last, and its term.
    primary: Option<(MemberId, Term)>,
    violation: Option<Violation>,
}

impl Oracle {
    pub fn fail(&mut self, rule: Rule, detail: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { rule, detail: detail() });
        }
    }

    pub fn fail_if(&mut self, broken: bool, rule: Rule, detail: impl FnOnce() -> String) {
        if broken {
            self.fail(rule, detail);
        }
    }

    /// If something was `found` that breaks the rule.
    pub fn fail_for<T>(&mut self, found: Option<T>, rule: Rule, detail: impl FnOnce(T) -> String) {
        if let Some(found) = found {
            self.fail(rule, || detail(found));
        }
    }

    pub fn failed(&self) -> bool {
        self.violation.is_some()
    }

    pub fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    /// The highest index that any member knows to be committed.
    pub fn commit(&self) -> Index {
        self.committed.len() as Index
    }

    pub fn committed_term(&self, index: Index) -> Option<Term> {
        match index {
            0 => Some(0),
            _ => self.committed.get(index as usize - 1).map(|c| c.term),
        }
    }

    /// An entry was appended to the log of `member`, behind one of `prev_term`. Only the leader of
    /// a term (`leads`) makes entries of that term.
    pub fn appended(&mut self, member: MemberId, entry: &Entry, prev_term: Term, leads: bool) {
        match self.known.get(&entry.position()) {
            Some(known) if known.hash == hash(entry) && known.prev_term == prev_term => {}
            Some(&Known { prev_term: other, .. }) => self.fail(Rule::LogMatching, || {
                let at = show(entry.position());
                format!("{member:?} has another {at} than its leader, behind terms {prev_term}, {other}")
            }),
            None if leads => self.given(entry, prev_term),
            None => self.fail(Rule::LogMatching, || {
                format!("{member:?} has entry {} that no leader made", show(entry.position()))
            }),
        }
        self.fail_if(prev_term > entry.term, Rule::LogMatching, || {
            format!("{member:?}: entry {} follows term {prev_term}", show(entry.position()))
        });
    }

    /// An entry as it is to be: made by a leader, or in all logs when the run began.
    pub fn given(&mut self, entry: &Entry, prev_term: Term) {
        let known = Known { prev_term, hash: hash(entry) };
        self.known.entry(entry.position()).or_insert(known);
    }

    /// An entry as found on disk at a restart.
    pub fn found(&mut self, member: MemberId, position: LogPosition, prev_term: Term) {
        let fits = self.known.get(&position).is_some_and(|known| known.prev_term == prev_term);
        self.fail_if(!fits, Rule::LogMatching, || {
            let at = show(position);
            format!("{member:?} finds entry {at} behind term {prev_term}: no leader made that")
        });
    }

    /// `member` is about to cut entry `position` out of its log, as the leader of its term wants it. One that has
    /// lost already may want that of what a later term committed: it cannot know of it, and cannot commit.
    pub fn truncated(&mut self, member: MemberId, position: LogPosition) {
        let term = self.term_on_disk(member);
        let committed = self.committed.get(position.index as usize - 1);
        self.fail_if(
            committed.is_some_and(|c| c.term == position.term && c.counted_in <= term),
            Rule::CommittedNeverChanges,
            || format!("{member:?} cuts off the committed entry {} in term {term}", show(position)),
        );
    }

    /// A majority was given up for lost: what was committed after `upto` is lost with it, by an
    /// operator's decision.
    pub fn forced(&mut self, upto: Index) {
        self.committed.truncate(upto as usize);
        self.states.forget_after(upto);
        self.forget_notes_after(upto);
        self.passed.forget_after(upto);
        self.rows.forget_after(upto);
        self.primary = None;
        for fate in self.ops.iter_mut().filter(|fate| fate.index.is_some_and(|at| at > upto)) {
            *fate = OpFate { written: fate.written, ..OpFate::default() };
        }
    }

    /// `member` became leader of `term` with a log that holds `last` and `term_at`.
    pub fn elected(
        &mut self,
        member: MemberId,
        term: Term,
        last: Index,
        term_at: impl Fn(Index) -> Option<Term>,
    ) {
        let before = *self.leaders.entry(term).or_insert(member);
        self.fail_if(before != member, Rule::OneLeaderPerTerm, || {
            format!("{member:?} leads term {term}, and so does {before:?}")
        });
        // Entries counted by leaders of later terms need not be here: this one has already lost.
        let must_have = self.committed.iter().rposition(|c| c.counted_in < term);
        if let Some(at) = must_have {
            let position = LogPosition { term: self.committed[at].term, index: at as Index + 1 };
            self.fail_if(
                last < position.index
                    || term_at(position.index).is_some_and(|have| have != position.term),
                Rule::LeaderCompleteness,
                || {
                    let at = show(position);
                    format!("{member:?} leads term {term} up to {last}, without the committed {at}")
                },
            );
        }
    }

    /// `member` is fed `entry` as committed, in the term `counted_in` at the latest. True if nobody
    /// was before.
    pub fn committing(&mut self, member: MemberId, entry: &Entry, counted_in: Term) -> bool {
        let (index, term) = (entry.index, entry.term);
        match self.committed.get(index as usize - 1) {
            Some(known) if known.term == term => return false,
            Some(known) => {
                let known = known.term;
                self.fail(Rule::CommittedNeverChanges, || {
                    format!("{member:?} is fed {index} of term {term}, others had term {known}")
                });
                return false;
            }
            None => {}
        }
        if self.commit() + 1 != index {
            self.fail(Rule::CommittedNeverChanges, || {
                format!("{member:?} is fed {index}, but nobody was fed the entry before it")
            });
            return false;
        }
        self.fail_if(
            self.known.get(&entry.position()).is_none_or(|known| known.hash != hash(entry)),
            Rule::LogMatching,
            || {
                let at = show(entry.position());
                format!("{member:?} is fed {at} with a content that no leader made")
            },
        );
        self.committed.push(Committed { term, counted_in });
        true
    }

    /// The replicated state of `member` after `index` has this digest.
    pub fn state(&mut self, member: MemberId, index: Index, digest: u64) {
        let agrees = self.states.agrees(index, digest);
        self.fail_if(!agrees, Rule::SameVerdictsEverywhere, || {
            format!(
                "after entry {index} {member:?} is in another state than the first to get there"
            )
        });
    }

    /// True if nobody has applied this index before.
    pub fn is_news(&self, index: Index) -> bool {
        self.states.is_news(index)
    }

    pub fn new_op(&mut self, by: MemberId, term: Term) -> u32 {
        self.ops.push(OpFate { written: (by, term), ..OpFate::default() });
        (self.ops.len() - 1) as u32
    }

    pub fn ops(&self) -> &[OpFate] {
        &self.ops
    }

    /// An operation got its verdict at `index`; told once for each index, in order.
    pub fn verdict(&mut self, index: Index, decision: &Decision) {
        let &Decision { op, ref write_set, seqno, outcome } = decision;
        let Some(fate) = self.ops.get_mut(op as usize) else {
            return self.fail(Rule::ExactlyOnce, || format!("operation {op} was never proposed"));
        };
        match (fate.index, outcome) {
            (None, Outcome::Duplicate) => self.fail(Rule::ExactlyOnce, || {
                format!("operation {op} at {index} counts as a copy, but there was no first")
            }),
            (None, _) => fate.index = Some(index),
            (Some(first), Outcome::Ok) => self.fail(Rule::ExactlyOnce, || {
                format!("operation {op} was decided at {first} and takes effect again at {index}")
            }),
            // A copy that comes so late that it is only too old.
            (Some(_), _) => {}
        }
        if outcome == Outcome::Ok {
            self.rows_changed(op, index, write_set);
            let missed = self.passed.admit(index, seqno, write_set);
            self.fail_for(missed, Rule::ConflictsAreCaught, |missed| {
                format!("operation {op}, seqno {seqno}, passes, but {missed} changed the same")
            });
        }
    }

    /// The client of `op` was told that it is ordered at `index`.
    pub fn acknowledged(&mut self, op: u32, index: Index) {
        let fate = &mut self.ops[op as usize];
        fate.acknowledged = true;
        let real = fate.index;
        self.fail_if(real != Some(index), Rule::AcknowledgedSurvives, || {
            format!("operation {op} was acknowledged at {index} but is at {real:?}")
        });
    }

    pub fn leader_of(&self, term: Term) -> Option<MemberId> {
        self.leaders.get(&term).copied()
    }

    /// Terms in which somebody led.
    pub fn terms_led(&self) -> usize {
        self.leaders.len()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}

/// `index@term`, as traces write positions.
pub fn show(position: LogPosition) -> String {
    format!("{}@{}", position.index, position.term)
}

fn hash(entry: &Entry) -> u64 {
    let seed = mix(entry.term, u64::from(entry.kind.code()));
    XxHash3_64::oneshot_with_seed(seed, &entry.data)
}

#[cfg(test)]
mod tests;
