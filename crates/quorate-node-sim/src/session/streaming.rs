//! A streaming transaction at its origin: fragments go to the group one by one, each is stored here in its
//! place of the order, and the transaction stays open. How it ends is told to the other servers, too, unless
//! they know from the order.

use super::client::{Client, Inner};
use super::transaction::Transaction;
use super::{State, Told};
use crate::calls::Node;
use crate::engine::{Beside, StreamId, Write, Writes};
use crate::oracle::Mark;
use crate::server::Server;
use quorate_certify::{flags, KeyType};
use simulated_node::host::Answer;
use std::sync::Arc;

impl Client {
    /// `streaming_rollback`: where the others do not roll it back by themselves, they are told to. Its own
    /// server applies that, too, and removes the fragments then.
    pub(super) fn end_stream(self: &Arc<Self>, server: &Server, node: &Node, inner: &mut Inner) {
        if inner.rolled_back {
            return;
        }
        inner.rolled_back = true;
        if inner.in_total_order {
            server.oracle.mark(Mark::StreamEndsInTotalOrder);
            inner.streaming = false;
            server.engine.forget_stream(server.own_stream(self.id));
            return server.streams.stop(self.id);
        }
        inner.streaming = false;
        server.hand_over_stream(self.id);
        let code = node.rollback_fragment(self.id);
        server.say(|| format!("trx {} rollback fragment: {code:?}", self.id));
        if code == Answer::Done {
            server.oracle.mark(Mark::StreamRolledBack);
        } else {
            server.oracle.mark(Mark::RollbackUnsent);
            server.streams.send_end_later(self.id);
        }
    }
}

impl Transaction<'_> {
    pub(super) fn stream(&self) -> StreamId {
        self.server.own_stream(self.client.id)
    }

    /// `certify_fragment`: what was written since the last one.
    pub(super) fn send_fragment(&self, writes: &[Write]) -> Result<(), Told> {
        let server = self.server;
        server.wait_for_replayers(|| self.client.is_aborted());
        let mut inner = self.lock();
        if inner.state == State::MustAbort {
            return Err(Told::Deadlock);
        }
        inner.state = State::Certifying;
        let first = !inner.streaming;
        drop(inner);
        if first {
            server.streams.start(&self.client);
        }
        let ws_flags = if first { flags::TRX_START } else { 0 };
        let (code, ordered) = self.node.certify(&self.handle, self.conn, ws_flags);
        let seqno = ordered.map_or(-1, |o| o.seqno);
        server.say(|| format!("trx {} fragment: {code:?}, seqno {seqno}", self.client.id));
        let kept = match code {
            Answer::Done => {
                self.lock().streaming = true;
                self.store_fragment(seqno, writes) && self.release_fragment()
            }
            Answer::Failed => {
                server.oracle.mark(Mark::FragmentFailed);
                self.lock().streaming = true;
                server.engine.skip(seqno);
                false
            }
            // Given up, or not even proposed: it can never commit without its session.
            Answer::Refused => {
                server.oracle.mark(Mark::FragmentRefused);
                false
            }
            // Nothing of it was proposed.
            Answer::TooLarge => {
                server.oracle.mark(Mark::TooLarge);
                false
            }
            other => {
                server.must_be_withdrawn(&format!("certify of a fragment answers {other:?}"));
                false
            }
        };
        let mut inner = self.lock();
        if kept && inner.state == State::Certifying {
            server.oracle.mark(Mark::Fragment);
            inner.state = State::Executing;
            return Ok(());
        }
        if inner.streaming {
            self.client.end_stream(server, self.node, &mut inner);
        } else {
            server.streams.stop(self.client.id);
        }
        inner.state = State::MustAbort;
        Err(Told::Deadlock)
    }

    /// The storage service: a small transaction of its own, in the fragment's place.
    fn store_fragment(&self, seqno: i64, writes: &[Write]) -> bool {
        match self.node.commit_order_enter(&self.handle) {
            Answer::Done => {
                let fragments = Beside::Add(self.stream(), writes.to_vec());
                self.server.oracle.fragment(self.server.number, seqno, true);
                self.server.engine.commit(seqno, &Writes::new(), fragments);
                self.leave_order();
                true
            }
            Answer::Failed => {
                self.server.oracle.mark(Mark::FragmentAbortedInOrder);
                // It is rolled back out of order; the release that follows gives its place up.
                self.server.engine.skip(seqno);
                false
            }
            other => {
                let text = format!("commit_order_enter of a fragment answers {other:?}");
                self.server.must_be_withdrawn(&text);
                false
            }
        }
    }

    fn release_fragment(&self) -> bool {
        match self.node.release(&self.handle) {
            Answer::Done => true,
            Answer::Replay => {
                self.server.oracle.mark(Mark::FragmentAbortedLate);
                false
            }
            other => {
                self.server.must_be_withdrawn(&format!("release of a fragment answers {other:?}"));
                false
            }
        }
    }

    /// What its fragments wrote is read by the last one, so that whoever wrote it since is met.
    pub(super) fn share_keys(&self, writes: &[Write]) {
        if let Some(trx) = self.handle.local() {
            let mut state = trx.lock();
            for Write { key, .. } in writes {
                state.builder.append_key(&[b"db", b"t", &[*key]], KeyType::Shared);
            }
        }
    }
}
