//! What the threads of one member share, and the way events go into the core.
//!
//! Lock order: core → (outbox of a peer | pending | reads | progress | notices | membership);
//! a peer's writer before its outbox. No two others are held together.

use crate::ballots::Ballots;
use crate::driver::{has_forward_room, Driver};
use crate::error::GroupError;
use crate::keeper::Desk;
use crate::lineage::Lineage;
use crate::machine::{LogLevel, Observer};
use crate::membership::Membership;
use crate::net::acceptor::Acceptor;
use crate::net::dial::Caller;
use crate::net::peer::Peer;
use crate::net::sender;
use crate::net::tls::Tls;
use crate::notices::{Notice, Notices};
use crate::options::GroupOptions;
use crate::pending::Pending;
use crate::progress::Progress;
use crate::reads::Reads;
use crate::snapshot::Snapshots;
use crate::status::GroupStatus;
use crate::survive::Survival;
use crate::threads::Threads;
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard, RwLock};
use quorate_consensus::{Charter, Event, LogPosition, MemberId, MemberInfo, MemberRole, StepError};
use quorate_wal::{Wal, WalError};
use quorate_wire::PeerIdentity;
use std::sync::atomic::{fence, AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

pub(crate) struct Member {
    pub this: Weak<Member>,
    pub options: GroupOptions,
    pub id: MemberId,
    pub incarnation: u32,
    pub wal: Wal,
    pub snapshots: Snapshots,
    pub core: Mutex<Driver>,
    pub pending: Pending,
    pub reads: Reads,
    pub progress: Progress,
    pub notices: Notices,
    pub membership: Membership,
    pub desk: Desk,
    pub acceptor: Acceptor,
    pub tls: RwLock<Option<Arc<Tls>>>,
    pub observer: Arc<dyn Observer>,
    pub threads: Threads,
    /// 0 until this member belongs to a group. Locked while it is written to disk.
    pub group: Mutex<(u128, Charter)>,
    pub opened: Instant,
    pub stopping: AtomicBool,
    pub failed: AtomicBool,
    /// Taking leave: does not ask to be admitted again.
    pub leaving: AtomicBool,
    pub primary: AtomicBool,
    /// Silence after which a member leaves the view; may be changed.
    pub suspect_ms: AtomicU64,
    pub survival: Survival,
    pub ballots: Ballots,
    pub lineage: Lineage,
    pub closing: Mutex<bool>,
}

impl Member {
    pub fn now_ms(&self) -> u64 {
        self.opened.elapsed().as_millis() as u64
    }

    /// Locks the core, runs `work`, and carries on what that caused.
    pub fn with_core<T>(&self, work: impl FnOnce(&mut Driver) -> T) -> T {
        let mut driver = self.core.lock();
        let result = work(&mut driver);
        self.finish(driver);
        result
    }

    pub fn suspect_timeout(&self) -> Duration {
        Duration::from_millis(self.suspect_ms.load(Ordering::Relaxed))
    }

    pub fn step(&self, event: Event) -> Result<(), StepError> {
        self.with_core(|driver| driver.step(self, event))
    }

    /// Releases the core: wakes the sequencer, writes to the peers, and takes care of what other
    /// threads queued while they found the lock taken.
    pub fn finish<'a>(&'a self, mut driver: MutexGuard<'a, Driver>) {
        loop {
            driver.drain_proposals(self);
            let touched = driver.take_touched();
            let fed = driver.take_fed();
            drop(driver);
            if let Some(fed) = fed {
                self.progress.advance(fed);
            }
            for peer in &touched {
                self.flush(peer);
            }
            if !self.pending.is_fresh() {
                return;
            }
            match self.core.try_lock() {
                Some(again) => driver = again,
                None => return,
            }
        }
    }

    fn flush(&self, peer: &Peer) {
        peer.flush();
        if has_forward_room(peer) {
            self.pending.feed_starved();
        }
    }

    /// Writes everything that waits for this peer. For its sender thread.
    pub fn flush_waiting(&self, peer: &Peer) {
        peer.flush_waiting();
        if has_forward_room(peer) {
            self.pending.feed_starved();
            self.kick();
        }
    }

    /// There is a connection to this peer.
    pub fn peer_connected(&self, peer: &Peer) {
        self.log(LogLevel::Info, format!("connected to member {}", peer.id));
        self.with_core(|driver| {
            driver.ignore_refusal(self, Event::Connected(peer.id));
            if driver.leadership.leader == Some(peer.id) {
                self.pending.requeue();
            }
        });
        self.notices.wake();
    }

    /// The connection to this peer is gone; whether its process is, the next one tells.
    pub fn peer_disconnected(&self, peer: &Peer) {
        if !self.is_stopping() {
            self.log(LogLevel::Info, format!("connection to member {} lost", peer.id));
            self.notices.wake();
        }
    }

    /// A new connection to this peer was refused: its process has ended.
    pub fn peer_unreachable(&self, peer: &Peer) {
        self.with_core(|driver| driver.ignore_refusal(self, Event::Unreachable(peer.id)));
        self.notices.wake();
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
        self.pending.push(serial, data);
        self.kick();
        Ok(())
    }

    /// Sends what waits, unless another thread holds the core: it looks again when it lets go.
    pub fn kick(&self) {
        if let Some(driver) = self.core.try_lock() {
            self.finish(driver);
        }
    }

    /// On the log's writer thread.
    pub fn on_sync(&self, synced: Result<LogPosition, Arc<WalError>>) {
        self.with_core(|driver| match synced {
            Ok(_) => driver.persisted(self),
            Err(error) => self.log_failed(driver, &error),
        });
    }

    /// A thread ended by a panic, which is a bug: nothing that this process says can be relied on.
    pub fn broken(&self, what: &str) {
        if !self.failed.swap(true, Ordering::SeqCst) {
            let node = &self.options.name;
            self.notices.push(Notice::Fatal(format!("a bug stopped node {node}: {what}")));
            self.core.lock().peers.values().for_each(|peer| peer.break_connection());
        }
    }

    /// The log failed, for good.
    pub fn log_failed(&self, driver: &mut Driver, error: &Arc<WalError>) {
        let fatal = format!("the log of node {} failed: {error}", self.options.name);
        self.withdraw(driver, fatal, error.to_string());
    }

    /// Takes no part any more, and says why, once.
    pub fn withdraw(&self, driver: &mut Driver, fatal: String, reason: String) {
        if !self.failed.swap(true, Ordering::SeqCst) {
            self.notices.push(Notice::Fatal(fatal));
            self.membership.set_reason(reason);
            driver.step_down(self);
        }
    }

    /// `what` is in this member's memory, and is not what was proposed any more.
    pub fn altered(&self, driver: &mut Driver, what: &str) {
        if !self.failed.swap(true, Ordering::SeqCst) {
            self.notices.push(Notice::Fatal(memory_fault(&self.options.name, what)));
            driver.step_down(self);
        }
    }

    pub fn failure(&self) -> GroupError {
        GroupError::LogFailed(format!("node {} acknowledges nothing any more", self.options.name))
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::SeqCst)
    }

    /// Queued, so that it may be called under any lock.
    pub fn log(&self, level: LogLevel, message: String) {
        self.notices.push(Notice::Log(level, message));
    }

    pub fn identity(&self) -> PeerIdentity {
        identity(&self.options, self.id, self.incarnation, *self.group.lock())
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
            identity: self.identity(),
            silence: self.options.suspect_timeout,
            connections: &self.acceptor.connections,
            tls: self.tls(),
        }
    }

    /// This member belongs to the group of `from` from now on (durably), unless it belongs to one
    /// already.
    pub fn adopt_group(&self, from: &PeerIdentity) -> Result<(), Arc<WalError>> {
        let mut own = self.group.lock();
        if own.0 == 0 && from.group != 0 {
            self.wal.save_group(from.group, from.charter)?;
            *own = (from.group, from.charter);
        }
        Ok(())
    }

    /// The peer of this id, with its sender thread, made if there was none.
    pub fn peer(&self, driver: &mut Driver, id: MemberId) -> Arc<Peer> {
        if let Some(peer) = driver.peers.get(&id) {
            return peer.clone();
        }
        let peer = Arc::new(Peer::new(id, self.options.suspect_timeout));
        driver.peers.insert(id, peer.clone());
        if self.is_stopping() {
            peer.stop();
            return peer;
        }
        if let Some(member) = self.this.upgrade() {
            let served = peer.clone();
            // The system shows six digits of it; the first of an id are those of its time.
            let name = format!("send-{:06x}", id.0 & 0xff_ffff);
            if !self.threads.spawn(&name, move || sender::run(&member, &served)) {
                self.log(LogLevel::Warn, format!("no thread to send to member {id}"));
            }
        }
        peer
    }

    /// Lets go of a peer that is neither in the configuration nor connected.
    pub fn drop_peer(&self, driver: &mut Driver, id: MemberId) {
        if let Some(peer) = driver.peers.remove(&id) {
            peer.stop();
        }
    }

    pub fn status(&self) -> GroupStatus {
        let core = {
            let driver = self.core.lock();
            driver.consensus.status(self.now_ms())
        };
        let applied = self.progress.applied();
        let stats = self.wal.stats();
        let those = |which: fn(&MemberInfo) -> bool| {
            let members = core.config.members.iter();
            members.filter(|(_, info)| which(info)).map(|(id, _)| *id).collect()
        };
        let leader = core.leader.filter(|_| !self.has_failed());
        GroupStatus {
            member: self.id,
            leader,
            is_leader: leader == Some(self.id),
            term: core.term,
            last_index: core.last.index,
            persisted_index: core.persisted,
            commit_index: core.commit,
            applied_index: applied.last.index,
            voters: those(MemberInfo::votes),
            learners: those(|info| !info.votes()),
            loggers: those(|info| info.role == MemberRole::Logger),
            config: core.config.clone(),
            log_bytes: stats.bytes,
            first_index: self.wal.base().index + 1,
            syncs: stats.syncs,
            sync_us_avg: stats.sync_us_sum as f64 / stats.syncs.max(1) as f64,
            sync_us_max: stats.sync_us_max,
            primary: self.primary.load(Ordering::Relaxed),
            proposals_pending: self.pending.count(),
            view_number: applied.view.number,
            log_warning: stats.warning,
        }
    }

    /// What a status request is answered with.
    pub fn report(&self) -> Vec<(String, String)> {
        let own = self.identity();
        let head = [
            ("name", own.name),
            ("group_name", own.group_name),
            ("group", format!("{:032x}", own.group)),
            ("incarnation", own.incarnation.to_string()),
            ("addr", own.addr),
            ("incoming", own.incoming),
        ];
        let mut lines: Vec<_> =
            head.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        lines.extend(self.status().lines());
        lines
    }

    /// Stops and joins everything. Callers wait for each other.
    pub fn close(&self) {
        let mut closed = self.closing.lock();
        if std::mem::replace(&mut *closed, true) {
            return;
        }
        self.stopping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.acceptor.close();
        let peers: Vec<_> = self.core.lock().peers.values().cloned().collect();
        peers.iter().for_each(|peer| peer.stop());
        self.membership.close();
        self.progress.stop();
        self.reads.close();
        self.snapshots.stop();
        self.notices.wake();
        self.threads.join();
        self.wal.close();
    }
}

/// Nothing that a host with such a memory says can be relied on.
pub(crate) fn memory_fault(node: &str, what: &str) -> String {
    format!(
        "the memory of node {node} is at fault: {what} is not what was proposed (its checksum does \
         not fit). It was not applied, and the node goes out of service; the other members are not \
         affected. Have the memory of its host tested before it is started again"
    )
}

/// How a member introduces itself.
pub(crate) fn identity(
    options: &GroupOptions,
    member: MemberId,
    incarnation: u32,
    (group, charter): (u128, Charter),
) -> PeerIdentity {
    PeerIdentity {
        member,
        incarnation,
        group,
        charter,
        group_name: options.group_name.clone(),
        name: options.name.clone(),
        addr: options.advertise.clone(),
        incoming: options.incoming.clone(),
    }
}
