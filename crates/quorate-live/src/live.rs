//! What the threads of one member share.

use crate::answers::Answers;
use crate::asker::Asker;
use crate::core::{Core, Locked};
use crate::error::GroupError;
use crate::gate::Gate;
use crate::host::Observer;
use crate::net::acceptor::Acceptor;
use crate::net::dial::Caller;
use crate::net::peer::Peer;
use crate::net::tls::Tls;
use crate::notices::Notices;
use crate::options::GroupOptions;
use crate::snapshots::Snapshots;
use crate::threads::Threads;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex, RwLock};
use quorate_consensus::{LogPosition, MemberId};
use quorate_group::{Done, GroupStatus, Input, LogFigures, LogLevel, Member, Order, Output};
use quorate_wal::{Wal, WalError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

pub(crate) struct Live {
    pub this: Weak<Live>,
    pub options: GroupOptions,
    pub id: MemberId,
    /// Between two ticks.
    pub tick_ms: u64,
    pub wal: Wal,
    pub snapshots: Snapshots,
    pub core: Core,
    pub gate: Gate,
    pub notices: Notices,
    pub answers: Answers,
    pub asker: Asker,
    pub acceptor: Acceptor,
    pub tls: RwLock<Option<Arc<Tls>>>,
    pub observer: Arc<dyn Observer>,
    pub threads: Threads,
    pub opened: Instant,
    /// The log failed, or a bug was met: as the machine knows it, for those without its lock.
    pub failed: AtomicBool,
    pub stopping: Mutex<bool>,
    pub stopped: Condvar,
    pub closing: Mutex<bool>,
}

impl Live {
    pub fn now_ms(&self) -> u64 {
        self.opened.elapsed().as_millis() as u64
    }

    /// Runs `work` with the machine, at the present time, and carries out what that causes.
    pub fn with_machine<T>(&self, work: impl FnOnce(&mut Member, u64, &mut Output) -> T) -> T {
        self.core.with(self, work)
    }

    pub fn step(&self, input: Input) {
        self.with_machine(|machine, now_ms, out| machine.step(now_ms, input, out));
    }

    /// Has an order carried out, and waits for the answer; it comes after `timeout` at the latest.
    pub fn order(&self, order: Order, timeout: Duration) -> Result<Done, GroupError> {
        let id = self.answers.expect();
        let timeout_ms = timeout.as_millis().min(u32::MAX.into()) as u64;
        self.core.order(self, id, order, self.now_ms() + timeout_ms);
        match self.answers.wait(id) {
            Some(answer) => Ok(answer?),
            None => Err(self.failure()),
        }
    }

    pub fn propose(&self, serial: u64, data: Bytes) -> Result<(), GroupError> {
        if self.is_stopping() {
            return Err(GroupError::Closed);
        }
        if self.has_failed() {
            return Err(self.failure());
        }
        let limit = self.options.longest_proposal();
        if data.len() > limit {
            return Err(GroupError::TooLarge { bytes: data.len(), limit });
        }
        self.core.propose(self, serial, data);
        Ok(())
    }

    /// Writes what a thread with other things to do can write in passing.
    pub fn flush(&self, peer: &Peer) {
        peer.flush();
        if peer.take_room() {
            self.core.room(peer.id);
        }
    }

    /// Writes everything that waits for this peer. For its sender thread.
    pub fn flush_waiting(&self, peer: &Peer) {
        peer.flush_waiting();
        if peer.take_room() {
            self.core.room(peer.id);
            self.core.kick(self);
        }
    }

    /// The connection to this peer.
    pub fn peer(&self, id: MemberId) -> Option<Arc<Peer>> {
        self.core.with_links(self, |Locked { links, .. }| links.get(id))
    }

    /// On the log's writer thread. What a sync covers is asked of the log under the machine's lock:
    /// between the sync and now an entry may have been cut off and appended again under the same term
    /// and index, and that one is not on disk.
    pub fn on_sync(&self, synced: Result<LogPosition, Arc<WalError>>) {
        match synced {
            Ok(_) => self.with_machine(|machine, now_ms, out| {
                machine.step(now_ms, Input::Persisted(self.wal.persisted()), out);
            }),
            Err(error) => self.step(Input::LogFailed(error.to_string())),
        }
    }

    /// A thread ended by a panic, which is a bug: nothing that this process says can be relied on.
    pub fn broken(&self, what: &str) {
        self.step(Input::Broken(what.to_owned()));
        self.answers.give_up();
    }

    /// A panic left the machine in the middle of a step. Its thread may be one of the layer above,
    /// which catches it: so everybody is told.
    pub fn stepped_half(&self) {
        if !self.failed.swap(true, Ordering::SeqCst) {
            let node = &self.options.name;
            self.notices.fatal(format!(
                "a bug stopped node {node}: a panic in the core of the group, on thread {}",
                std::thread::current().name().unwrap_or("without a name")
            ));
        }
        self.answers.give_up();
    }

    pub fn note_failed(&self, failed: bool) {
        if failed {
            self.failed.store(true, Ordering::SeqCst);
        }
    }

    pub fn failure(&self) -> GroupError {
        GroupError::LogFailed(format!("node {} acknowledges nothing any more", self.options.name))
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub fn is_stopping(&self) -> bool {
        self.acceptor.connections.is_closed()
    }

    /// Waits; false if this member is closing.
    pub fn pause(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut stopping = self.stopping.lock();
        while !*stopping {
            if self.stopped.wait_until(&mut stopping, deadline).timed_out() {
                break;
            }
        }
        !*stopping
    }

    /// Queued, so that it may be called under any lock.
    pub fn log(&self, level: LogLevel, message: String) {
        self.notices.log(level, message);
    }

    /// What new connections are encrypted with.
    pub fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.read().clone()
    }

    /// Reads the certificates again, for connections from now on.
    pub fn reload_tls(&self) -> Result<(), GroupError> {
        let loaded = self.options.tls.as_ref().map(Tls::load).transpose()?;
        *self.tls.write() = loaded.map(Arc::new);
        Ok(())
    }

    pub fn caller(&self) -> Caller<'_> {
        Caller {
            identity: self.with_machine(|machine, _, _| machine.identity()),
            silence: self.options.suspect_timeout,
            connections: &self.acceptor.connections,
            tls: self.tls(),
        }
    }

    pub fn status(&self) -> GroupStatus {
        let figures = self.log_figures();
        let applied = self.gate.applied();
        self.with_machine(|machine, now_ms, out| {
            if let Some(applied) = applied {
                machine.step(now_ms, Input::Applied(applied), out);
            }
            machine.status(now_ms, figures)
        })
    }

    pub fn log_figures(&self) -> LogFigures {
        let stats = self.wal.stats();
        LogFigures {
            bytes: stats.bytes,
            first_index: self.wal.base().index + 1,
            syncs: stats.syncs,
            sync_us_avg: stats.sync_us_sum as f64 / stats.syncs.max(1) as f64,
            sync_us_max: stats.sync_us_max,
            warning: stats.warning,
        }
    }

    /// Stops and joins everything. Callers wait for each other.
    pub fn close(&self) {
        let mut closed = self.closing.lock();
        if std::mem::replace(&mut *closed, true) {
            return;
        }
        self.acceptor.close();
        self.step(Input::Close);
        self.core.with_links(self, |Locked { links, .. }| links.close());
        *self.stopping.lock() = true;
        self.stopped.notify_all();
        self.gate.stop();
        self.asker.stop();
        self.snapshots.stop();
        self.notices.stop();
        self.threads.join();
        self.wal.close();
    }
}
