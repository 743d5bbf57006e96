//! What the threads of one member share.

use crate::core::{Core, Hands};
use crate::error::GroupError;
use crate::feeding::Feeding;
use crate::host::Observer;
use crate::net::dial::{plain_line, Caller};
use crate::net::trust::{Credentials, OperatorId, Operators, Security, Trust};
use crate::options::GroupOptions;
use crate::spawn::Threads;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex, RwLock};
use quorate_consensus::{LogPosition, MemberId};
use quorate_group::{
    Author, Done, GroupStatus, Input, LogFigures, LogLevel, Mandate, Member, Order, Output,
};
use quorate_wal::WalError;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) struct Live {
    pub options: GroupOptions,
    pub id: MemberId,
    /// Between two ticks.
    pub tick_ms: u64,
    pub core: Core,
    pub hands: Arc<Hands>,
    pub feeding: Feeding,
    pub trust: RwLock<Arc<Trust>>,
    /// Which operators this member takes now.
    pub operators: RwLock<Operators>,
    /// Held while files are read and what they say is put in force: the last to ask has the last word.
    pub reloading: Mutex<()>,
    pub observer: Arc<dyn Observer>,
    pub threads: Threads,
    pub stopping: Mutex<bool>,
    pub stopped: Condvar,
    pub closing: Mutex<bool>,
}

impl Live {
    /// Runs `work` with the machine, at the present time, and carries out what that causes.
    pub fn with_machine<T>(&self, work: impl FnOnce(&mut Member, u64, &mut Output) -> T) -> T {
        self.core.with(work)
    }

    pub fn step(&self, input: Input) {
        self.core.step(input);
    }

    /// The time that the machine is told.
    pub fn now_ms(&self) -> u64 {
        self.hands.now_ms()
    }

    /// Has an order carried out, and waits for the answer; it comes after `timeout` at the latest.
    /// An operator's has a mandate.
    pub fn order(
        &self,
        order: Order,
        timeout: Duration,
        mandate: Option<Mandate>,
    ) -> Result<Done, GroupError> {
        let id = self.hands.answers.expect();
        let timeout_ms = timeout.as_millis().min(u32::MAX.into()) as u64;
        self.core.order(id, order, self.hands.now_ms() + timeout_ms, mandate);
        match self.hands.answers.wait(id) {
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
        self.core.propose(serial, data);
        Ok(())
    }

    /// On the log's writer thread. What a sync covers is asked of the log under the machine's lock:
    /// between the sync and now an entry may have been cut off and appended again under the same term
    /// and index, and that one is not on disk.
    pub fn on_sync(&self, synced: Result<LogPosition, Arc<WalError>>) {
        match synced {
            Ok(_) => {
                self.with_machine(|machine, now_ms, out| {
                    machine.step(now_ms, Input::Persisted(self.hands.wal.persisted()), out);
                });
                self.hands.snapshots.synced();
            }
            Err(error) => self.step(Input::LogFailed(error.to_string())),
        }
    }

    /// A thread ended by a panic, which is a bug: nothing that this process says can be relied on.
    pub fn broken(&self, what: &str) {
        self.step(Input::Broken(what.to_owned()));
        self.hands.answers.give_up();
    }

    pub fn failure(&self) -> GroupError {
        GroupError::LogFailed(format!(
            "node {} takes no part in its group until it is restarted: its error log says why. Nothing acknowledged is lost",
            self.options.name
        ))
    }

    pub fn has_failed(&self) -> bool {
        self.hands.has_failed()
    }

    pub fn is_stopping(&self) -> bool {
        self.hands.acceptor.connections.is_closed()
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
        self.hands.notices.log(level, message);
    }

    /// A line about a stranger, unless there was one a while ago.
    pub fn complain(&self, who: &str, reason: &str) {
        if let Some(line) = self.hands.acceptor.complaint(who, reason) {
            self.log(LogLevel::Warn, line);
        }
    }

    /// A connection in the clear where others are encrypted.
    pub fn warn_plain(&self, connection: &str) {
        self.complain(&format!("node {}", self.options.name), &plain_line(connection));
    }

    /// What new connections stand on.
    pub fn trust(&self) -> Arc<Trust> {
        self.trust.read().clone()
    }

    /// Reads secret or certificates again. All connections are made anew, in both directions: what they stood
    /// on may be revoked.
    pub fn reload_security(&self) -> Result<(), GroupError> {
        let _one_at_a_time = self.reloading.lock();
        self.reload()
    }

    fn reload(&self) -> Result<(), GroupError> {
        let (options, operators) = (&self.options, self.operators.read().clone());
        let read = Credentials::read(&options.security, &operators)?;
        let loaded = read.of_running_member(&options.dir)?;
        self.with_machine(|machine, now_ms, out| machine.show(now_ms, loaded.key, out))
            .map_err(|refusal| GroupError::OtherName { reason: refusal.text })?;
        if options.has_data() {
            read.write_transfer_files(&options.dir)?;
        }
        *self.trust.write() = Arc::new(loaded);
        self.hands.acceptor.connections.cut();
        self.core.break_links();
        Ok(())
    }

    /// Takes these operators from now on, also on connections that stand. With certificates the list says
    /// who is no member, too: so all connect anew. Where their files cannot be read, whoever was taken off
    /// the list has no right any more, and whoever was added has none yet.
    pub fn set_operators(&self, operators: Operators) -> Result<(), GroupError> {
        let _one_at_a_time = self.reloading.lock();
        self.check_revoked(&operators)?;
        let former = mem::replace(&mut *self.operators.write(), operators.clone());
        if former == operators || !matches!(self.options.security, Security::Certificates(_)) {
            return Ok(());
        }
        self.reload()
    }

    /// Where all are members that are no operators, none stops being one.
    pub fn check_revoked(&self, operators: &Operators) -> Result<(), GroupError> {
        match &self.options.security {
            Security::Certificates(files) if files.lets_in_all() => {}
            _ => return Ok(()),
        }
        let stays = |name: &str| operators.listed().iter().any(|other| other.name == name);
        let former = self.operators.read();
        let gone = former.listed().iter().map(|operator| operator.name.as_str());
        let gone: Vec<&str> = gone.filter(|name| !stays(name)).collect();
        match gone.is_empty() {
            true => Ok(()),
            false => Err(GroupError::OperatorAsMember { names: gone.join(", ") }),
        }
    }

    /// As [`Live::order`], by an operator: noted, with its author and the time.
    pub fn order_by(
        &self,
        author: Author,
        order: Order,
        timeout: Duration,
    ) -> Result<Done, GroupError> {
        self.order(order, timeout, Some(Mandate { author, given_ms: unix_ms() }))
    }

    /// What is left of the right of somebody who has shown this; `None`: it is not let in.
    pub fn admit(&self, shown: &OperatorId) -> Option<OperatorId> {
        self.operators.read().admit(shown)
    }

    pub fn caller(&self) -> Caller<'_> {
        Caller {
            identity: self.with_machine(|machine, _, _| machine.identity()),
            silence: self.options.suspect_timeout,
            connections: &self.hands.acceptor.connections,
            trust: self.trust(),
        }
    }

    pub fn status(&self) -> GroupStatus {
        let figures = self.log_figures();
        self.with_applied(|machine, now_ms, _| machine.status(now_ms, figures))
    }

    /// As [`Live::with_machine`], and the machine knows all that was fed until then.
    pub fn with_applied<T>(&self, work: impl FnOnce(&mut Member, u64, &mut Output) -> T) -> T {
        let applied = self.hands.gate.applied();
        self.with_machine(|machine, now_ms, out| {
            if let Some(applied) = applied {
                machine.step(now_ms, Input::Applied(applied), out);
            }
            work(machine, now_ms, out)
        })
    }

    pub fn log_figures(&self) -> LogFigures {
        let stats = self.hands.wal.stats();
        LogFigures {
            bytes: stats.bytes,
            max: Some(self.hands.log_max).filter(|max| *max < u64::MAX),
            first_index: self.hands.wal.base().index + 1,
            syncs: stats.syncs,
            sync_us_avg: stats.sync_us_avg(),
            sync_us_deviation: stats.sync_us_deviation(),
            sync_us_min: stats.sync_us_min,
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
        self.hands.acceptor.close();
        self.step(Input::Close);
        self.core.close_links();
        *self.stopping.lock() = true;
        self.stopped.notify_all();
        self.hands.gate.stop();
        self.hands.asks.stop();
        self.hands.snapshots.stop();
        self.hands.notices.stop();
        self.threads.join();
        self.hands.wal.close();
    }
}

/// Milliseconds since 1970, by the host's clock: only ever written down.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
