//! A session's transaction, as others in the server see it: they may abort it.

use super::State;
use crate::calls::Node;
use crate::oracle::Mark;
use crate::server::Server;
use simulated_node::blocking::{Mutex, MutexGuard};
use simulated_node::host::Answer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

pub struct Client {
    /// The server's id of the transaction. Other servers use the same ones.
    pub id: u64,
    /// The server's client lock.
    inner: Mutex<Inner>,
    /// Outside of the lock, for those who wait for rows.
    aborted: AtomicBool,
}

pub(super) struct Inner {
    pub state: State,
    /// The place of its write set, or of its last fragment.
    pub ordered: Option<i64>,
    /// Commit order is entered: nothing aborts it any more.
    pub immutable: bool,
    /// A fragment of it was certified, or may have been, and it has not ended yet.
    pub streaming: bool,
    /// Its end was sent to the others, or follows from the order.
    pub rolled_back: bool,
    /// Who aborted it does so on all servers, at one place of the order.
    pub in_total_order: bool,
}

impl Client {
    pub fn new(id: u64) -> Self {
        let inner = Inner {
            state: State::Executing,
            ordered: None,
            immutable: false,
            streaming: false,
            rolled_back: false,
            in_total_order: false,
        };
        Self { id, inner: Mutex::new(inner), aborted: AtomicBool::new(false) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Acquire)
    }

    /// `wsrep::transaction::bf_abort`, or `total_order_bf_abort`. The client lock is held through the
    /// provider's call.
    pub fn bf_abort(
        self: &Arc<Self>,
        server: &Server,
        node: &Node,
        bf_seqno: i64,
        in_total_order: bool,
    ) -> bool {
        let mut inner = self.inner.lock();
        if inner.immutable {
            server.oracle.mark(Mark::AbortImmutable);
            return false;
        }
        let mark = match inner.state {
            State::Executing => Mark::AbortExecuting,
            State::Certifying => Mark::AbortCertifying,
            State::Preparing | State::Committing => Mark::AbortCommitting,
            _ => return false,
        };
        let (code, victim) = node.abort(bf_seqno, self.id);
        if code != Answer::Done {
            server.oracle.mark(Mark::AbortRefused);
            return false;
        }
        server.oracle.mark(mark);
        server.say(|| format!("{bf_seqno} aborts trx {} (seqno {victim})", self.id));
        let executing = inner.state == State::Executing;
        inner.state = State::MustAbort;
        inner.in_total_order = in_total_order;
        self.aborted.store(true, Ordering::Release);
        // The others hear of its end before its rows are free.
        if executing && inner.streaming {
            self.end_stream(server, node, &mut inner);
        }
        drop(inner);
        server.wake_waiting();
        true
    }
}
