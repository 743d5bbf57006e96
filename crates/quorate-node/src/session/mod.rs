//! Local transactions: certify, commit order, release, replay, abort. How long their fate
//! is waited for: `fate`.
//!
//! Locks: a transaction's is held while commit order's is taken (an abort), never while anything is
//! waited for.

mod after;
mod isolation;
mod large;
mod replay;
mod wait;

use crate::blocking::{now, Mutex};
use crate::catch_up::CatchUp;
use crate::fate::trx::{
    Abort, EnterResult, Fate, Handle, IsolatedTable, Phase, Remote, Trx, TrxState, TrxTable,
};
use crate::host::Answer;
use crate::link::giving_up::{is_fragment, takes_effect_alone};
use crate::link::Link;
use crate::local::{Local, LocalState};
use crate::pause::Pause;
use crate::primary::Primary;
use crate::proposals::Proposals;
use crate::records::Records;
use crate::sync;
use crate::votes::Votes;
use crate::withdraw::Withdrawal;
use quorate_certify::{flags, Header, Kind};
use std::sync::Arc;
use std::time::Instant;

/// What sessions are handed.
pub struct Parts {
    pub local: Arc<Local>,
    pub records: Arc<Records>,
    pub withdrawal: Arc<Withdrawal>,
    pub proposals: Arc<Proposals>,
    pub primary: Arc<Primary>,
    pub pause: Arc<Pause>,
    pub votes: Arc<Votes>,
    pub catch_up: Arc<CatchUp>,
}

pub struct Sessions {
    local: Arc<Local>,
    records: Arc<Records>,
    withdrawal: Arc<Withdrawal>,
    proposals: Arc<Proposals>,
    primary: Arc<Primary>,
    pause: Arc<Pause>,
    votes: Arc<Votes>,
    catch_up: Arc<CatchUp>,
    trxs: TrxTable,
    /// Isolated actions under way.
    isolated: IsolatedTable,
    /// When a line was last logged about a commit that others had not applied in time.
    late_logged: Mutex<Option<Instant>>,
}

/// What `certify` tells the server beside its status.
#[derive(Clone, Copy, Debug)]
pub struct Ordered {
    pub seqno: i64,
    pub depends_on: i64,
}

impl Sessions {
    pub fn new(parts: Parts) -> Self {
        let Parts { local, records, withdrawal, proposals, primary, pause, votes, catch_up } =
            parts;
        Self {
            local,
            records,
            withdrawal,
            proposals,
            primary,
            pause,
            votes,
            catch_up,
            trxs: TrxTable::default(),
            isolated: IsolatedTable::default(),
            late_logged: Mutex::default(),
        }
    }

    /// The transactions that have begun and were not released.
    pub fn transactions(&self) -> &TrxTable {
        &self.trxs
    }

    /// Proposes the collected write set and blocks until its fate is decided.
    pub fn certify(
        &self,
        handle: &Arc<Handle>,
        conn_id: u64,
        ws_flags: u32,
    ) -> (Answer, Option<Ordered>) {
        let Some(trx) = handle.local() else { return (Answer::Missing, None) };
        let mut state = trx.lock();
        state.conn_id = conn_id;
        if state.phase == Phase::MustAbort {
            state.phase = Phase::Aborting;
            return (Answer::Refused, None);
        }
        let link = match self.local.link() {
            Some(link) if self.accepts_writes(&link) => link,
            _ => {
                state.phase = Phase::Aborting;
                return (Answer::Refused, None);
            }
        };
        let Some(term) = self.primary.writing_term() else {
            state.phase = Phase::Aborting;
            drop(state);
            // The session of this thread is the fragment's own, where it is one.
            if !is_fragment(ws_flags) {
                self.primary.say_not_primary();
            }
            return (Answer::Refused, None);
        };
        state = match self.await_parts(&link, trx, state) {
            Ok(state) => state,
            Err(answer) => return (answer, None),
        };
        if !link.flow.try_pass() {
            drop(state);
            let passes = link.flow.pass(|| is_given_up(&link, trx));
            state = trx.lock();
            if !passes || state.phase == Phase::MustAbort {
                state.phase = Phase::Aborting;
                return (Answer::Refused, None);
            }
        }
        let sent_before = state.stream.map_or(0, |stream| stream.parts.bytes);
        if !self.local.counters.allows(&state.builder, sent_before) {
            return (Answer::TooLarge, None);
        }
        let bytes = state.builder.encoded_len();
        let place = match link.room.try_enter(bytes) {
            Some(place) => place,
            None => {
                drop(state);
                let place = link.room.enter(bytes, || is_given_up(&link, trx));
                state = trx.lock();
                match place {
                    Some(place) if state.phase != Phase::MustAbort => place,
                    _ => {
                        state.phase = Phase::Aborting;
                        return (Answer::Refused, None);
                    }
                }
            }
        };
        let mut header = self.proposals.header(&link, Kind::WRITE_SET, ws_flags, trx.id, conn_id);
        header.term = term;
        header.parts = state.stream.map(|stream| stream.parts);
        if state.last_fragment >= 0 {
            header.last_seen = header.last_seen.max(state.last_fragment);
            let range = header.last_seen - state.last_fragment;
            header.pa_range = u32::try_from(range).unwrap_or(Header::PA_RANGE_ANY);
        }
        // After the stamp: what it may have seen is noted by now.
        if !link.ends.are_ordered() {
            drop(state);
            let over = link.ends.wait(|| is_given_up(&link, trx));
            state = trx.lock();
            if !over || state.phase == Phase::MustAbort {
                state.phase = Phase::Aborting;
                return (Answer::Refused, None);
            }
        }
        let keys = state.builder.key_count();
        let data_bytes = state.builder.data_len() as u64 + sent_before;
        let packing = self.packing(&link, state.builder.data_len());
        let data = state.builder.finish_packed(&header, packing);
        self.local.counters.note_local(keys, data_bytes, data.len());
        state.begin_commit();
        drop(state);
        sync::point("before_replicate_sync");

        if let Err(refused) = self.proposals.send(&link, header.serial, handle, data) {
            trx.lock().phase = Phase::Aborting;
            return (refused, None);
        }
        sync::point("gcs_core_after_frag_send");
        let Some(fate) = link.await_fate(trx, &header) else {
            trx.lock().phase = Phase::Aborting;
            return (self.gave_up(ws_flags), None);
        };
        let decided = now();
        drop(place);
        sync::point("after_replicate_sync");
        sync::point("local_monitor_master_enter_sync");
        if fate.certified {
            sync::point("before_certify_apply_monitor_enter");
            sync::point("apply_monitor_master_enter_sync");
            sync::point("after_certify_apply_monitor_enter");
        }
        self.pause.hold(fate.seqno, || trx.lock().phase == Phase::MustAbort);
        let mut state = trx.lock();
        let told = self.answer(&mut state, &fate);
        match state.phase {
            Phase::Ordered => {
                state.end_stage(&self.local.counters.latency.replicate, decided);
            }
            _ => state.end_timing(),
        }
        told
    }

    /// Translates a fate into what the interface's table of phases asks for.
    fn answer(&self, state: &mut TrxState, fate: &Fate) -> (Answer, Option<Ordered>) {
        // Its parts have ended with the verdict, which the sequencer has noted.
        state.stream = None;
        let ordered = Some(Ordered { seqno: fate.seqno, depends_on: fate.depends_on });
        if !fate.certified {
            state.phase = Phase::Aborting;
            self.local.counters.cert_failure();
            return (Answer::Failed, ordered);
        }
        if state.phase == Phase::MustAbort {
            return if fate.flags & flags::TRX_END != 0 {
                state.phase = Phase::MustReplay;
                (Answer::Replay, ordered)
            } else {
                state.phase = Phase::Aborting;
                (Answer::Failed, ordered)
            };
        }
        state.phase = Phase::Ordered;
        (Answer::Done, ordered)
    }

    /// What the server is told of a proposal that was given up: `Refused` only where nothing can come
    /// of it.
    pub fn gave_up(&self, ws_flags: u32) -> Answer {
        if !takes_effect_alone(ws_flags) {
            return Answer::Refused;
        }
        self.outcome_unknown()
    }

    /// Tells the session of this thread that nobody knows what became of its proposal.
    pub fn outcome_unknown(&self) -> Answer {
        self.local.host.tell_unknown(&format!(
            "Outcome unknown: {} lost its group before it heard what became of this; it may have taken \
             effect, or may yet, as a whole. Look before you do it again",
            self.local.config.name
        ));
        Answer::Broken
    }

    fn accepts_writes(&self, link: &Link) -> bool {
        link.open_for_writes()
            && matches!(
                self.local.state(),
                LocalState::Joined | LocalState::Synced | LocalState::Donor
            )
    }

    /// Ends a streaming transaction that was rolled back here, everywhere. Returns once that is
    /// ordered, so that whoever reads after the ROLLBACK finds nothing of it; waits for nothing
    /// else, since the caller holds locks of the server. Without a majority it is refused; it is ordered
    /// then before anything else of this node is ([`crate::link::ends`]).
    ///
    /// The transaction itself stays known until its session releases it.
    pub fn rollback_fragment(&self, trx_id: u64) -> Answer {
        // The server has just taken it off the list of those that stream here.
        self.local.host.wake_waiters();
        let Some(link) = self.local.link() else { return Answer::Refused };
        let answer = self.order_rollback(&link, trx_id);
        if answer != Answer::Done {
            link.ends.note(trx_id, false);
            self.records.look_at_ends(&link);
            // Contact may be back by now, and who came to see to that has found nothing to do.
            self.proposals.send_ends(&link);
        }
        answer
    }

    fn order_rollback(&self, link: &Link, trx_id: u64) -> Answer {
        if !self.accepts_writes(link) {
            return Answer::Refused;
        }
        let (header, data) = self.proposals.rollback_write_set(link, trx_id);
        let waiter = Arc::new(Handle::Local(Trx::new(trx_id)));
        if let Err(refused) = self.proposals.send(link, header.serial, &waiter, data) {
            return refused;
        }
        match waiter.local().and_then(|trx| link.await_fate(trx, &header)) {
            Some(_) => Answer::Done,
            None => Answer::Refused,
        }
    }

    pub fn commit_order_enter(&self, handle: &Handle) -> Answer {
        let (order, latency) = (&self.local.commit, &self.local.counters.latency);
        let in_order = |entered| self.withdrawal.in_order(entered);
        match handle {
            Handle::Local(trx) => match in_order(trx.enter_commit(order, latency)) {
                Some(EnterResult::Entered) => Answer::Done,
                Some(EnterResult::Replay) => Answer::Replay,
                Some(EnterResult::Failed) => Answer::Failed,
                None => self.outcome_unknown(),
            },
            Handle::Remote(remote) => {
                let entered = remote.enter_commit(order).map(|()| EnterResult::Entered);
                in_order(entered).map_or(Answer::Broken, |_| Answer::Done)
            }
        }
    }

    pub fn commit_order_leave(&self, handle: &Handle, error: &[u8]) -> Answer {
        let (order, latency) = (&self.local.commit, &self.local.counters.latency);
        let remote = handle.remote();
        let unreadable = remote.and_then(|remote| remote.unreadable.as_deref());
        let error = unreadable.map_or(error, str::as_bytes);
        let committed = remote.is_some_and(Remote::is_committed);
        let agreed = error.is_empty() || self.votes.fails(handle.seqno(), error, committed);
        let left = match handle {
            Handle::Local(trx) => trx.leave_commit(order, latency),
            Handle::Remote(remote) => remote.leave_commit(order),
        };
        match (self.withdrawal.in_order(left), agreed) {
            (Some(()), true) => Answer::Done,
            _ => Answer::Broken,
        }
    }

    /// Ends a transaction or a fragment: it becomes visible, or is forgotten.
    pub fn release(&self, handle: &Handle) -> Answer {
        let Some(trx) = handle.local() else { return Answer::Done };
        let mut state = trx.lock();
        if state.phase == Phase::MustAbort {
            state.phase = Phase::Aborting;
        }
        if state.phase == Phase::Committed {
            let Some(fate) = state.fate.take() else { return Answer::Done };
            state.commit_entered = false;
            state.commit_left = false;
            let ends = fate.flags & flags::TRX_END != 0;
            state.phase = if ends { Phase::Committed } else { Phase::Executing };
            state.last_fragment = fate.seqno;
            drop(state);
            // What it has committed stands, whatever becomes of the node.
            self.withdrawal.in_order(self.local.leave(fate.seqno));
            self.note_end();
            self.local.counters.local_commit();
            if ends {
                self.trxs.remove(trx.id);
                self.await_others(fate.seqno);
            }
            return Answer::Done;
        }
        if state.deferred_abort {
            state.deferred_abort = false;
            return Answer::Replay;
        }
        let fate = state.fate.take();
        let (entered, left) = (state.commit_entered, state.commit_left);
        state.phase = Phase::RolledBack;
        let stream = state.stream.take();
        drop(state);
        self.give_up_parts(stream);
        if let Some(fate) = fate {
            let passed = match (entered, left) {
                (false, _) => self.local.commit.skip(fate.seqno),
                (true, false) => self.local.commit.leave(fate.seqno),
                (true, true) => Ok(()),
            };
            self.withdrawal.in_order(passed.and_then(|()| self.local.leave(fate.seqno)));
            self.note_end();
        }
        self.trxs.remove(trx.id);
        Answer::Done
    }

    /// A server may end its connection before its sessions: the last of them stands where it stopped. And where only
    /// its own sessions were behind, no event of the queue shows that it has caught up.
    fn note_end(&self) {
        match self.local.state() {
            LocalState::Undefined => {}
            LocalState::Joined => return self.catch_up.session_ended(),
            _ => return, // nearly always: it is asked at the end of each transaction
        }
        if let Some(link) = self.local.link().filter(|link| link.closed()) {
            self.records.note_closed(&link, self.local.apply.last_left());
        }
    }

    /// A transaction with priority (ordered at `by_seqno`) asks for a victim to be aborted. Never blocks.
    pub fn abort(&self, by_seqno: i64, victim: u64) -> (Answer, i64) {
        if by_seqno != 0 {
            // Not a KILL. The id does not say whose it is: a session here may have the same one.
            self.records.isolated_aborts();
        }
        let Some(handle) = self.trxs.get(victim) else { return (Answer::Done, -1) };
        let abort = handle.local().map(|trx: &Trx| trx.abort(by_seqno, &self.local.commit));
        if let Some(link) = self.local.link() {
            link.nudge_proposers();
        }
        match abort {
            Some(abort @ (Abort::Marked(seqno) | Abort::Done(seqno))) => {
                if by_seqno != 0 && abort == Abort::Marked(seqno) {
                    self.local.counters.local_bf_abort();
                }
                self.pause.look_again();
                (Answer::Done, seqno)
            }
            Some(Abort::NotAllowed(seqno)) => (Answer::NotAllowed, seqno),
            None => (Answer::Done, -1),
        }
    }
}

/// Whether nothing is to be proposed for this transaction any more: nobody would hear of it, or it is to be
/// aborted.
fn is_given_up(link: &Link, trx: &Trx) -> bool {
    link.abandoned() || trx.lock().phase == Phase::MustAbort
}
