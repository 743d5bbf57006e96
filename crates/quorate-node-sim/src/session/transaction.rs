//! One transaction of a session: statements, certification, commit order, and how it ends.

use super::client::{Client, Inner};
use super::{State, Told};
use crate::baton::installed;
use crate::calls::Node;
use crate::engine::{encode, Beside, Key, NoLock, Owner, Write, Writes};
use crate::oracle::{Mark, Tag};
use crate::plant::Plant;
use crate::server::{Server, REPLAYERS};
use quorate_certify::{flags, KeyType};
use simulated_node::blocking::MutexGuard;
use simulated_node::fate::trx::Handle;
use simulated_node::host::{Answer, HostCtx};
use std::sync::Arc;
use std::time::Duration;

/// What its client wants of it.
struct Plan {
    keys: Vec<Key>,
    /// A fragment follows so many statements; 0: it is one write set.
    fragment: usize,
    /// Its client does not want it any more at the end.
    withdrawn: bool,
}

pub(super) struct Transaction<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) node: &'a Arc<Node>,
    pub(super) client: Arc<Client>,
    pub(super) conn: u64,
    tag: Tag,
    pub(super) handle: Arc<Handle>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(server: &'a Arc<Server>, node: &'a Arc<Node>, conn: u64, tag: Tag) -> Self {
        let client = server.new_client();
        let handle = node.transactions().get_or_create(client.id);
        Self { server, node, client, conn, tag, handle }
    }

    pub(super) fn run(&self) {
        let plan = self.choose_plan();
        let told = match self.execute(&plan) {
            Ok(writes) if plan.withdrawn => {
                self.roll_back();
                self.server.oracle.mark(match plan.fragment {
                    0 => Mark::RolledBack,
                    _ => Mark::RolledBackStreaming,
                });
                self.server.say(|| format!("trx {} had {} writes", self.client.id, writes.len()));
                Told::RolledBack
            }
            Ok(writes) => self.commit(&writes),
            Err(told) => {
                self.roll_back();
                told
            }
        };
        self.server.forget_client(self.client.id);
        self.server.say(|| format!("trx {} ({:x}): {told:?}", self.client.id, self.tag));
        match told {
            Told::Committed => self.server.oracle.acknowledged(self.tag),
            Told::RolledBack | Told::Deadlock => self.server.oracle.refused(self.tag),
            Told::Unknown => self.server.oracle.unknown(self.tag),
        }
    }

    /// The statements: each locks a row, reads it, and appends to it.
    fn execute(&self, plan: &Plan) -> Result<Writes, Told> {
        let mut writes = Writes::new();
        let mut sent = 0;
        for key in &plan.keys {
            writes.push(self.execute_one(*key)?);
            if plan.fragment > 0 && writes.len() - sent >= plan.fragment {
                self.send_fragment(&writes[sent..])?;
                sent = writes.len();
            }
        }
        Ok(writes)
    }

    fn execute_one(&self, key: Key) -> Result<Write, Told> {
        let pause = installed().random(|rng| rng.millis(0, self.server.load.statement_ms));
        installed().sleep(pause);
        let patience = Duration::from_millis(500);
        let aborted = || self.client.is_aborted();
        let gap = installed().random(|rng| rng.chance(300));
        let locked = self.server.engine.lock_local(self.client.id, key, patience, gap, aborted);
        locked.map_err(|why| {
            if why == NoLock::Timeout {
                self.server.oracle.mark(Mark::LockTimeout);
            }
            Told::Deadlock
        })?;
        let write = Write { key, seen: self.server.engine.read(key), tag: self.tag };
        if let Some(trx) = self.handle.local() {
            let mut state = trx.lock();
            state.builder.append_key(&[b"db", b"t", &[key]], KeyType::Exclusive);
        }
        self.node.append_data(&self.handle, &encode(&[write]));
        Ok(write)
    }

    fn choose_plan(&self) -> Plan {
        let rows = u64::from(self.server.load.rows);
        let streams = self.server.load.streams;
        installed().random(|rng| {
            let streams = rng.chance(streams);
            let count = match streams {
                true => rng.range(2, 5),
                false if rng.chance(600) => 1,
                false => rng.range(2, 3),
            };
            let mut keys: Vec<Key> = (0..count).map(|_| rng.below(rows) as Key).collect();
            keys.sort_unstable();
            keys.dedup();
            let fragment = if streams { rng.range(1, 2) as usize } else { 0 };
            let withdrawn = rng.chance(if streams { 150 } else { 10 });
            Plan { keys, fragment, withdrawn }
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.client.lock()
    }

    fn commit(&self, writes: &Writes) -> Told {
        match self.certify(writes) {
            Ok(seqno) => self.order(seqno, writes),
            Err(told) => self.end(told),
        }
    }

    /// `certify_commit`: the seqno if it may go on to commit order.
    fn certify(&self, writes: &Writes) -> Result<i64, Told> {
        self.server.wait_for_replayers(|| self.client.is_aborted());
        let mut inner = self.lock();
        if inner.state == State::MustAbort {
            return Err(Told::Deadlock);
        }
        inner.state = State::Certifying;
        let streaming = inner.streaming;
        drop(inner);
        let ws_flags = match streaming {
            true => {
                self.share_keys(writes);
                flags::TRX_END | flags::PA_UNSAFE
            }
            false => flags::TRX_START | flags::TRX_END,
        };
        if self.node.link().is_some_and(|link| link.flow.report().active) {
            self.server.oracle.mark(Mark::Throttled);
        }
        let (code, ordered) = self.node.certify(&self.handle, self.conn, ws_flags);
        let mut inner = self.lock();
        inner.ordered = ordered.map(|o| o.seqno);
        let seqno = ordered.map_or(-1, |o| o.seqno);
        self.server.say(|| {
            format!("trx {} certify: {code:?}, seqno {seqno}, {:?}", self.client.id, inner.state)
        });
        match code {
            Answer::Done => {
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
                    _ if self.server.was_refused() => Told::Deadlock,
                    // The connection of a killed session is gone.
                    _ if self.server.stopping() => Told::Unknown,
                    State::MustAbort => Told::Deadlock,
                    _ => Told::Unknown,
                };
                inner.state = State::MustAbort;
                Err(told)
            }
            Answer::TooLarge => {
                self.server.oracle.mark(Mark::TooLarge);
                inner.state = State::MustAbort;
                Err(Told::Deadlock)
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
        let streaming = self.lock().streaming;
        let fragments = match streaming {
            true => Beside::Remove(self.stream()),
            false => Beside::Keep,
        };
        self.server.engine.commit(seqno, writes, fragments);
        if !early {
            self.leave_order();
        }
        self.lock().state = State::OrderedCommit;
        self.server.engine.unlock(Owner::Local(self.client.id));
        if streaming {
            self.server.oracle.mark(Mark::StreamCommitted);
            self.server.streams.stop(self.client.id);
        }
        let mut inner = self.lock();
        self.release();
        inner.state = State::Committed;
    }

    pub(super) fn leave_order(&self) {
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
        let streaming = self.lock().streaming;
        let told = self.replay();
        if streaming {
            self.server.oracle.mark(Mark::StreamReplayed);
            self.server.streams.stop(self.client.id);
        }
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

    /// The others first, where they have fragments of it; then rows, then the place in commit order if there
    /// is one, then the transaction itself.
    fn roll_back(&self) {
        let ordered = {
            let mut inner = self.lock();
            if inner.streaming {
                self.client.end_stream(self.server, self.node, &mut inner);
            }
            inner.state = State::Aborted;
            inner.ordered
        };
        self.server.engine.unlock(Owner::Local(self.client.id));
        if let Some(seqno) = ordered {
            if self.node.commit_order_enter(&self.handle) == Answer::Done {
                self.server.engine.commit(seqno, &Writes::new(), Beside::Keep);
                self.leave_order();
            } else {
                self.server.must_be_withdrawn("a transaction that failed may not enter its order");
            }
        }
        self.release();
    }
}
