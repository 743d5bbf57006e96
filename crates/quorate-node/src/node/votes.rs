//! What this node does about a write set that gives an error: it asks the group (see
//! [`quorate_certify::votes`], which decides) and stays, or finds itself alone with its result and
//! leaves.
//!
//! ```text
//!  an applier, a DDL's session ── error ──▶ fails(seqno) ──ballot──▶ log
//!      ▲  waits for the result, inside commit order                   │
//!      └────────────── Desk ◀── sequencer: opened, decided ◀──────────┘
//!                        └─ others: success, as soon as they are past the seqno
//! ```
//!
//! Invariants:
//! - a node with an error at a seqno stays inside commit order there until the group has decided,
//!   so nothing that it commits comes after an undecided error, and "past the seqno" means success;
//! - only a node with an error waits. The others answer in passing, and go on meanwhile;
//! - the error is on disk (`failed`) before the question is asked, so a node that crashes, or is
//!   away while the group decides, knows when it reads the result whether it has it, too; if not,
//!   it takes a state transfer. One that crashed while it waited asks again before it goes on.
//!   (The server records the position of the failed write set just before it tells of the failure.
//!   A crash *between* these two calls, with InnoDB's redo log written in that very moment, is the
//!   one gap that the interface leaves);
//! - a node that finds itself in the minority takes the position out of `grastate.dat`, as Galera
//!   does: the next start fetches the state.
//!
//! How long others may be waited for. Galera's flow control keeps appliers close together, so its
//! votes end soon; here an applier may be far behind. One that is more than [`BEHIND_MAX`] behind,
//! or sends or receives a state, abstains at once, and after [`PATIENCE`] the one who waits closes the
//! poll. Both comply with the result when they come to it.

use super::{LocalState, Node};
use crate::blocking::{self, Condvar, Mutex};
use crate::link::Link;
use crate::order::queue::Event;
use crate::start::failed::Past;
use quorate_certify::votes::{Answer, Ballot, Decision, SUCCESS};
use quorate_certify::{Header, Kind, VoteAct, VoteMessage};
use quorate_consensus::MemberId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A node this many seqnos behind the one that is voted on is not waited for.
const BEHIND_MAX: i64 = 1024;
/// For so long a node with an error waits for the others' ballots.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of the error's text, for the others' error logs.
const TEXT_MAX: usize = 512;

/// What this node knows of the votes that concern it.
pub struct Desk {
    inner: Mutex<DeskInner>,
    changed: Condvar,
}

#[derive(Default)]
struct DeskInner {
    /// Errors met here, whose results are waited for.
    failed: BTreeSet<i64>,
    /// Votes that came up before this node was past their seqno.
    ahead: BTreeSet<i64>,
    /// Results that `failed` or `ahead` are for.
    results: BTreeMap<i64, u64>,
    /// DDL that was not executed again after a restart: whatever its result, it stands here.
    excused: BTreeSet<i64>,
}

impl Desk {
    pub fn new() -> Self {
        Self { inner: Mutex::default(), changed: Condvar::new() }
    }

    pub fn begin_connection(&self) {
        *self.inner.lock() = DeskInner::default();
    }

    pub fn wake(&self) {
        let _inner = self.inner.lock();
        self.changed.notify_all();
    }

    pub fn excuse(&self, seqno: i64) {
        self.inner.lock().excused.insert(seqno);
    }
}

/// What a node past a seqno owes the vote on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owed {
    Nothing,
    Ballot(Ballot),
    /// It succeeded here, and an error won.
    Leaving,
}

impl DeskInner {
    /// This node is past `seqno`, and did not fail there unless it says so in `failed`.
    fn passed(&mut self, seqno: i64, past: Past) -> Owed {
        if !self.ahead.remove(&seqno) || self.failed.contains(&seqno) {
            return Owed::Nothing;
        }
        let excused = self.excused.contains(&seqno);
        match (self.results.remove(&seqno), past) {
            (None, Past::Error(digest)) => Owed::Ballot(Ballot::Error(digest)),
            (None, _) if excused => Owed::Ballot(Ballot::Abstain),
            (None, Past::Success | Past::Settled) => Owed::Ballot(Ballot::Success),
            (Some(result), Past::Error(mine)) if result != mine => Owed::Leaving,
            (Some(SUCCESS), _) | (Some(_), Past::Error(_) | Past::Settled) => Owed::Nothing,
            (Some(_), Past::Success) if excused => Owed::Nothing,
            (Some(_), Past::Success) => Owed::Leaving,
        }
    }
}

impl Node {
    /// The write set of `seqno` gave an error here; this thread is inside commit order. Returns
    /// when the group has decided: true if this node is right and goes on.
    pub fn fails(&self, seqno: i64, error: &[u8]) -> bool {
        let Some(link) = self.link() else { return false };
        if self.local_state() == LocalState::Error {
            return false;
        }
        let gtid = format!("{}:{seqno}", MemberId(link.history));
        let text = text_of(error);
        let digest = digest(link.history, seqno, error);
        if let Err(e) = self.failed.note(seqno, digest) {
            self.inconsistent(&format!(
                "an error on {gtid} cannot be noted in the data directory ({e})"
            ));
            return false;
        }
        // Waiting here must not keep others waiting for what this node has passed.
        self.settle_below(&link, seqno);
        self.info(&format!("Error on {gtid} ({text}): asking the group whether it stands"));
        let result = self.ask_group(&link, seqno, digest, &text);
        match result {
            Some(result) if result == digest => {
                self.info(&format!("The error on {gtid} is the group's result: going on"));
                true
            }
            Some(_) => {
                self.inconsistent(&format!("Inconsistent by consensus on {gtid} ({text})"));
                self.record_unusable();
                false
            }
            None => {
                self.inconsistent(&format!(
                    "Could not reach consensus on {gtid} ({text}) before the connection was closed"
                ));
                false
            }
        }
    }

    /// Casts the ballot (again, where it may have been lost) until there is a result; `None` if
    /// the connection ends.
    fn ask_group(&self, link: &Link, seqno: i64, digest: u64, text: &str) -> Option<u64> {
        let ballot = VoteAct::Cast(Ballot::Error(digest));
        self.desk.inner.lock().failed.insert(seqno);
        let mut waited = false;
        loop {
            let known = self.desk.inner.lock().results.contains_key(&seqno);
            if !known {
                self.send_vote(link, seqno, ballot, text);
                if waited {
                    self.send_vote(link, seqno, VoteAct::Close, "");
                }
            }
            let until = blocking::now() + PATIENCE;
            let mut inner = self.desk.inner.lock();
            while !inner.results.contains_key(&seqno)
                && !link.closing()
                && !self.desk.changed.wait_until(&mut inner, until).timed_out()
            {}
            if inner.results.contains_key(&seqno) || link.closing() {
                inner.failed.remove(&seqno);
                inner.ahead.remove(&seqno);
                return inner.results.remove(&seqno);
            }
            waited = true;
        }
    }

    fn send_vote(&self, link: &Link, seqno: i64, act: VoteAct, text: &str) {
        let policy = self.settings.lock().vote_policy;
        let message = VoteMessage { seqno, policy, act, text: text.to_string() };
        if let Err(e) = self.propose_small(link, Kind::VOTE, &message.encode()) {
            self.warn(&e);
        }
    }

    /// A vote comes by in the log. On the sequencer's thread, which waits for nobody.
    pub fn vote_sequenced(
        &self,
        link: &Link,
        header: &Header,
        message: &VoteMessage,
        answer: Answer,
    ) {
        let mine = header.origin == link.node;
        match answer {
            Answer::Counted => {}
            Answer::Late(result) if mine => {
                let mut inner = self.desk.inner.lock();
                if inner.failed.contains(&message.seqno) {
                    inner.results.insert(message.seqno, result);
                    self.desk.changed.notify_all();
                }
            }
            Answer::Late(_) => {}
            Answer::Opened => {
                if !mine {
                    self.info(&format!(
                        "A member has an error on seqno {} ({}): a vote begins",
                        message.seqno, message.text
                    ));
                }
                self.vote_opened(link, message.seqno);
            }
            Answer::Decided(decision) => self.vote_decided(&decision),
        }
    }

    fn vote_opened(&self, link: &Link, seqno: i64) {
        let transferring = link.start().is_none()
            && matches!(self.local_state(), LocalState::Undefined | LocalState::Joiner);
        let mut inner = self.desk.inner.lock();
        if inner.failed.contains(&seqno) {
            return;
        }
        inner.ahead.insert(seqno);
        let at = self.commit.last_left();
        if at >= seqno && !transferring {
            let owed = inner.passed(seqno, self.failed.past(seqno));
            drop(inner);
            return self.pay(link, seqno, owed);
        }
        drop(inner);
        let held = self.commit.holds_isolated(seqno);
        if transferring || held || seqno - at > BEHIND_MAX {
            self.send_vote(link, seqno, VoteAct::Cast(Ballot::Abstain), "");
        }
        self.queue.push(Event::Vote { seqno });
    }

    /// A poll has ended, by a ballot or by a view.
    pub fn vote_decided(&self, decision: &Decision) {
        let Some(link) = self.link() else { return };
        let winner = match decision.result {
            SUCCESS => "success".to_string(),
            error => format!("error {error:016x}"),
        };
        self.info(&format!(
            "Votes over {}:{}: {}. Winner: {winner}",
            MemberId(link.history),
            decision.seqno,
            decision.tally
        ));
        let mut inner = self.desk.inner.lock();
        let concerns =
            inner.failed.contains(&decision.seqno) || inner.ahead.contains(&decision.seqno);
        if concerns {
            inner.results.insert(decision.seqno, decision.result);
            self.desk.changed.notify_all();
            return;
        }
        inner.ahead.insert(decision.seqno);
        inner.results.insert(decision.seqno, decision.result);
        if self.commit.last_left() < decision.seqno || link.start().is_none() {
            // The poll opened and closed with one ballot, before this node came to it.
            drop(inner);
            self.queue.push(Event::Vote { seqno: decision.seqno });
            return;
        }
        let owed = inner.passed(decision.seqno, self.failed.past(decision.seqno));
        drop(inner);
        self.pay(&link, decision.seqno, owed);
    }

    /// On an applier thread: this node's turn, once it is past the seqno.
    pub fn vote_due(&self, link: &Link, seqno: i64) {
        if self.in_order(self.commit.wait_left(seqno)).is_none() {
            return;
        }
        let owed = self.desk.inner.lock().passed(seqno, self.failed.past(seqno));
        self.pay(link, seqno, owed);
    }

    fn settle_below(&self, link: &Link, seqno: i64) {
        loop {
            let mut inner = self.desk.inner.lock();
            let Some(first) = inner.ahead.first().copied().filter(|s| *s < seqno) else { return };
            let owed = inner.passed(first, self.failed.past(first));
            drop(inner);
            self.pay(link, first, owed);
        }
    }

    fn pay(&self, link: &Link, seqno: i64, owed: Owed) {
        match owed {
            Owed::Nothing => {}
            // What a node on its way out passes, it does not apply.
            Owed::Ballot(_) if self.local_state() == LocalState::Error => {
                self.send_vote(link, seqno, VoteAct::Cast(Ballot::Abstain), "");
            }
            Owed::Ballot(ballot) => self.send_vote(link, seqno, VoteAct::Cast(ballot), ""),
            Owed::Leaving if link.needs_transfer() => {
                // Read in the log of a former run, before the server was told where it stands.
                self.record_unusable();
                self.info(&format!(
                    "While this node was away, the group decided that seqno {seqno} gives an error, which \
                     it did not give here: the node needs a state transfer"
                ));
            }
            Owed::Leaving => {
                if self.local_state() != LocalState::Error {
                    self.withdraw(&format!(
                        "Vote 0 (success) on {}:{seqno} is inconsistent with group. Leaving cluster.",
                        MemberId(link.history)
                    ));
                    self.record_unusable();
                }
            }
        }
    }

    /// Takes the result of keeping the notes of errors.
    pub fn errors_noted(&self, result: std::io::Result<()>) {
        if let Err(e) = result {
            self.warn(&format!(
                "The notes of errors in the data directory cannot be kept ({e}): should this node be away \
                 while the group votes, it may have to fetch the state anew"
            ));
        }
    }

    /// Before this node goes on from `position` after a restart: an error there may have been
    /// waiting for its result. False if the group has another one.
    pub fn settles_last_error(&self, link: &Link, position: i64) -> bool {
        let Past::Error(digest) = self.failed.past(position) else { return true };
        self.ask_group(link, position, digest, "met before the restart") == Some(digest)
    }
}

/// The same on all members that met the same error at the same place.
fn digest(history: u128, seqno: i64, error: &[u8]) -> u64 {
    let mut hash = crate::fnv::Fnv::default();
    hash.bytes(&history.to_le_bytes());
    hash.bytes(&seqno.to_le_bytes());
    hash.bytes(error);
    hash.value().max(SUCCESS + 1)
}

fn text_of(error: &[u8]) -> String {
    let text = String::from_utf8_lossy(&error[..error.len().min(TEXT_MAX)]);
    text.trim_end_matches('\0').replace(['\0', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_elsewhere_has_another_digest() {
        assert_ne!(digest(1, 5, b"1062;"), digest(1, 6, b"1062;"));
        assert_ne!(digest(1, 5, b"1062;"), digest(1, 5, b"1050;"));
        assert_eq!(digest(1, 5, b"1062;"), digest(1, 5, b"1062;"));
    }

    #[test]
    fn whoever_is_past_owes_success_once_and_leaves_where_an_error_won() {
        let mut desk = DeskInner::default();
        assert_eq!(desk.passed(5, Past::Success), Owed::Nothing, "nobody asked");
        desk.ahead.insert(5);
        assert_eq!(desk.passed(5, Past::Success), Owed::Ballot(Ballot::Success));
        assert_eq!(desk.passed(5, Past::Success), Owed::Nothing);
        desk.ahead.insert(6);
        desk.results.insert(6, 9);
        assert_eq!(desk.passed(6, Past::Success), Owed::Leaving);
        desk.ahead.insert(7);
        desk.results.insert(7, SUCCESS);
        assert_eq!(desk.passed(7, Past::Success), Owed::Nothing);
        assert!(desk.results.is_empty());
        for (past, owed) in [
            (Past::Settled, Owed::Nothing),
            (Past::Error(9), Owed::Nothing),
            (Past::Error(8), Owed::Leaving),
        ] {
            desk.ahead.insert(8);
            desk.results.insert(8, 9);
            assert_eq!(desk.passed(8, past), owed, "known from before a restart: {past:?}");
        }
    }

    #[test]
    fn a_ddl_that_was_not_repeated_goes_with_any_result() {
        let mut desk = DeskInner::default();
        desk.excused.insert(5);
        desk.ahead.insert(5);
        assert_eq!(desk.passed(5, Past::Success), Owed::Ballot(Ballot::Abstain));
        desk.ahead.insert(5);
        desk.results.insert(5, 9);
        assert_eq!(desk.passed(5, Past::Success), Owed::Nothing);
    }
}
