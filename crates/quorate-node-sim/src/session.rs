//! A model of a client's session in the server: what `wsrep-lib` does between a statement and the
//! provider, state by state.

use crate::baton::installed;
use crate::engine::{encode, Key, NoLock, Owner, Write, Writes};
use crate::oracle::{Mark, Tag};
use crate::plant::Plant;
use crate::server::{Server, REPLAYERS};
use quorate_certify::{flags, KeyType};
use simulated_node::blocking::{Mutex, MutexGuard};
use simulated_node::fate::trx::Handle;
use simulated_node::host::Answer;
use simulated_node::host::HostCtx;
use simulated_node::node::Node;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// `wsrep::transaction::state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Executing,
    Certifying,
    Preparing,
    Committing,
    OrderedCommit,
    Committed,
    CertFailed,
    MustAbort,
    MustReplay,
    Replaying,
    Aborted,
}

/// A session's transaction, as others see it. Its lock is the server's client lock.
pub struct Client {
    pub id: u64,
    inner: Mutex<Inner>,
    /// Outside of the lock, for those who wait for rows.
    aborted: AtomicBool,
}

struct Inner {
    state: State,
    certified: bool,
    /// Commit order is entered: nothing aborts it any more.
    immutable: bool,
}

/// What a client is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Committed,
    /// Error 1213: it failed for good.
    Deadlock,
    /// An error that does not say whether it was committed.
    Unknown,
}

impl Client {
    pub fn new(id: u64) -> Self {
        let inner = Inner { state: State::Executing, certified: false, immutable: false };
        Self { id, inner: Mutex::new(inner), aborted: AtomicBool::new(false) }
    }

    fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Acquire)
    }

    /// `wsrep::transaction::bf_abort`. The client lock is held through the provider's call.
    pub fn bf_abort(&self, server: &Server, node: &Node, by_seqno: i64) -> bool {
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
        let (code, victim) = node.abort(by_seqno, self.id);
        if code != Answer::Done {
            server.oracle.mark(Mark::AbortRefused);
            return false;
        }
        server.oracle.mark(mark);
        server.say(|| format!("{by_seqno} aborts trx {} (seqno {victim})", self.id));
        inner.state = State::MustAbort;
        self.aborted.store(true, Ordering::Release);
        drop(inner);
        server.wake_waiting();
        true
    }
}

/// One connection: transactions until the server stops.
pub fn run(server: &Arc<Server>, number: u64) {
    let mut count = 0;
    while !server.stopping() {
        let think = installed().random(|rng| rng.millis(0, server.load.think_ms));
        installed().sleep(think);
        let Some(node) = server.node().filter(|_| server.is_ready()) else {
            installed().sleep(Duration::from_millis(20));
            continue;
        };
        count += 1;
        let tag = server.tag(number, count);
        match installed().random(|rng| rng.index(20)) {
            0 => server.causal_read(&node),
            2 if installed().random(|rng| rng.chance(300)) => {
                change_schema(server, &node, number, tag)
            }
            1 if number == 0 => server.pause_for_a_while(&node),
            _ => Transaction::new(server, &node, number, tag).run(),
        }
    }
}

/// `enter_toi_local`, the DDL, `leave_toi_local`.
fn change_schema(server: &Arc<Server>, node: &Arc<Node>, conn: u64, tag: Tag) {
    let keys: Vec<Vec<&[u8]>> = vec![vec![b"db", b"t"]];
    let whole = flags::TRX_START | flags::TRX_END;
    let (code, ordered) = node.begin_isolated(conn, &keys, &[&tag.to_le_bytes()], whole);
    let seqno = ordered.map_or(-1, |o| o.seqno);
    server.say(|| format!("DDL {tag:x}: {code:?}, seqno {seqno}"));
    if code != Answer::Done {
        if ordered.is_some() {
            server.engine.pass(seqno);
            end_isolation(server, node, conn, "");
        }
        return match code {
            Answer::Failed => server.oracle.refused(tag),
            _ => server.oracle.unknown(tag),
        };
    }
    let error = server.run_ddl(seqno, tag);
    server.engine.commit(seqno, &Writes::new());
    end_isolation(server, node, conn, error);
    server.engine.unlock(Owner::Ordered(seqno));
    match error {
        "" => server.oracle.acknowledged(tag),
        _ => server.oracle.refused(tag),
    }
}

fn end_isolation(server: &Server, node: &Node, conn: u64, error: &str) {
    let code = node.end_isolated(conn, error.as_bytes());
    if code != Answer::Done {
        server.must_be_withdrawn(&format!("the end of DDL answers {code:?}"));
    }
}

struct Transaction<'a> {
    server: &'a Arc<Server>,
    node: &'a Arc<Node>,
    client: Arc<Client>,
    conn: u64,
    tag: Tag,
    handle: Arc<Handle>,
}

impl<'a> Transaction<'a> {
    fn new(server: &'a Arc<Server>, node: &'a Arc<Node>, conn: u64, tag: Tag) -> Self {
        let client = server.new_client();
        let handle = node.transactions().get_or_create(client.id);
        Self { server, node, client, conn, tag, handle }
    }

    fn run(&self) {
        let told = match self.execute() {
            Ok(writes) => self.commit(&writes),
            Err(NoLock::Aborted) => {
                self.roll_back();
                Told::Deadlock
            }
            Err(NoLock::Timeout) => {
                self.server.oracle.mark(Mark::LockTimeout);
                self.roll_back();
                Told::Deadlock
            }
        };
        self.server.forget_client(self.client.id);
        self.server.say(|| format!("trx {} ({:x}): {told:?}", self.client.id, self.tag));
        match told {
            Told::Committed => self.server.oracle.acknowledged(self.tag),
            Told::Deadlock => self.server.oracle.refused(self.tag),
            Told::Unknown => self.server.oracle.unknown(self.tag),
        }
    }

    /// The statements: each locks a row, reads it, and appends to it.
    fn execute(&self) -> Result<Writes, NoLock> {
        let keys = self.choose_keys();
        let mut writes = Writes::new();
        for key in keys {
            let pause = installed().random(|rng| rng.millis(0, self.server.load.statement_ms));
            installed().sleep(pause);
            let patience = Duration::from_millis(500);
            let aborted = || self.client.is_aborted();
            let gap = installed().random(|rng| rng.chance(300));
            self.server.engine.lock_local(self.client.id, key, patience, gap, aborted)?;
            let write = Write { key, seen: self.server.engine.read(key), tag: self.tag };
            if let Some(trx) = self.handle.local() {
                let mut state = trx.lock();
                state.builder.append_key(&[b"db", b"t", &[key]], KeyType::Exclusive);
                state.builder.append_data(&encode(&[write]));
            }
            writes.push(write);
        }
        Ok(writes)
    }

    fn choose_keys(&self) -> Vec<Key> {
        let rows = u64::from(self.server.load.rows);
        let mut keys = installed().random(|rng| {
            let count = if rng.chance(600) { 1 } else { rng.range(2, 3) };
            (0..count).map(|_| rng.below(rows) as Key).collect::<Vec<_>>()
        });
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.client.inner.lock()
    }

    fn commit(&self, writes: &Writes) -> Told {
        match self.certify() {
            Ok(seqno) => self.order(seqno, writes),
            Err(told) => self.end(told),
        }
    }

    /// `certify_commit`: the seqno if it may go on to commit order.
    fn certify(&self) -> Result<i64, Told> {
        self.server.wait_for_replayers(|| self.client.is_aborted());
        let mut inner = self.lock();
        if inner.state == State::MustAbort {
            return Err(Told::Deadlock);
        }
        inner.state = State::Certifying;
        drop(inner);
        let whole = flags::TRX_START | flags::TRX_END;
        let (code, ordered) = self.node.certify(&self.handle, self.conn, whole);
        let mut inner = self.lock();
        let seqno = ordered.map_or(-1, |o| o.seqno);
        self.server.say(|| {
            format!("trx {} certify: {code:?}, seqno {seqno}, {:?}", self.client.id, inner.state)
        });
        match code {
            Answer::Done => {
                inner.certified = true;
                if inner.state == State::MustAbort {
                    self.server.oracle.mark(Mark::ReplayedAfterCertify);
                    self.will_replay(&mut inner);
                    return Err(Told::Unknown);
                }
                inner.state = State::Preparing;
                Ok(seqno)
            }
            Answer::Replay => {
                self.server.oracle.mark(Mark::ReplayedAfterCertify);
                self.will_replay(&mut inner);
                Err(Told::Unknown)
            }
            Answer::Failed => {
                self.server.oracle.mark(Mark::CertificationFailed);
                inner.state = State::CertFailed;
                Err(Told::Deadlock)
            }
            Answer::Refused => {
                self.server.oracle.mark(Mark::NotConnected);
                let told = match inner.state {
                    // The connection of a killed session is gone.
                    _ if self.server.stopping() => Told::Unknown,
                    State::MustAbort => Told::Deadlock,
                    _ => Told::Unknown,
                };
                inner.state = State::MustAbort;
                Err(told)
            }
            // Given up: the provider has told the client so itself.
            Answer::Broken => {
                inner.state = State::MustAbort;
                Err(match self.server.plant {
                    Some(Plant::UnknownAsRefused) => Told::Deadlock,
                    _ => Told::Unknown,
                })
            }
            other => {
                drop(inner);
                self.server.must_stop(&format!("certify answers {other:?}"));
                Err(Told::Unknown)
            }
        }
    }

    fn will_replay(&self, inner: &mut Inner) {
        self.server.begins_to_replay();
        inner.state = State::MustReplay;
    }

    /// Prepare, commit order, commit.
    fn order(&self, seqno: i64, writes: &Writes) -> Told {
        let sync = installed().random(|rng| rng.millis(0, 1));
        installed().sleep(sync);
        let mut inner = self.lock();
        if inner.state == State::MustAbort {
            self.server.oracle.mark(Mark::ReplayedAfterCertify);
            self.will_replay(&mut inner);
            drop(inner);
            return self.end(Told::Unknown);
        }
        inner.state = State::Committing;
        drop(inner);
        let code = self.node.commit_order_enter(&self.handle);
        let mut inner = self.lock();
        match code {
            Answer::Done => {
                if inner.state != State::Committing {
                    let text = format!("commit order is entered in state {:?}", inner.state);
                    self.server.oracle.fail(text);
                }
                inner.immutable = true;
                drop(inner);
                self.commit_in_order(seqno, writes);
                Told::Committed
            }
            Answer::Replay => {
                self.server.oracle.mark(Mark::ReplayedAfterOrder);
                self.will_replay(&mut inner);
                drop(inner);
                self.end(Told::Unknown)
            }
            other => {
                drop(inner);
                self.server.must_be_withdrawn(&format!("commit_order_enter answers {other:?}"));
                self.server.engine.unlock(Owner::Local(self.client.id));
                Told::Unknown
            }
        }
    }

    /// As the engine commits: the position first, then commit order is left, then the locks are.
    fn commit_in_order(&self, seqno: i64, writes: &Writes) {
        let early = self.server.plant == Some(Plant::OrderLeftEarly);
        if early {
            self.leave_order();
        }
        self.server.engine.commit(seqno, writes);
        if !early {
            self.leave_order();
        }
        self.lock().state = State::OrderedCommit;
        self.server.engine.unlock(Owner::Local(self.client.id));
        let mut inner = self.lock();
        self.release();
        inner.state = State::Committed;
    }

    fn leave_order(&self) {
        let code = self.node.commit_order_leave(&self.handle, &[]);
        if code != Answer::Done {
            self.server.must_be_withdrawn(&format!("commit_order_leave answers {code:?}"));
        }
    }

    fn release(&self) {
        let code = self.node.release(&self.handle);
        if code != Answer::Done {
            self.server.must_be_withdrawn(&format!("release answers {code:?}"));
        }
    }

    /// `after_statement`: a replay, or a rollback.
    fn end(&self, told: Told) -> Told {
        if self.lock().state != State::MustReplay {
            self.roll_back();
            return told;
        }
        self.server.engine.unlock(Owner::Local(self.client.id));
        self.lock().state = State::Replaying;
        let told = self.replay();
        self.server.has_replayed();
        told
    }

    fn replay(&self) -> Told {
        if self.server.plant == Some(Plant::ReplaySkipped) {
            self.release();
            return Told::Committed;
        }
        let code = self.node.replay(&self.handle, HostCtx(REPLAYERS + self.client.id as usize));
        self.server.say(|| format!("trx {} replay: {code:?}", self.client.id));
        match code {
            Answer::Done => {
                self.server.oracle.mark(Mark::Replayed);
                self.release();
                self.lock().state = State::Committed;
                Told::Committed
            }
            Answer::Failed => {
                self.roll_back();
                Told::Deadlock
            }
            other => {
                self.server.must_be_withdrawn(&format!("replay answers {other:?}"));
                Told::Unknown
            }
        }
    }

    /// Rows first, then the place in commit order if there is one, then the transaction itself.
    fn roll_back(&self) {
        self.server.engine.unlock(Owner::Local(self.client.id));
        self.lock().state = State::Aborted;
        let seqno = self.handle.seqno();
        if seqno >= 0 {
            if self.node.commit_order_enter(&self.handle) == Answer::Done {
                self.server.engine.commit(seqno, &Writes::new());
                self.leave_order();
            } else {
                self.server.must_be_withdrawn("a transaction that failed may not enter its order");
            }
        }
        self.release();
    }
}
