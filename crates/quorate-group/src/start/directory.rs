//! What a log directory says, as plain data.

use quorate_consensus::{Charter, Entry, HardState, Index, LogPosition, MemberId, Term};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    pub member: MemberId,
    /// Counts the starts of this member.
    pub incarnation: u32,
    /// 0 until the member belongs to a group.
    pub group: u128,
    pub charter: Charter,
    pub hard_state: HardState,
    /// Position just before the first entry.
    pub base: LogPosition,
    /// End of the log; all of it is on disk.
    pub last: LogPosition,
    /// `(first index, term)` of each run of entries with the same term, ascending.
    pub term_runs: Vec<(Index, Term)>,
    /// All entries that are not data, ascending.
    pub special: Vec<Entry>,
}

impl Directory {
    /// The term of the entry at `index`, which is above the base.
    pub(super) fn term_at(&self, index: Index) -> Option<Term> {
        let run = self.term_runs.iter().rev().find(|(first, _)| *first <= index);
        run.filter(|_| index <= self.last.index).map(|(_, term)| *term)
    }

    /// What it would say, had the log been replaced by a snapshot that ends at `base`.
    pub(crate) fn replace_log(&mut self, base: LogPosition) {
        self.base = base;
        self.last = base;
        self.term_runs.clear();
        self.special.clear();
    }
}
