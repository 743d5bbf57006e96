//! What clients did and were told: one operation a line, in a file that says everything a checker
//! needs.
//!
//! ```text
//! 1203441 1204106 p3 n2 ok append 5:=1,2,3 5+4
//! begin   end     |  |  |  action                 # what the server said, if not ok
//!                 |  |  outcome: ok, fail (has no effect, ever), unknown (may take effect, now or later)
//!                 |  node
//!                 process: one client, one operation at a time
//! ```
//!
//! Times are microseconds on one monotonic clock, from before the operation was sent until its
//! outcome was known. The final reads after healing are operations as well, of processes that do
//! nothing else ([`Operation::is_final`]).

mod recorder;
mod text;

pub use recorder::Recorder;
pub use text::{read, Malformed};

/// The process of final reads on node `n` is `FINAL + n`.
pub const FINAL: u32 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub begin_us: u64,
    pub end_us: u64,
    pub process: u32,
    /// Counts from 1.
    pub node: u16,
    pub outcome: Outcome,
    pub action: Action,
    /// The server's message where the outcome is not ok; one line.
    pub note: String,
}

impl Operation {
    pub fn is_final(&self) -> bool {
        self.process >= FINAL
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The server said that it has no effect, or it was never asked to commit.
    Fail,
    Unknown,
}

/// What was asked, with the values that were read where it succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Rows with the ids `first .. first + rows`, in one transaction; nobody else inserts them.
    Insert {
        first: u64,
        rows: u32,
    },
    /// A final read of all ids.
    Present(IdSet),
    Transfer {
        from: u32,
        to: u32,
        amount: i64,
    },
    /// All accounts, in one transaction.
    Balances(Vec<i64>),
    /// One more on a counter.
    Add {
        counter: u32,
    },
    /// All counters.
    Counters(Vec<i64>),
    /// Reads of lists and appends to them in one transaction.
    Txn(Vec<Step>),
    /// A register that one process alone writes, with ever larger values.
    Write {
        register: u32,
        value: u64,
    },
    Read {
        register: u32,
        value: u64,
    },
    /// A row that refers to another.
    Child {
        id: u64,
        parent: u64,
    },
    /// Deletes a parent, and its children with it.
    Delete {
        parent: u64,
    },
    /// A final read of (id, parent).
    Children(Vec<(u64, u64)>),
    /// DDL.
    Statement(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Appends a value that is appended to this list only once.
    Append { key: u32, value: u64 },
    /// `None`: not known, as the transaction did not get there.
    Read { key: u32, list: Option<Vec<u64>> },
}

/// Many ids, mostly consecutive, and those that are there more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdSet {
    /// First and last of each run, ascending.
    pub runs: Vec<(u64, u64)>,
    pub repeated: Vec<u64>,
}

impl IdSet {
    /// From ids in ascending order.
    pub fn from_sorted(ids: impl IntoIterator<Item = u64>) -> IdSet {
        let mut set = IdSet::default();
        for id in ids {
            match set.runs.last_mut() {
                Some((_, last)) if *last == id => set.repeated.push(id),
                Some((_, last)) if *last + 1 == id => *last = id,
                _ => set.runs.push((id, id)),
            }
        }
        set
    }

    pub fn contains(&self, id: u64) -> bool {
        let after = self.runs.partition_point(|(first, _)| *first <= id);
        after > 0 && self.runs[after - 1].1 >= id
    }

    pub fn len(&self) -> u64 {
        self.runs.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.iter().flat_map(|(first, last)| *first..=*last)
    }
}

#[cfg(test)]
mod tests;
