//! What this node does about a write set that gives an error: it asks the group (see
//! [`quorate_certify::votes`], which decides) and stays, or finds itself alone with its result and
//! leaves.
//!
//! ```text
//!  an applier, a DDL's session ── error ──▶ fails(seqno) ──ballot──▶ log
//!      ▲  waits for the result, inside commit order                   │
//!      └────────────── Polls ◀─ sequencer: opened, decided ◀──────────┘
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
//! votes end soon; here an applier may be far behind. One that receives a state abstains at once. So does one to which
//! it comes late, if it is DDL: one that is more than [`BEHIND_MAX`] behind, or sends a state and cannot pass the seqno
//! before it is sent. DDL that fails everywhere is nothing unusual, and who issued it must not wait for the slowest. An
//! error over a transaction is unusual, and for that the slowest are waited for: else one member could have its way
//! with them. (Under [`Rule::Cast`] nobody is waited for who is late.) After [`PATIENCE`] the one who waits closes the
//! poll, if the others have said enough. That reminds those who have said nothing yet: one may have come to need a state
//! meanwhile, from the one who waits. If what has been said about a transaction is against the one who waits, it leaves
//! some time later. Who abstained complies with the result when it comes to it.
//!
//! Locks: that of the polls, under it commit order's (only to look how far it is) and that of the notes of
//! errors. Nothing is sent, and no order is waited for, while it is held.

mod polls;

pub use polls::Polls;

use self::polls::{Owed, Turn};
use crate::blocking;
use crate::host::Level;
use crate::link::{node_uuid, Link};
use crate::local::{Caused, Local, LocalState};
use crate::order::Event;
use crate::proposals::Proposals;
use crate::records::Records;
use crate::start::failed::Past;
use crate::withdraw::Withdrawal;
use quorate_certify::votes::{Answer, Ballot, Decision, Rule, SUCCESS};
use quorate_certify::{Class, Header, Kind, Sequenced, VoteAct, VoteMessage};
use quorate_consensus::MemberId;
use quorate_live::ViewMember;
use std::sync::Arc;
use std::time::Duration;

/// A node this many seqnos behind the one that is voted on is not waited for.
const BEHIND_MAX: i64 = 1024;
/// For so long a node with an error waits for the others' ballots.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of the error's text, for the others' error logs.
const TEXT_MAX: usize = 512;

/// How long the one with an error waits for those that are behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Patience {
    /// They abstain.
    Brief,
    /// Until they come to it.
    Long,
}

pub struct Votes {
    local: Arc<Local>,
    records: Arc<Records>,
    withdrawal: Arc<Withdrawal>,
    proposals: Arc<Proposals>,
    polls: Arc<Polls>,
}

impl Votes {
    pub fn new(
        local: Arc<Local>,
        records: Arc<Records>,
        withdrawal: Arc<Withdrawal>,
        proposals: Arc<Proposals>,
        polls: Arc<Polls>,
    ) -> Self {
        Self { local, records, withdrawal, proposals, polls }
    }

    pub fn begin_connection(&self) {
        self.polls.begin_connection();
    }

    /// The DDL of this seqno was not executed again after a restart: whatever its result, it stands here.
    pub fn excuse(&self, seqno: i64) {
        self.polls.excuse(seqno);
    }

    /// The write set of `seqno` gave an error here; this thread is inside commit order. Its origin has
    /// `committed` it, as far as that is known. Returns when the group has decided: true if this node is
    /// right and goes on.
    pub fn fails(&self, seqno: i64, error: &[u8], committed: bool) -> bool {
        let Some(link) = self.local.link() else { return false };
        if self.local.state() == LocalState::Error {
            return false;
        }
        let gtid = format!("{}:{seqno}", MemberId(link.history));
        let text = text_of(error);
        let digest = digest(link.history, seqno, error);
        let ballot = if committed { Ballot::Dissent(digest) } else { Ballot::Error(digest) };
        if let Err(e) = self.records.note_error(seqno, ballot) {
            self.withdrawal.inconsistent(&format!(
                "an error on {gtid} cannot be noted in the data directory ({e})"
            ));
            // The server may have stored this seqno as its position already, and nothing says what is missing.
            self.records.note_unusable();
            return false;
        }
        // Waiting here must not keep others waiting for what this node has passed.
        self.settle_below(&link, seqno);
        let line = format!("Error on {gtid} ({text}): asking the group whether it stands");
        self.local.caused(Caused::Errors, Level::Info, &line);
        let result = self.ask_group(&link, seqno, ballot, &text);
        match result {
            Some(result) if result == digest => {
                let line = format!("The error on {gtid} is the group's result: going on");
                self.local.caused(Caused::Errors, Level::Info, &line);
                true
            }
            Some(_) => {
                self.withdrawal
                    .inconsistent(&format!("Inconsistent by consensus on {gtid} ({text})"));
                self.records.note_unusable();
                false
            }
            None => {
                self.withdrawal.inconsistent(&format!(
                    "Could not reach consensus on {gtid} ({text}) before the connection was closed"
                ));
                false
            }
        }
    }

    /// Casts the ballot (again, where it may have been lost) until there is a result; `None` if
    /// the connection ends.
    fn ask_group(&self, link: &Link, seqno: i64, ballot: Ballot, text: &str) -> Option<u64> {
        self.polls.expect(seqno);
        let mut waited = false;
        loop {
            if !self.polls.has_result(seqno) {
                self.send(link, seqno, VoteAct::Cast(ballot), text);
                if waited {
                    self.say_awaited(link, seqno, self.polls.closes(seqno));
                    self.send(link, seqno, VoteAct::Close, "");
                }
            }
            let until = blocking::now() + PATIENCE;
            if let Ok(result) = self.polls.wait(seqno, until, || link.closing()) {
                return result;
            }
            waited = true;
        }
    }

    fn say_awaited(&self, link: &Link, seqno: i64, awaited: Vec<u128>) {
        let is_awaited = |m: &ViewMember| awaited.contains(&node_uuid(m.id, m.incarnation));
        let members = link.group.reachable().into_iter().filter(is_awaited);
        let names: Vec<_> = members.map(|member| member.name).collect();
        if !names.is_empty() {
            self.local.warn(&format!(
                "Still waiting for the votes on seqno {seqno}: nothing behind it is committed here. No vote yet of \
                 {}. A member votes once it has come to that seqno",
                names.join(", ")
            ));
        }
    }

    fn send(&self, link: &Link, seqno: i64, act: VoteAct, text: &str) {
        let policy = self.local.settings(|settings| settings.vote_policy);
        let message = VoteMessage { seqno, policy, act, text: text.to_string() };
        if let Err(e) = self.proposals.message(link, Kind::VOTE, &message.encode()) {
            self.local.warn(&format!(
                "A message of the vote on seqno {seqno} could not be sent to the group: {e}. Nothing behind that seqno is \
                 committed here before the vote has ended"
            ));
        }
    }

    /// A vote comes by in the log; `now`: the state after it, and the group's rule. On the sequencer's thread, which
    /// waits for nobody.
    pub fn sequenced(
        &self,
        link: &Link,
        header: &Header,
        message: &VoteMessage,
        answer: Answer,
        now: (&Sequenced, Rule),
    ) {
        let mine = header.origin == link.node;
        let (state, rule) = now;
        let is_ddl = state.certifier.class(message.seqno) == Some(Class::Toi);
        let patience = match is_ddl || rule == Rule::Cast {
            true => Patience::Brief,
            false => Patience::Long,
        };
        if message.act == VoteAct::Close
            && state.votes.awaited(message.seqno).any(|id| id == link.node)
            && self.local.may_be_caused(Caused::Reminders).is_some()
        {
            // What kept this node from answering may be such that the one who waits keeps it waiting.
            self.opened(link, message.seqno, patience);
        }
        match answer {
            Answer::Counted | Answer::InDoubt if mine && message.act == VoteAct::Close => {
                let awaited = state.votes.awaited(message.seqno).collect();
                self.polls.not_closed(message.seqno, answer == Answer::InDoubt, awaited);
            }
            Answer::Counted | Answer::InDoubt => {}
            Answer::Late(result) if mine => self.polls.late(message.seqno, result),
            Answer::Late(_) => {}
            Answer::Opened => {
                if !mine {
                    let line = format!(
                        "A member has an error on seqno {} ({}): a vote begins",
                        message.seqno,
                        text_of(message.text.as_bytes())
                    );
                    self.local.caused(Caused::Votes, Level::Info, &line);
                }
                self.opened(link, message.seqno, patience);
            }
            Answer::Decided(decision) => self.decided(&decision),
        }
    }

    fn opened(&self, link: &Link, seqno: i64, patience: Patience) {
        let transferring = !link.has_state() || self.local.state() == LocalState::Error;
        let mut at = -1;
        let past = || {
            at = self.local.commit.last_left();
            (at >= seqno && !transferring).then(|| self.records.past(seqno))
        };
        match self.polls.opened(seqno, past) {
            Turn::Awaited => {}
            Turn::Owes(owed) => self.pay(link, seqno, owed),
            Turn::Later { again } => {
                let is_late = || seqno - at > BEHIND_MAX || self.local.commit.holds_isolated(seqno);
                if transferring || (patience == Patience::Brief && is_late()) {
                    self.send(link, seqno, VoteAct::Cast(Ballot::Abstain), "");
                }
                if !again {
                    self.local.queue.push(Event::Vote { seqno });
                }
            }
        }
    }

    /// A poll has ended, by a ballot or by a view.
    pub fn decided(&self, decision: &Decision) {
        let Some(link) = self.local.link() else { return };
        let (winner, kind) = match decision.result {
            SUCCESS => ("success".to_string(), Caused::Votes),
            error => (format!("error {error:016x}"), Caused::Errors),
        };
        let seqno = decision.seqno;
        let line = format!(
            "Votes over {}:{seqno}: {}. Winner: {winner}",
            MemberId(link.history),
            decision.tally
        );
        self.local.caused(kind, Level::Info, &line);
        let past = || {
            let is_past = self.local.commit.last_left() >= seqno && link.has_state();
            is_past.then(|| self.records.past(seqno))
        };
        match self.polls.decided(seqno, decision.result, past) {
            Turn::Awaited => {}
            Turn::Owes(owed) => self.pay(&link, seqno, owed),
            Turn::Later { .. } => self.local.queue.push(Event::Vote { seqno }),
        }
    }

    /// On an applier thread: this node's turn, once it is past the seqno.
    pub fn due(&self, link: &Link, seqno: i64) {
        if self.withdrawal.in_order(self.local.commit.wait_left(seqno)).is_none() {
            return;
        }
        let owed = self.polls.passed(seqno, self.records.past(seqno));
        self.pay(link, seqno, owed);
    }

    fn settle_below(&self, link: &Link, seqno: i64) {
        let past = |seqno| self.records.past(seqno);
        while let Some((first, owed)) = self.polls.first_below(seqno, past) {
            self.pay(link, first, owed);
        }
    }

    fn pay(&self, link: &Link, seqno: i64, owed: Owed) {
        match owed {
            Owed::Nothing => {}
            // What a node on its way out passes, it does not apply.
            Owed::Ballot(_) if self.local.state() == LocalState::Error => {
                self.send(link, seqno, VoteAct::Cast(Ballot::Abstain), "");
            }
            Owed::Ballot(ballot) => self.send(link, seqno, VoteAct::Cast(ballot), ""),
            Owed::Leaving if link.needs_transfer() => {
                // Read in the log of a former run, before the server was told where it stands.
                self.records.note_unusable();
                self.local.info(&format!(
                    "While this node was away, the group decided that seqno {seqno} gives an error, which \
                     it did not give here: the node needs a state transfer"
                ));
            }
            Owed::Leaving => {
                if self.local.state() != LocalState::Error {
                    self.withdrawal.withdraw(&format!(
                        "Vote 0 (success) on {}:{seqno} is inconsistent with group. Leaving cluster.",
                        MemberId(link.history)
                    ));
                    self.records.note_unusable();
                }
            }
        }
    }

    /// Before this node goes on from `position` after a restart: an error there may have been
    /// waiting for its result. False if the group has another one.
    pub fn settles_last_error(&self, link: &Link, position: i64) -> bool {
        let Past::Error(ballot) = self.records.past(position) else { return true };
        self.ask_group(link, position, ballot, "met before the restart") == ballot.digest()
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
}
