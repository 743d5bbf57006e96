//! Votes on errors: whether a write set that failed on some members counts as failed or as done.
//!
//! A member on which a write set gives an error proposes a ballot with a digest of the error; the
//! others answer with how it went for them. Who finds itself with another result than the winning
//! one has other data than the group from there on, and leaves it. As in Galera, success wins
//! ties, and a result is final as soon as the missing ballots cannot change it.
//!
//! Invariants:
//! - everything here is a function of the log: views and ballots, in log order. All members have
//!   the same polls, the same voters in each and the same results;
//! - a poll ends once: a result is kept, and a late ballot gets that result for an answer. Where
//!   results were forgotten (there are [`RESULTS_MAX`]) the answer is success: a member that was
//!   away for so long and fails takes the state anew, which is always safe;
//! - voters are those in the view when the poll opens, without those who leave it afterwards, so
//!   a poll waits for living members only. Who joined after the write set may vote: a poll is open
//!   for an undecided seqno only, and there, whoever is past it has applied it successfully
//!   (itself, or its donor has), because a failure holds its member at the seqno until the result;
//! - where the origin of the write set has committed it, one success counts, though nobody may be left to say
//!   so: a single member with an error cannot undo what was acknowledged, not even while it is alone with
//!   members that have no data. It leaves, and whoever has it right goes on when it is back;
//! - under [`Rule::Majority`] it is hard for one member alone to make others leave: only who is in the view opens polls
//!   and votes; that the origin has committed something counts only where the log says that it may have (see
//!   [`Certifier::may_be_committed`](crate::Certifier::may_be_committed)), and where the log does not know any more,
//!   a single error does not win; a policy counts only as long as all who vote name the same; and only who has met an
//!   error closes a poll, with what most of those have said that do not abstain. Else it goes on waiting, or leaves
//!   ([`Answer::InDoubt`]), which costs nobody else anything;
//! - under it, too, at most [`OPEN_MAX`] polls are open. Who waits for one that is dropped asks again;
//! - a success never opens a poll, so no polls cost nothing.

use crate::Seqno;
use bytes::{Buf, BufMut};
use std::collections::{BTreeMap, BTreeSet};

/// Results kept for late voters.
const RESULTS_MAX: usize = 16384;

/// Polls that are open at a time, under [`Rule::Majority`]; each member waits for one.
const OPEN_MAX: usize = 1024;

/// Digest of "no error".
pub const SUCCESS: u64 = 0;

/// Stands among the voters for the origin of the write set, which has committed it, whatever became of it.
const ORIGIN: u128 = 0;

/// What it takes for an error to win.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rule {
    /// As the first release has it: of a poll that was closed, most of the ballots that were cast.
    Cast,
    #[default]
    Majority,
}

/// The policy of the voter (Galera's `gcs.vote_policy`), and the rule of the group.
pub type How = (u8, Rule);

/// What one member has to say on one seqno.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ballot {
    Success,
    /// Never [`SUCCESS`].
    Error(u64),
    /// Decide without me: I comply.
    Abstain,
    /// As [`Ballot::Error`], over a write set that its origin has committed: no DDL, and not its own.
    Dissent(u64),
}

impl Ballot {
    /// `None`: it abstains.
    pub fn digest(self) -> Option<u64> {
        match self {
            Ballot::Success => Some(SUCCESS),
            Ballot::Error(digest) | Ballot::Dissent(digest) => Some(digest),
            Ballot::Abstain => None,
        }
    }

    fn is_error(self) -> bool {
        matches!(self, Ballot::Error(_) | Ballot::Dissent(_))
    }

    /// As log entries and snapshots have it; `None` stands for no ballot.
    pub(crate) fn put(ballot: Option<Ballot>, out: &mut Vec<u8>) {
        let (kind, digest) = match ballot {
            None => (0, 0),
            Some(Ballot::Abstain) => (1, 0),
            Some(Ballot::Success) => (2, SUCCESS),
            Some(Ballot::Error(digest)) => (2, digest),
            Some(Ballot::Dissent(digest)) => (3, digest),
        };
        out.put_u8(kind);
        out.put_u64_le(digest);
    }

    /// What [`put`](Self::put) wrote; the outer `None` if it did not write this.
    pub(crate) fn take(input: &mut &[u8]) -> Option<Option<Ballot>> {
        match (input.try_get_u8().ok()?, input.try_get_u64_le().ok()?) {
            (0, _) => Some(None),
            (1, _) => Some(Some(Ballot::Abstain)),
            (2, SUCCESS) => Some(Some(Ballot::Success)),
            (2, digest) => Some(Some(Ballot::Error(digest))),
            (3, digest) if digest != SUCCESS => Some(Some(Ballot::Dissent(digest))),
            _ => None,
        }
    }
}

/// A poll that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    pub seqno: Seqno,
    /// The digest that won; [`SUCCESS`] if success did.
    pub result: u64,
    /// How many said what, for the error log.
    pub tally: String,
}

/// What a ballot led to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Counted (or of no consequence); nothing has ended.
    Counted,
    /// Not closed: too few have said how it went. As far as that goes, or by what the origin may have committed, the
    /// one who waits is wrong.
    InDoubt,
    /// The first error on this seqno: everybody else is to vote, too.
    Opened,
    Decided(Decision),
    /// It was decided before; this concerns only the one who voted.
    Late(u64),
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Poll {
    /// So many successes win at once (Galera's `gcs.vote_policy`, as the first voter has it);
    /// 0: the majority, also where others have another one and the rule is [`Rule::Majority`].
    policy: u8,
    voters: BTreeSet<u128>,
    cast: BTreeMap<u128, Ballot>,
}

/// The state of all votes after some prefix of the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Votes {
    view: BTreeSet<u128>,
    open: BTreeMap<Seqno, Poll>,
    results: BTreeMap<Seqno, u64>,
    /// Results up to here are forgotten.
    forgotten: Seqno,
}

impl Votes {
    /// A new view: who is not in it votes no more. Polls may end by that.
    pub fn view(&mut self, members: impl Iterator<Item = u128>) -> Vec<Decision> {
        self.view = members.collect();
        let view = &self.view;
        for poll in self.open.values_mut() {
            poll.voters.retain(|voter| *voter == ORIGIN || view.contains(voter));
            poll.cast.retain(|voter, _| *voter == ORIGIN || view.contains(voter));
        }
        // Nobody is left who knows how it went: a question for later, when such a one asks it again.
        let knows =
            |(voter, ballot): (&u128, &Ballot)| *voter != ORIGIN && *ballot != Ballot::Abstain;
        self.open.retain(|_, poll| poll.cast.iter().any(knows));
        let ended: Vec<_> =
            self.open.iter().filter_map(|(s, poll)| poll.count(*s, false)).collect();
        ended.iter().for_each(|decision| self.keep(decision));
        ended
    }

    /// A ballot, as it comes by in the log.
    pub fn cast(&mut self, seqno: Seqno, voter: u128, ballot: Ballot, how: How) -> Answer {
        self.take_in(seqno, voter, ballot, how, matches!(ballot, Ballot::Dissent(_)))
    }

    /// A [`Ballot::Dissent`] over what nobody knows any more: whether there was an origin that has committed it is only
    /// said. See [`Poll::is_doubtful`].
    pub fn cast_in_doubt(&mut self, seqno: Seqno, voter: u128, ballot: Ballot, how: How) -> Answer {
        self.take_in(seqno, voter, ballot, how, false)
    }

    fn take_in(
        &mut self,
        seqno: Seqno,
        voter: u128,
        ballot: Ballot,
        (policy, rule): How,
        has_origin: bool,
    ) -> Answer {
        if let Some(result) = self.result(seqno) {
            return Answer::Late(result);
        }
        if rule == Rule::Majority && !self.view.contains(&voter) {
            // It casts again, as long as it has no result: once its view has come it counts.
            return Answer::Counted;
        }
        let opens = ballot.is_error() && !self.open.contains_key(&seqno);
        if opens {
            while rule == Rule::Majority && self.open.len() >= OPEN_MAX {
                self.drop_poll();
            }
            let voters = self.view.iter().copied().chain([voter]).collect();
            self.open.insert(seqno, Poll { policy, voters, cast: BTreeMap::new() });
        }
        let Some(poll) = self.open.get_mut(&seqno) else { return Answer::Counted };
        if poll.voters.contains(&voter) {
            poll.cast.entry(voter).or_insert(ballot);
            if rule == Rule::Majority && poll.policy != policy {
                poll.policy = 0;
            }
            if has_origin {
                poll.voters.insert(ORIGIN);
                poll.cast.insert(ORIGIN, Ballot::Success);
            }
        }
        match poll.count(seqno, false) {
            Some(decision) => {
                self.keep(&decision);
                Answer::Decided(decision)
            }
            None if opens => Answer::Opened,
            None => Answer::Counted,
        }
    }

    /// Makes room for another poll. A member that waits for a result has one error; those of one with several go first.
    fn drop_poll(&mut self) {
        let mut errors = BTreeMap::new();
        for voter in self.open.values().flat_map(Poll::with_error) {
            *errors.entry(voter).or_insert(0usize) += 1;
        }
        let is_waited_for = |poll: &Poll| poll.with_error().any(|voter| errors[&voter] == 1);
        let other = self.open.iter().find(|(_, poll)| !is_waited_for(poll));
        if let Some(seqno) = other.or_else(|| self.open.iter().next()).map(|(seqno, _)| *seqno) {
            self.open.remove(&seqno);
        }
    }

    /// Who has said nothing yet in the poll on `seqno`, if it is open.
    pub fn awaited(&self, seqno: Seqno) -> impl Iterator<Item = u128> + '_ {
        self.open.get(&seqno).into_iter().flat_map(|poll| {
            poll.voters.iter().filter(|voter| !poll.cast.contains_key(voter)).copied()
        })
    }

    /// Somebody who has voted waited for long enough: those who have not are not waited for.
    pub fn close(&mut self, seqno: Seqno, voter: u128, rule: Rule) -> Answer {
        if let Some(result) = self.result(seqno) {
            return Answer::Late(result);
        }
        let Some(poll) = self.open.get(&seqno) else { return Answer::Counted };
        // Who has no error waits for nothing.
        let may_close = |ballot: &Ballot| rule == Rule::Cast || ballot.is_error();
        if !poll.cast.get(&voter).is_some_and(may_close) {
            return Answer::Counted;
        }
        match poll.count(seqno, true) {
            Some(decision) if rule == Rule::Cast || poll.has_majority(decision.result) => {
                self.keep(&decision);
                Answer::Decided(decision)
            }
            Some(Decision { result: SUCCESS, .. }) => Answer::InDoubt,
            _ => Answer::Counted,
        }
    }

    fn result(&self, seqno: Seqno) -> Option<u64> {
        let forgotten = (seqno <= self.forgotten).then_some(SUCCESS);
        self.results.get(&seqno).copied().or(forgotten)
    }

    fn keep(&mut self, decision: &Decision) {
        self.open.remove(&decision.seqno);
        self.results.insert(decision.seqno, decision.result);
        if self.results.len() > RESULTS_MAX {
            if let Some((seqno, _)) = self.results.pop_first() {
                self.forgotten = seqno;
            }
        }
    }

    /// Equal states give equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_i64_le(self.forgotten);
        out.put_u32_le(self.view.len() as u32);
        self.view.iter().for_each(|m| out.put_u128_le(*m));
        out.put_u32_le(self.results.len() as u32);
        for (seqno, result) in &self.results {
            out.put_i64_le(*seqno);
            out.put_u64_le(*result);
        }
        out.put_u32_le(self.open.len() as u32);
        for (seqno, poll) in &self.open {
            out.put_i64_le(*seqno);
            out.put_u8(poll.policy);
            out.put_u32_le(poll.voters.len() as u32);
            for voter in &poll.voters {
                out.put_u128_le(*voter);
                Ballot::put(poll.cast.get(voter).copied(), &mut out);
            }
        }
        out
    }

    /// What [`encode`](Self::encode) wrote; `None` if it did not write this.
    pub fn decode(mut bytes: &[u8]) -> Option<Votes> {
        let input = &mut bytes;
        let mut votes = Votes { forgotten: input.try_get_i64_le().ok()?, ..Votes::default() };
        for _ in 0..input.try_get_u32_le().ok()? {
            votes.view.insert(input.try_get_u128_le().ok()?);
        }
        for _ in 0..input.try_get_u32_le().ok()? {
            let seqno = input.try_get_i64_le().ok()?;
            votes.results.insert(seqno, input.try_get_u64_le().ok()?);
        }
        for _ in 0..input.try_get_u32_le().ok()? {
            let seqno = input.try_get_i64_le().ok()?;
            let mut poll = Poll { policy: input.try_get_u8().ok()?, ..Poll::default() };
            for _ in 0..input.try_get_u32_le().ok()? {
                let voter = input.try_get_u128_le().ok()?;
                poll.voters.insert(voter);
                if let Some(ballot) = Ballot::take(input)? {
                    poll.cast.insert(voter, ballot);
                }
            }
            votes.open.insert(seqno, poll);
        }
        input.is_empty().then_some(votes)
    }
}

impl Poll {
    fn with_error(&self) -> impl Iterator<Item = u128> + '_ {
        self.cast.iter().filter(|(_, ballot)| ballot.is_error()).map(|(voter, _)| *voter)
    }

    /// The result, if it can be told. `final_call`: what is missing will not come.
    fn count(&self, seqno: Seqno, final_call: bool) -> Option<Decision> {
        let mut counts = BTreeMap::new();
        let members = self.cast.iter().filter(|(voter, _)| **voter != ORIGIN);
        for digest in members.filter_map(|(_, ballot)| ballot.digest()) {
            *counts.entry(digest).or_insert(0usize) += 1;
        }
        let missing = if final_call { 0 } else { self.voters.len() - self.cast.len() };
        let said = counts.get(&SUCCESS).copied().unwrap_or(0);
        // The origin may be one of those who said so, or will.
        let least = usize::from(self.cast.contains_key(&ORIGIN));
        let (successes, possible) = (said.max(least), (said + missing).max(least));
        if successes > 0 {
            counts.insert(SUCCESS, successes);
        }
        let (mut first, mut second, mut leader) = (0, 0, SUCCESS);
        for (digest, count) in &counts {
            // The greatest digest wins among equals; which one is no matter, but the same everywhere.
            if *count >= first {
                (second, first, leader) = (first, *count, *digest);
            } else {
                second = second.max(*count);
            }
        }
        let policy = usize::from(self.policy);
        let result = if policy > 0 && successes >= policy {
            SUCCESS
        } else if policy > 0 && possible >= policy {
            return None;
        } else if successes >= first && successes >= second + missing {
            SUCCESS
        } else if successes < first
            // No other error may overtake, and success may not even draw level.
            && first >= second + missing
            && first > possible
        {
            leader
        } else if missing == 0 {
            if successes >= first {
                SUCCESS
            } else {
                leader
            }
        } else {
            return None;
        };
        let result = match self.is_doubtful() {
            // Nobody else has met it, or had success: as if the origin had committed it.
            true if counts.get(&result) == Some(&1) => SUCCESS,
            _ => result,
        };
        Some(Decision { seqno, result, tally: self.tally(&counts, missing) })
    }

    /// Somebody dissents, and nobody knows whether there was an origin that has committed it. Then a single member with
    /// an error does not win, and the origin does not count as a success that others would have to go by.
    fn is_doubtful(&self) -> bool {
        let dissents = self.cast.values().any(|ballot| matches!(ballot, Ballot::Dissent(_)));
        dissents && !self.cast.contains_key(&ORIGIN)
    }

    /// Whether most of the members that do not abstain have said that this is what they have met.
    fn has_majority(&self, result: u64) -> bool {
        let said = |wanted: Option<u64>| {
            let members = self.cast.iter().filter(|(voter, _)| **voter != ORIGIN);
            members.filter(|(_, ballot)| ballot.digest() == wanted).count()
        };
        let members = self.voters.iter().filter(|voter| **voter != ORIGIN).count();
        2 * said(Some(result)) > members - said(None)
    }

    fn tally(&self, counts: &BTreeMap<u64, usize>, missing: usize) -> String {
        let mut parts: Vec<String> = counts
            .iter()
            .map(|(digest, count)| match *digest {
                SUCCESS => format!("success: {count}"),
                error => format!("error {error:016x}: {count}"),
            })
            .collect();
        let abstained = self.cast.values().filter(|b| **b == Ballot::Abstain).count();
        for (what, count) in [("abstained", abstained), ("not waited for", missing)] {
            if count > 0 {
                parts.push(format!("{what}: {count}"));
            }
        }
        let voters = self.voters.iter().filter(|voter| **voter != ORIGIN).count();
        format!("{} of {voters} voters", parts.join(", "))
    }
}

#[cfg(test)]
mod tests;
