//! The layer between the group's log and the server: each committed entry gets its seqno and its
//! verdict here, in log order, by one thread at a time.
//!
//! Invariants:
//! - everything that decides a seqno or a verdict comes from the log (the [`Certifier`]), so all
//!   members agree; what is local (who waits, where this database stands) only decides whom to tell;
//! - `progress.seqno` is published before the fate or the event that carries that seqno;
//! - that thread waits for nobody: not for appliers, not for clients, not for memory. With what is brief
//!   ([`StateMachine::is_brief`]) it also waits for no disk, and writes no line: it may be one that has to hear the others;
//! - what is sequenced for a connection comes before its end in the queue, so all of it is applied: a
//!   connection ends between two entries ([`Link::ended`]), and none has an effect here after that.

use crate::backlog::{Backlog, Finding};
use crate::delivered::delivered_flags;
use crate::fate::trx::Fate;
use crate::host::Level;
use crate::link::giving_up::is_last_fragment;
use crate::link::{process_ids, Link};
use crate::local::{Caused, Local, LocalState};
use crate::order::{Event, Place, WriteSetEvent, DUMMY};
use crate::proposals::Proposals;
use crate::rehearsal::Rehearsed;
use crate::transfer::Transfer;
use crate::votes::Votes;
use crate::withdraw::Withdrawal;
use bytes::Bytes;
use quorate_certify::{
    flags, votes::Answer, Kind, Limits, Outcome, Places, Rules, Sequenced, Sequencing, Verdict,
    VoteMessage, WriteSet,
};
use quorate_consensus::{level::VOTES_BY_MAJORITY, MemberId};
use quorate_live::{Committed, Frozen, KeptLog, Rehearsal, StateMachine, View};
use std::sync::Arc;
use std::time::Duration;

/// Whom the sequencer tells what the log says.
#[derive(Clone)]
pub struct Parts {
    pub local: Arc<Local>,
    pub withdrawal: Arc<Withdrawal>,
    pub proposals: Arc<Proposals>,
    pub votes: Arc<Votes>,
    pub transfer: Arc<Transfer>,
}

pub struct Sequencer {
    parts: Parts,
    link: Arc<Link>,
    state: Sequenced,
    /// Seqnos up to here are in the database already: only the index needs them.
    start: i64,
    /// What this database may have in it: DDL is durable there before its position is. -1: it is to be replaced.
    database: i64,
    limits: Limits,
    /// From this index on, all is for this node's next start: its connection has ended, or it took leave
    /// and this is the view without it, or the last fragment of a session that did not wait for it any
    /// longer. The server's position is the last one that it saw as a member. Nothing is begun that would
    /// wait for what is behind that: no vote on it, no sending of a state with it.
    left: Option<u64>,
    /// What that start may need of the log from before there: parts of transactions that were open.
    left_open: u64,
    /// The last entry before a snapshot that others sent, or this node kept, while parts up to there belong to
    /// transactions that are open.
    headless_upto: Option<u64>,
    backlog: Backlog,
}

impl Sequencer {
    /// `noted`: the last isolated action that may be in the database.
    pub fn new(parts: Parts, link: Arc<Link>, limits: Limits, noted: Option<i64>) -> Self {
        let start = link.start().unwrap_or(-1);
        let database = link.start().max(noted.filter(|_| start >= 0)).unwrap_or(-1);
        let state = Sequenced::beginning(limits, link.genesis.seqno);
        let (left, left_open, headless_upto, backlog) = (None, u64::MAX, None, Backlog::default());
        Self {
            parts,
            link,
            state,
            start,
            database,
            limits,
            left,
            left_open,
            headless_upto,
            backlog,
        }
    }

    /// All from `index` on is for the next start.
    fn leave_at(&mut self, index: u64) {
        if self.left.is_none() {
            self.left = Some(index);
            self.left_open = self.state.parts.first_index().unwrap_or(u64::MAX);
        }
    }

    /// Tells the joiner, which would fetch a state that ends before these do and could not go on from it.
    fn note_headless(&mut self, upto: Option<u64>) {
        let open = self.state.parts.first_index();
        let headless_upto = upto.filter(|upto| open.is_some_and(|first| first <= *upto));
        if headless_upto != self.headless_upto {
            self.headless_upto = headless_upto;
            self.link.progress.set_headless(headless_upto.is_some());
        }
    }

    fn data(&mut self, index: u64, data: Bytes, rules: Rules) -> Result<(), String> {
        match self.state.entry(index, data, rules) {
            Ok(Sequencing::WriteSet(write_set, verdict, places)) => {
                self.write_set(index, &write_set, &verdict, places);
            }
            Ok(Sequencing::Part(write_set)) => self.part(&write_set),
            Ok(Sequencing::Vote(write_set, message, answer)) => {
                self.vote(&write_set, &message, answer, rules);
            }
            Ok(Sequencing::StateRequest(write_set, request, asked)) => {
                self.link.decided_if_mine(&write_set);
                self.note_transfers();
                let seqno = self.state.certifier.seqno();
                if self.left.is_none() {
                    self.parts.transfer.requested(&self.link, request, asked, seqno);
                }
            }
            Ok(Sequencing::StateOutcome(write_set, outcome)) => {
                self.link.decided_if_mine(&write_set);
                self.note_transfers();
                self.parts.transfer.ended(&self.link, outcome.joiner, outcome.code);
            }
            Ok(Sequencing::Void(write_set)) => self.link.decided_if_mine(&write_set),
            Ok(Sequencing::Message(write_set)) => {
                let Kind(kind) = write_set.header().kind;
                let what = format!("Log entry {index}, a message of kind {kind}, cannot be read");
                self.pass_over(Level::Warn, &what);
            }
            // Others may be able to read it, and would have another state.
            Err(e) if e.is_newer() => return Err(e.to_string()),
            // Committed, so every member sees the same bytes and passes over them alike.
            Err(e) => {
                self.pass_over(Level::Error, &format!("Log entry {index} is not a write set ({e})"))
            }
        }
        Ok(())
    }

    fn pass_over(&self, level: Level, what: &str) {
        self.parts.local.caused(Caused::Unreadable, level, &format!("{what}: passed over"));
    }

    fn write_set(
        &mut self,
        index: u64,
        write_set: &WriteSet,
        verdict: &Verdict,
        places: Option<Places>,
    ) {
        let header = write_set.header();
        let certified = verdict.outcome == Outcome::Ok;
        let link = self.link.clone();
        if self.left.is_some() {
            return;
        }
        let own = header.origin == link.node;
        // A copy does not say what became of the first one. That may have passed with a log that was replaced;
        // then the copy may be too old. Whoever waits for the first one waits on, until it gives up.
        let withdrawn = || self.parts.local.state() == LocalState::Error;
        let mine = match verdict.outcome == Outcome::Duplicate || !certified && withdrawn() {
            true if own => {
                link.group.decided(header.serial);
                None
            }
            false if own => link.settle(header.serial),
            _ => None,
        };
        if let Some(parts) = header.parts.filter(|_| own) {
            // Before its session hears of it: a copy of a part that comes after it is nobody's.
            link.parts.close(parts.stream);
        }
        let given_up = own && mine.is_none() && link.was_given_up(header.serial) && certified;
        if given_up && is_last_fragment(header.flags) {
            // The connection closes: see `link::giving_up`.
            self.leave_at(index);
            let own = places.iter().flatten().min().copied();
            self.left_open = self.left_open.min(own.unwrap_or(u64::MAX));
            return;
        }
        if let Some(places) = places.filter(|_| certified && verdict.seqno > self.start) {
            self.parts.local.part_places.note(verdict.seqno, places);
        }
        link.progress.set_seqno(verdict.seqno);
        let written = Duration::from_nanos(header.timestamp);
        self.parts.local.note_ordered((verdict.seqno, index), written);
        if own && header.has(flags::ROLLBACK) {
            link.ends.ordered(header.trx_id);
        }
        if !certified {
            self.note_conflict(write_set, &verdict.outcome, verdict.seqno);
        }
        if given_up {
            // Before anything can be proposed that has seen it here, where it is nothing.
            self.parts.proposals.end_given_up(&link, header.trx_id);
        }
        let is_copy = verdict.outcome == Outcome::Duplicate;
        if certified || header.has(flags::ROLLBACK) && !is_copy {
            link.severed.sequenced(verdict.seqno, header);
        }
        if certified && header.has(flags::ISOLATION) {
            self.parts.local.commit.note_isolated(verdict.seqno);
        }
        // The end of a streaming transaction is applied where it comes from, too.
        let applied_here = mine.is_none() || header.has(flags::ROLLBACK);
        if applied_here && verdict.seqno > self.start {
            self.parts.local.counters.received(write_set.bytes().len());
            let flags = match given_up {
                true => DUMMY,
                false => delivered_flags(header.flags, &verdict.outcome),
            };
            let Verdict { seqno, depends_on, .. } = *verdict;
            let certified = certified && !given_up;
            self.parts.local.queue.push(Event::WriteSet(WriteSetEvent {
                place: Place { index, seqno, depends_on, flags, certified },
                entry: write_set.bytes().clone(),
            }));
        }
        if let Some(trx) = mine.as_ref().and_then(|h| h.local()) {
            trx.decide(Fate {
                seqno: verdict.seqno,
                depends_on: verdict.depends_on,
                certified,
                flags: header.flags,
                payload: write_set.payload(),
                parts: header.parts,
                packed: header.packed,
            });
        }
        self.parts.local.counters.sequenced(verdict.seqno, verdict.depends_on, header.last_seen);
    }

    fn count_certifier(&self) {
        let certifier = &self.state.certifier;
        self.parts.local.counters.set_certifier(certifier.key_count(), certifier.digest());
    }

    fn note_conflict(&self, write_set: &WriteSet, outcome: &Outcome, seqno: i64) {
        if self.parts.local.counters.log_conflicts() {
            let h = write_set.header();
            self.parts.local.info(&format!(
                "seqno {seqno} failed certification: {outcome} (transaction {} of process {}, last seen {})",
                h.trx_id,
                MemberId(h.origin),
                h.last_seen
            ));
        }
    }

    fn view(&mut self, index: u64, view: View) {
        let link = self.link.clone();
        let members = process_ids(&view);
        let before: Vec<u128> = self.state.certifier.members().ids().collect();
        let (seqno, ended) = self.state.view(&members);
        let equal = self.state.certifier.members().ids().eq(before);
        let mine =
            view.members.iter().any(|m| m.id == link.member && m.incarnation == link.incarnation);
        if link.closing() && !mine {
            self.leave_at(index);
        }
        if self.left.is_some() {
            return;
        }
        link.progress.set_seqno(seqno);
        link.severed.view(seqno, &members, equal);
        self.note_transfers();
        self.parts.transfer.view(&view);
        if mine {
            // Whoever waits for this goes by what the two calls above have noted.
            link.progress.set_first_view(seqno, &view);
        }
        ended.iter().for_each(|decision| self.parts.votes.decided(decision));
        if seqno > self.start {
            self.parts.local.queue.push(Event::View { seqno, view, mine });
        } else {
            self.note_start_view();
        }
    }

    /// Remembers who was in the view that holds where the database stands.
    fn note_start_view(&self) {
        let certifier = &self.state.certifier;
        if certifier.seqno() <= self.start {
            self.link.progress.set_start_members(certifier.members().ids().collect());
        }
    }

    /// The database stands before a log that does not reach back to it. A server that was not
    /// told yet where it stands fetches the state; one that runs cannot take in another.
    fn fall_back(&mut self, link: &Link) {
        if link.needs_transfer() {
            self.start = -1;
            self.parts.local.info(
                "This node was away for longer than the group keeps its log: it needs a state transfer",
            );
        } else {
            self.parts.withdrawal.inconsistent(
                "this node was so far behind that the group's log no longer reaches back to it; \
                 restart it to fetch the state from another node",
            );
        }
    }

    /// Of this process, but of a stream that nobody goes on with: what was given up, or a copy that comes after
    /// the end. It would keep the log of all.
    fn part(&self, write_set: &WriteSet) {
        self.link.decided_if_mine(write_set);
        let header = write_set.header();
        if header.origin != self.link.node {
            return self.parts.local.counters.received_part(write_set.bytes().len());
        }
        if header.kind != Kind::PART {
            return;
        }
        let stream = header.trx_id;
        if !self.link.parts.ordered(stream, header.serial) && self.left.is_none() {
            self.parts.proposals.end_parts(&self.link, stream);
        }
    }

    fn vote(&self, write_set: &WriteSet, message: &VoteMessage, answer: Answer, rules: Rules) {
        self.link.decided_if_mine(write_set);
        if self.left.is_none() {
            let (header, now) = (write_set.header(), (&self.state, rules.votes));
            self.parts.votes.sequenced(&self.link, header, message, answer, now);
        }
    }

    fn note_transfers(&self) {
        let members: Vec<u128> = self.state.certifier.members().ids().collect();
        self.parts.transfer.set_orphans(self.state.transfers.orphans(&members).collect());
    }
}

impl StateMachine for Sequencer {
    fn apply(&mut self, entry: Committed) -> Result<(), String> {
        let link = self.link.clone();
        let ended = link.ended();
        let (Committed::Data { index, .. } | Committed::View { index, .. }) = entry;
        if *ended {
            self.leave_at(index);
        }
        match entry {
            Committed::Data { data, primary_term, level, .. } => {
                self.data(index, data, Rules::new(primary_term, level >= VOTES_BY_MAJORITY))?;
            }
            Committed::View { view, .. } => self.view(index, view),
        }
        if self.headless_upto.is_some() {
            self.note_headless(self.headless_upto);
        }
        self.count_certifier();
        Ok(())
    }

    fn is_brief(&self, data: &Bytes) -> bool {
        let kind = WriteSet::peek_kind(data);
        kind.is_some_and(|kind| [Kind::WRITE_SET, Kind::PART].contains(&kind))
            && !self.parts.local.counters.log_conflicts()
    }

    fn passed(&mut self, index: u64) {
        self.link.progress.set_index(index);
    }

    fn freeze(&mut self) -> Frozen {
        let state = self.state.freeze();
        Box::new(|| state.encode())
    }

    fn needs_from(&mut self) -> u64 {
        let (open, lags) = (self.state.parts.first_index(), self.lags_from());
        let local = &self.parts.local;
        let all = [local.part_places.first_index(), local.first_undone(), open, self.left];
        all.into_iter().flatten().fold(self.left_open.min(lags), u64::min)
    }

    /// The parts of what is being applied are not among it: nothing is won by giving up what is nearly done, and all
    /// others that follow would at about the same entry.
    fn lags_from(&mut self) -> u64 {
        self.parts.local.queue.first_index().unwrap_or(u64::MAX)
    }

    fn kept(&mut self, log: KeptLog) {
        let local = &self.parts.local;
        if self.left.is_some() || local.queue.len() == 0 {
            return;
        }
        let age = local.lag();
        match self.backlog.look(log, (local.queue.len(), age), self.link.state_elsewhere()) {
            Some(Finding::Warning(line)) => local.warn(&line),
            Some(Finding::TooMuch(line)) => self.parts.withdrawal.start_over(&line),
            None => {}
        }
    }

    fn is_unlogged(&self, before: bool) -> bool {
        let seqno = self.state.certifier.seqno();
        match self.link.may_be_fetched_to() {
            Some(fetched) => fetched > seqno,
            None => before && self.database > seqno,
        }
    }

    fn rehearsal(&mut self) -> Option<Box<dyn Rehearsal>> {
        let database = self.database;
        let is_behind = database > self.state.certifier.seqno();
        is_behind.then(|| Box::new(Rehearsed::new(&self.state, database)) as Box<dyn Rehearsal>)
    }

    fn restore(&mut self, index: u64, snapshot: Bytes) -> Result<(), String> {
        let state = if snapshot.is_empty() {
            Sequenced::beginning(self.limits, self.link.genesis.seqno)
        } else {
            Sequenced::restore_within(&snapshot, self.limits)?
        };
        let seqno = state.certifier.seqno();
        let link = self.link.clone();
        let ended = link.ended();
        if *ended || self.left.is_some() {
            self.leave_at(index);
            self.state = state;
            return Ok(());
        }
        // Where a database is that goes on from here, though nothing may have come by yet.
        let reached = link.progress.seqno().max(self.start);
        if reached >= 0 && seqno > reached {
            // The log was replaced: write sets in between never came by.
            self.fall_back(&link);
        }
        link.progress.set_seqno(seqno);
        link.progress.set_index(index);
        self.state = state;
        self.note_headless(Some(index));
        let mut members = self.state.certifier.members().ids();
        if !link.progress.has_first_view() && members.any(|id| id == link.node) {
            // The view that took this process in was in what the snapshot replaced: it takes another.
            link.group.refresh_view();
        }
        self.count_certifier();
        self.note_transfers();
        self.note_start_view();
        Ok(())
    }
}
