//! Where a start continues: one decision over plain data.
//!
//! A database that has the group's history up to a seqno goes on from there: from the newest snapshot
//! that reaches no further, and then by the log, of which it passes over what it has. Any other
//! database takes the state of another node, and the log begins at its newest snapshot. But one that was
//! written by others is replaced only by a new member (who knows that it joins a group), and not if it
//! has seqnos that the group began without: then a sentence says what to do.
//!
//! Invariants:
//! - a start continues only if everything up to its seqno is known to be the group's, and the log goes
//!   on from there without a gap. The own log may end before that seqno: then the server is told of it only
//!   once a leader has committed more ([`check_confirmed`]);
//! - what was refused so stays refused, though the group goes on ([`super::refused`]);
//! - a snapshot counts only if the log has its term at its index.

use crate::settings::Words;
use crate::start::genesis::{Genesis, Standing};
use crate::start::grastate::Grastate;
use crate::start::refused::{Refused, NAME};
use crate::start::Position;
use quorate_consensus::{Index, LogPosition, MemberId, Term};
use std::path::PathBuf;

/// What is known of the database, and what its places are called.
#[derive(Clone, Debug)]
pub struct Database {
    pub saved: Option<Grastate>,
    /// What the server recovered from the database itself.
    pub recovered: Option<Position>,
    /// What the group has refused beside this log.
    pub refused: Option<Refused>,
    pub data_dir: PathBuf,
    pub log_dir: String,
    pub words: Words,
}

/// The group that the log is of.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    pub group: u128,
    pub genesis: Genesis,
    /// The log was empty when it was opened: this node is a new member, or founds.
    pub fresh: bool,
    /// The group was founded on this database just now.
    pub founded: bool,
}

/// Where the log can be begun: a snapshot, or its first entry (index 0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beginning {
    pub last: LogPosition,
    /// What the log has at that index; `None`: nothing.
    pub log_term: Option<Term>,
    /// The seqno that it stands for; `None`: it cannot be read.
    pub seqno: Option<i64>,
}

/// What a start comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// The database is at this seqno; the log begins after the snapshot of this index.
    Continue { seqno: i64, snapshot: Index },
    /// The state comes from another node; the log begins after the snapshot of this index.
    Fetch { snapshot: Index },
    /// What is wrong, and what to do.
    Refuse(String),
}

/// Whether a database that stands at `start`, and may have DDL up to `noted` (which is durable before its position
/// is), is the group's, as far as a place of the log shows that a leader has committed now: there the seqno is
/// `confirmed`, counted from the log alone. The node's own log may have ended before `start`, where a crash came before
/// its disk had what a majority had: so only this says that all of it is the group's, and not the node's own log. Else
/// what to do.
pub fn check_confirmed(start: i64, noted: Option<i64>, confirmed: i64) -> Result<(), String> {
    let reached = start.max(noted.unwrap_or(start));
    if confirmed > reached {
        return Ok(());
    }
    Err(format!(
        "this node's database is at seqno {reached}, but the group's log gives it its place at {confirmed}: \
         an older state of the logs was restored, or the database belongs to another past of the \
         group. Nothing was changed. Put back the log directories that belong to it; or empty its \
         data directory (keep a copy) to fetch the group's state. Until then, this node does not start"
    ))
}

impl Beginning {
    fn seqno_in_log(&self) -> Option<i64> {
        self.seqno.filter(|_| self.log_term == Some(self.last.term))
    }
}

pub fn resume(database: &Database, owner: &Owner, beginnings: &[Beginning]) -> Start {
    let standing = match database.check_ours(owner) {
        Ok(standing) => standing,
        Err(sentence) => return Start::Refuse(sentence),
    };
    let usable =
        beginnings.iter().filter_map(|each| each.seqno_in_log().map(|at| (each.last.index, at)));
    if let Standing::At(seqno) = standing {
        let covered = usable.clone().filter(|(_, at)| *at <= seqno).max();
        if let Some((snapshot, _)) = covered {
            return Start::Continue { seqno, snapshot };
        }
    }
    match usable.max() {
        Some((snapshot, _)) => Start::Fetch { snapshot },
        None => Start::Refuse(format!(
            "the log in {0} does not reach back to its first entry, and no snapshot there can be read \
             and fits it: this node cannot follow the group from it. Nothing was changed. Start the \
             version that wrote it, or empty {0} (keep a copy) and start the node again: it becomes a new \
             member, and takes the state of another one",
            database.log_dir
        )),
    }
}

impl Database {
    pub fn standing(&self, owner: &Owner) -> Standing {
        if owner.founded {
            return Standing::At(owner.genesis.seqno);
        }
        let start_position = self.words.start_position;
        owner.genesis.standing(owner.group, self.saved.as_ref(), self.recovered, start_position)
    }

    /// Refuses a log that is of another group than the database (one of the two was swapped), and
    /// a database that has what the group does not have: to replace it could lose the only copy.
    /// Gives back where any other stands.
    pub fn check_ours(&self, owner: &Owner) -> Result<Standing, String> {
        let (data, log, genesis) = (self.data_dir.display(), &self.log_dir, &owner.genesis);
        let standing = self.standing(owner);
        let text = match standing {
            Standing::OtherHistory(uuid) if !owner.fresh => format!(
                "the log directory {log} belongs to group {}, but the database in {data} to group \
                 {}: one of them is not this node's. Nothing was changed. Correct quorate.dir in \
                 {}, or, to make this node a new member, empty both (keep a copy)",
                MemberId(genesis.history),
                MemberId(uuid),
                self.words.options,
            ),
            Standing::WrittenByOthers(seqno) if seqno > genesis.seqno || !owner.fresh => format!(
                "the database in {data} is at seqno {seqno} of the group's own history, but was \
                 last written by another provider or group; this group went on from seqno {}. \
                 The two may have different transactions under the same numbers. Nothing was \
                 changed. To give up what only this node has and fetch the group's state, remove \
                 grastate.dat from {data} (keep a copy of the database). To go on with this \
                 database instead, stop all nodes, empty {log} and its like on each of them (keep copies), \
                 and begin the group on this node ({})",
                genesis.seqno, self.words.found,
            ),
            Standing::At(seqno) if self.was_refused(owner, seqno) => format!(
                "the database in {data} is at seqno {seqno}, and the group had not got there when this node \
                 last came: an older state of the logs was restored, or the database belongs to another \
                 past of the group. The group may have other transactions under the same numbers by now. \
                 Nothing was changed. Put back the log directories that belong to the database; or empty \
                 {data} (keep a copy) to fetch the group's state. If you know that the database is the \
                 group's nevertheless, remove the file {NAME} from {log}",
            ),
            _ => return Ok(standing),
        };
        Err(text)
    }

    fn was_refused(&self, owner: &Owner, seqno: i64) -> bool {
        let database = Position { uuid: owner.genesis.history, seqno };
        !owner.founded && self.refused.is_some_and(|refused| refused.is(database))
    }
}
