//! Streaming transactions that are open in this server, as `wsrep-lib` keeps them: those that sessions here
//! send, and those of other servers, which wait for their end with their rows locked.
//!
//! Invariant: after each view no stream of a process that is not in it is open here, in memory or on disk;
//! nor any at all after two views in a row with the same members.

use super::callbacks::Callbacks;
use super::Server;
use crate::engine::{decode, Beside, Owner, StreamId, Writes};
use crate::group::id_of;
use crate::oracle::Mark;
use crate::plant::Plant;
use crate::session::Client;
use quorate_certify::process_uuid;
use simulated_node::blocking::{Condvar, Mutex};
use simulated_node::host::{Answer, ApplyCall, HostView, ViewStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Members of a view, by id.
type Members = Vec<u128>;

#[derive(Default)]
pub struct Streams {
    table: Mutex<Table>,
    /// A session's transaction is off the list, and said so.
    ended: Condvar,
}

#[derive(Default)]
struct Table {
    /// Sessions that stream, by transaction.
    sessions: BTreeMap<u64, Arc<Client>>,
    /// What is applied of others' streams (and of own ones whose session has ended), uncommitted.
    applied: BTreeMap<StreamId, Writes>,
    /// What the disk has of them is applied.
    recovered: bool,
    connected: bool,
    /// The last view, if it is a primary one, and the primary one before it.
    current: Option<Members>,
    previous: Members,
    /// Own ones whose end is to be sent again.
    unsent: Vec<u64>,
    /// Ended by the DDL that runs; their fragments go when it has run.
    ended_by_ddl: Vec<StreamId>,
    /// Ended in place of DDL, perhaps earlier than elsewhere: they commit nowhere.
    severed: BTreeSet<StreamId>,
}

impl Streams {
    pub fn start(&self, client: &Arc<Client>) {
        self.table.lock().sessions.insert(client.id, client.clone());
    }

    pub fn stop(&self, trx: u64) {
        self.table.lock().sessions.remove(&trx);
        self.ended.notify_all();
    }

    pub fn send_end_later(&self, trx: u64) {
        self.table.lock().unsent.push(trx);
    }

    pub fn wake(&self) {
        self.ended.notify_all();
    }

    fn is_open(&self, id: StreamId) -> bool {
        self.table.lock().applied.contains_key(&id)
    }

    fn take(&self, id: StreamId) -> Option<Writes> {
        self.table.lock().applied.remove(&id)
    }

    /// A state that was received says what the view at its position is.
    pub fn recovered_view(&self, members: Members) {
        self.table.lock().current = Some(members);
    }

    /// The view was shown.
    pub(super) fn seen(&self, view: &HostView) {
        let mut table = self.table.lock();
        if let Some(primary) = table.current.take() {
            table.previous = primary;
        }
        table.current = (view.status == ViewStatus::Primary).then(|| members_of(view));
    }
}

pub(super) fn members_of(view: &HostView) -> Members {
    let mut members: Members = view.members.iter().map(|m| u128::from_be_bytes(m.id)).collect();
    members.sort_unstable();
    members
}

impl Server {
    pub fn own_stream(&self, trx: u64) -> StreamId {
        StreamId { origin: process_uuid(id_of(self.number).0, self.incarnation), trx }
    }

    /// `convert_streaming_client_to_applier`, which wakes nobody: its fragments stay until the others
    /// hear of its end, too.
    pub fn hand_over_stream(&self, trx: u64) {
        let id = self.own_stream(trx);
        let stored = self.engine.fragments(id);
        let mut table = self.streams.table.lock();
        table.sessions.remove(&trx);
        if table.connected {
            table.applied.insert(id, stored);
        }
    }

    /// Ends that could not be sent when it was time.
    pub(super) fn send_ends(&self) {
        let Some(node) = self.node() else { return };
        loop {
            let Some(trx) = self.streams.table.lock().unsent.first().copied() else { return };
            let code = node.rollback_fragment(trx);
            self.say(|| format!("trx {trx} rollback fragment, late: {code:?}"));
            if code != Answer::Done {
                return;
            }
            self.oracle.mark(Mark::RollbackSentLater);
            self.streams.table.lock().unsent.remove(0);
        }
    }

    /// Something ordered wants an open stream of another server out of its way. DDL may: it does so on all
    /// servers. For a write set certification has to see to it.
    pub(super) fn abort_stream(&self, bf_seqno: i64, id: StreamId, in_total_order: bool) {
        if !in_total_order {
            return self.oracle.fail(format!(
                "n{}: seqno {bf_seqno} passed, and is kept from its row by the open stream {id:x?}",
                self.number
            ));
        }
        let Some(node) = self.node() else { return };
        if node.abort(bf_seqno, id.trx).0 != Answer::Done {
            return;
        }
        self.say(|| format!("{bf_seqno} aborts the stream {id:x?}"));
        self.oracle.mark(Mark::StreamAbortedByDdl);
        if self.streams.take(id).is_some() {
            self.streams.table.lock().ended_by_ddl.push(id);
            self.engine.unlock(Owner::Stream(id));
        }
    }

    /// DDL ends all streams, and that of a session that has rolled back with them, though it is in nobody's
    /// way any more: on the other servers it was.
    pub(super) fn end_own_by_ddl(&self) {
        let own = self.own_stream(0).origin;
        let mut table = self.streams.table.lock();
        let ended: Vec<StreamId> =
            table.applied.keys().copied().filter(|id| id.origin == own).collect();
        table.applied.retain(|id, _| id.origin != own);
        table.ended_by_ddl.extend(ended);
    }

    /// Their rows were free before the DDL ran; their fragments go after that, which itself is not undone
    /// by a crash. That is still kinder than the server, whose threads may take until after the position
    /// is stored: an open row of `docs/bugs-found.md`.
    pub(super) fn forget_ended_by_ddl(&self) {
        let ended = std::mem::take(&mut self.streams.table.lock().ended_by_ddl);
        ended.into_iter().for_each(|id| self.engine.forget_stream(id));
    }

    /// At a server's start its fragments are applied once more.
    pub fn recover_streams(&self) {
        let mut table = self.streams.table.lock();
        table.connected = true;
        if std::mem::replace(&mut table.recovered, true) {
            return;
        }
        drop(table);
        for (id, writes) in self.engine.streams() {
            self.oracle.mark(Mark::StreamRecovered);
            self.say(|| format!("recovers the stream {id:x?}"));
            for write in &writes {
                let position = self.engine.position();
                let abort = |holder| self.abort(position, holder, true);
                self.engine.lock_ordered(position, Owner::Stream(id), write.key, abort);
            }
            self.streams.table.lock().applied.insert(id, writes);
        }
    }
}

impl Callbacks {
    /// `close_orphaned_sr_transactions`: a view ends what it does, before it is stored.
    pub(super) fn settle_streams(&self, view: &HostView) {
        let server = &self.0;
        server.recover_streams();
        let members = members_of(view);
        let table = server.streams.table.lock();
        let equal = *table.current.as_ref().unwrap_or(&table.previous) == members;
        drop(table);
        if equal {
            server.oracle.mark(Mark::EqualViews);
        }
        if view.my_index < 0 || equal {
            self.end_own_streams(view.seqno);
        }
        let open: Vec<StreamId> = server.streams.table.lock().applied.keys().copied().collect();
        let ends = |id: &StreamId| equal || members.binary_search(&id.origin).is_err();
        for id in open.into_iter().filter(ends) {
            if server.plant == Some(Plant::OrphansStay) && server.number == 0 {
                continue;
            }
            server.oracle.mark(Mark::OrphanRolledBack);
            server.say(|| format!("rolls back the orphan {id:x?}"));
            server.streams.take(id);
            server.engine.unlock(Owner::Stream(id));
            server.engine.forget_stream(id);
            server.disk.lock().ended.insert(id, view.seqno);
            if view.seqno <= server.engine.position() {
                // The node has it do so in place of DDL.
                server.oracle.mark(Mark::StreamSevered);
                server.streams.table.lock().severed.insert(id);
            }
        }
        let mut stored = server.engine.streams().into_iter().map(|(id, _)| id);
        if let Some(id) = stored.find(ends) {
            server.oracle.fail(format!(
                "n{} keeps the stream {id:x?} open after the view at {}, which ends it",
                server.number, view.seqno
            ));
        }
    }

    /// Sessions here that stream are aborted; the others know it from the order.
    fn end_own_streams(&self, seqno: i64) {
        let server = &self.0;
        let Some(node) = server.node() else { return };
        let mut table = server.streams.table.lock();
        while let Some((trx, client)) = table.sessions.first_key_value() {
            let (trx, client) = (*trx, client.clone());
            drop(table);
            server.oracle.mark(Mark::OwnStreamsEndWithView);
            client.bf_abort(server, &node, seqno, true);
            table = server.streams.table.lock();
            while table.sessions.contains_key(&trx) {
                server.streams.ended.wait(&mut table);
            }
        }
    }

    /// The connection ends: what is open goes on from the disk, at the next one.
    pub(super) fn close_streams(&self) {
        let server = &self.0;
        let mut table = server.streams.table.lock();
        table.connected = false;
        table.recovered = false;
        let open = std::mem::take(&mut table.applied);
        drop(table);
        open.into_keys().for_each(|id| server.engine.unlock(Owner::Stream(id)));
    }

    pub(super) fn apply_fragment(&self, call: &ApplyCall<'_>, first: bool) -> Result<(), ()> {
        let server = &self.0;
        let (id, seqno) = (stream_of(call), call.meta.seqno);
        let open = server.streams.is_open(id);
        if first && open {
            server.oracle.fail(format!("n{}: the stream of {seqno} begins twice", server.number));
        }
        // Before a crash it was ended by a view behind this fragment: it commits nowhere, either.
        let ended = server.disk.lock().ended.get(&id).is_some_and(|view| seqno < *view);
        if !ended && !server.streams.table.lock().severed.contains(&id) {
            server.oracle.fragment(server.number, seqno, open || first);
        }
        if !first && !open {
            // Given up at its origin, and ordered behind the end that was sent then.
            server.oracle.mark(Mark::FragmentForNothing);
            return self.pass(call);
        }
        server.oracle.mark(Mark::StreamApplied);
        let writes = decode(call.data).ok_or(())?;
        if first {
            server.streams.table.lock().applied.insert(id, Writes::new());
        }
        self.lock_for(seqno, Owner::Stream(id), &writes);
        let node = self.enter(call).ok_or(())?;
        let fragments = Beside::Add(id, writes.clone());
        server.engine.commit(seqno, &Writes::new(), fragments);
        self.leave(&node, call);
        server.streams.table.lock().applied.entry(id).or_default().extend(writes);
        Ok(())
    }

    /// The last fragment, of another server's stream, or of an own one that was aborted after it passed.
    pub(super) fn commit_stream(&self, call: &ApplyCall<'_>, replays: bool) -> Result<(), ()> {
        let server = &self.0;
        let (id, seqno) = (stream_of(call), call.meta.seqno);
        let last = decode(call.data).ok_or(())?;
        let (owner, mut writes) = match replays {
            true => (Owner::Ordered(seqno), server.engine.fragments(id)),
            false => {
                let applied = server.streams.take(id);
                if applied.is_none() {
                    server.oracle.fail(format!(
                        "n{}: a stream's last fragment passed at {seqno}, and it is not open here",
                        server.number
                    ));
                }
                server.oracle.mark(Mark::StreamAppliedCommit);
                (Owner::Stream(id), applied.unwrap_or_default())
            }
        };
        writes.extend(last);
        self.lock_for(seqno, owner, &writes);
        let node = self.enter(call).ok_or(())?;
        server.engine.commit(seqno, &writes, Beside::Remove(id));
        self.leave(&node, call);
        server.engine.unlock(owner);
        Ok(())
    }

    /// A rollback fragment.
    pub(super) fn roll_back_stream(&self, call: &ApplyCall<'_>) -> Result<(), ()> {
        let server = &self.0;
        let id = stream_of(call);
        if server.streams.take(id).is_none() {
            server.oracle.mark(Mark::RollbackForNothing);
            return self.pass(call);
        }
        server.oracle.mark(Mark::StreamAppliedRollback);
        server.engine.unlock(Owner::Stream(id));
        let node = self.enter(call).ok_or(())?;
        server.engine.commit(call.meta.seqno, &Writes::new(), Beside::Remove(id));
        self.leave(&node, call);
        Ok(())
    }

    fn lock_for(&self, seqno: i64, owner: Owner, writes: &Writes) {
        for write in writes {
            let abort = |holder| self.0.abort(seqno, holder, false);
            self.0.engine.lock_ordered(seqno, owner, write.key, abort);
        }
    }
}

fn stream_of(call: &ApplyCall<'_>) -> StreamId {
    StreamId { origin: call.meta.origin, trx: call.meta.trx_id }
}
