//! The handle of a running member.

use crate::error::GroupError;
use crate::forced::{self, ForcePlan};
use crate::leave;
use crate::machine::{Observer, StateMachine};
use crate::member::{memory_fault, Member};
use crate::membership::Wait;
use crate::open;
use crate::options::{GroupOptions, OpenInfo};
use crate::orders::{self, Alteration};
use crate::sequencer::Sequencer;
use crate::snapshot::Content;
use crate::status::GroupStatus;
use crate::switchover;
use crate::view::{View, ViewMember};
use bytes::Bytes;
use parking_lot::Mutex;
use quorate_consensus::{Charter, Event, Index, Rules, SnapshotMeta};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A running member. All methods may be called from any thread. Dropping it closes it, without
/// taking leave: to the others that is a crash.
pub struct Group {
    pub(crate) member: Arc<Member>,
    started: Mutex<bool>,
}

impl Group {
    /// Opens the log directory, starts listening and all threads except the sequencer.
    pub fn open(
        options: GroupOptions,
        observer: Arc<dyn Observer>,
    ) -> Result<(Group, OpenInfo), GroupError> {
        let (member, info) = open::open(options, observer)?;
        Ok((Group { member, started: Mutex::new(false) }, info))
    }

    /// The group this member belongs to; 0 as long as it belongs to none.
    pub fn group_id(&self) -> u128 {
        self.member.group.lock().0
    }

    /// What the group was founded with; all zero as long as this member belongs to none.
    pub fn charter(&self) -> Charter {
        self.member.group.lock().1
    }

    /// Blocks until this member belongs to a group (its configuration contains it) or `timeout`.
    /// Fails at once with [`GroupError::Refused`] when everybody asked refuses for good, as
    /// another group does. It goes on asking in either case.
    pub fn wait_joined(&self, timeout: Duration) -> Result<(), GroupError> {
        let node = || self.member.options.name.clone();
        match self.member.membership.wait_joined(Instant::now() + timeout) {
            Wait::Joined => Ok(()),
            Wait::Closed => Err(GroupError::Closed),
            Wait::Refused { addr, reason } => {
                Err(GroupError::Refused { node: node(), addr, reason })
            }
            Wait::TimedOut { reason } => {
                Err(GroupError::NotJoined { node: node(), waited: timeout, reason })
            }
        }
    }

    /// Starts the sequencer thread: restores the newest local snapshot that `accept` takes (it
    /// decodes the snapshot bytes, newest first; index 0 and no bytes = the empty state, offered
    /// last if the log reaches back to index 1), then feeds committed entries after it. Returns
    /// the index it starts from.
    ///
    /// [`GroupError::NeedsStateTransfer`] if `accept` takes none: the caller may try again with
    /// another state machine and an `accept` that takes any.
    pub fn start(
        &self,
        mut machine: Box<dyn StateMachine>,
        accept: &mut dyn FnMut(Index, &Bytes) -> bool,
    ) -> Result<Index, GroupError> {
        let mut started = self.started.lock();
        if *started {
            return Err(GroupError::AlreadyStarted);
        }
        let (meta, content) = self.starting_point(accept)?;
        let index = meta.last.index;
        let view = match content {
            Some(content) => {
                let restored = machine.restore(index, content.machine);
                restored
                    .map_err(|reason| GroupError::Snapshot { action: "continue from", reason })?;
                content.view
            }
            None => View::default(),
        };
        let sequencer = Sequencer::new(machine, meta, view);
        let member = self.member.clone();
        if !self.member.threads.spawn("sequencer", move || sequencer.run(&member)) {
            return Err(GroupError::NoThreads);
        }
        *started = true;
        Ok(index)
    }

    /// Queues a proposal and returns at once. It is sent again (same bytes) to each new leader
    /// until `decided(serial)`; so it may be committed more than once: the layer above drops
    /// duplicates by (member, incarnation, serial), which it puts into `data` itself.
    /// Serials are unique within this incarnation and ascending.
    ///
    /// The bytes are kept until then, however many: whoever proposes bounds them.
    pub fn propose(&self, serial: u64, data: Bytes) -> Result<(), GroupError> {
        self.member.propose(serial, data)
    }

    /// The sequencer saw this proposal committed, or the caller gives it up: stop sending it.
    pub fn decided(&self, serial: u64) {
        self.member.pending.decided(serial);
    }

    /// A linearizable read point: every entry committed before the call is at or below the
    /// returned index. Callers at the same time share one round.
    pub fn barrier(&self, timeout: Duration) -> Result<Index, GroupError> {
        let member = &self.member;
        let ask = |ctx| {
            member.with_core(|driver| driver.ignore_refusal(member, Event::ReadIndex { ctx }));
        };
        member.reads.wait(timeout, &ask).ok_or_else(|| match member.is_stopping() {
            true => GroupError::Closed,
            false => GroupError::NoLeader {
                waited: timeout,
                what: format!("node {} has no read point", member.options.name),
            },
        })
    }

    /// Reads the data of a committed entry back from the log (cache or disk): for appliers far
    /// behind.
    pub fn read(&self, index: Index) -> Result<Bytes, GroupError> {
        let mut entries = Vec::with_capacity(1);
        self.member.wal.read(index, 1, &mut entries)?;
        match entries.into_iter().next() {
            Some(entry) if entry.index == index && !entry.is_intact() => {
                let node = &self.member.options.name;
                Err(GroupError::LogFailed(memory_fault(node, &format!("log index {index}"))))
            }
            Some(entry) if entry.index == index => Ok(entry.data),
            _ => Err(GroupError::NotWritten { index }),
        }
    }

    /// Members of the newest view that this one hears from, itself included.
    pub fn reachable(&self) -> Vec<ViewMember> {
        let own = self.member.id;
        let view = self.member.progress.applied().view;
        let isolated = self.member.survival.is_isolated();
        let driver = self.member.core.lock();
        // Who lives asks for votes at least this often.
        let silence_max = self.member.options.election_timeout * 3;
        let here = |id| {
            let peer = driver.peers.get(&id);
            !isolated && peer.is_some_and(|p| p.known().is_connected() && p.silence() < silence_max)
        };
        view.members.into_iter().filter(|m| m.id == own || here(m.id)).collect()
    }

    /// The state machine is to see a view after the present one, even if nobody comes or goes.
    pub fn refresh_view(&self) {
        let member = &self.member;
        member.desk.want_view_after(member.progress.applied().view.number);
        member.notices.wake();
    }

    /// Reads the files of [`TlsOptions`](crate::TlsOptions) again; connections made from now on use
    /// them. Those that stand stay. On an error the former certificates stay in use.
    pub fn reload_tls(&self) -> Result<(), GroupError> {
        self.member.reload_tls()
    }

    pub fn status(&self) -> GroupStatus {
        self.member.status()
    }

    /// Hands leadership to the member of that name (`None`: to whoever is furthest), waits until it
    /// leads and gives back its name. Proposals wait meanwhile; none is lost or refused. Only the
    /// leader can: [`GroupError::Switchover`] says who that is.
    pub fn switchover(&self, to: Option<&str>, timeout: Duration) -> Result<String, GroupError> {
        switchover::switchover(&self.member, to, timeout)
    }

    /// Silence after which a member leaves the view, from now on.
    pub fn set_suspect_timeout(&self, timeout: Duration) {
        self.member.suspect_ms.store(timeout.as_millis() as u64, Ordering::Relaxed);
    }

    /// This member wants to have so many votes (`pc.weight`); waits up to `patience` until it has.
    /// It goes on asking after that.
    pub fn want_ballots(&self, ballots: u8, patience: Duration) {
        self.member.want_ballots(ballots, patience);
    }

    /// Cuts this member off from the others (`gmcast.isolate`), or lets it go on.
    pub fn isolate(&self, isolated: bool) {
        self.member.isolate(isolated);
    }

    /// Whether this member, one of two, may go on alone when the other one's process is gone
    /// (`pc.ignore_sb`). For why that is safe, and when it is refused, see `survive.rs`.
    pub fn allow_alone(&self, allowed: bool) {
        self.member.survival.allow(allowed);
    }

    /// Goes on alone now (`pc.bootstrap`), or says why that could lose acknowledged commits.
    /// Fine if there is a quorum.
    pub fn bootstrap(&self) -> Result<(), GroupError> {
        if self.member.status().primary {
            return Ok(());
        }
        self.member.bootstrap()
    }

    /// Gives the member of this name another role, weight or zone. A learner that is to vote does so
    /// when it has caught up. Returns when that is committed. Only the leader can.
    pub fn alter_member(
        &self,
        name: &str,
        alteration: &Alteration,
        timeout: Duration,
    ) -> Result<(), GroupError> {
        orders::alter(&self.member, name, alteration, timeout)
    }

    /// Removes the member of this name, running or not. Only the leader can.
    pub fn remove_member(&self, name: &str, timeout: Duration) -> Result<(), GroupError> {
        orders::remove(&self.member, name, timeout)
    }

    /// Sets the rules of the group: zones a commit needs, how weights count. Only the leader can.
    pub fn set_rules(&self, rules: Rules, timeout: Duration) -> Result<(), GroupError> {
        orders::set_rules(&self.member, rules, timeout)
    }

    /// What [`Group::force_quorum`] would do, and what may be lost by it. Changes nothing.
    pub fn plan_force_quorum(&self, keep: &[&str]) -> ForcePlan {
        forced::plan(&self.member, keep)
    }

    /// A majority is lost for good: makes the members of these names (this one among them) the
    /// group. Each must run and agree; if one has more in its log, it is the one to be told. The
    /// others never come back with their logs. `reason` stands in the log with the change.
    pub fn force_quorum(
        &self,
        keep: &[&str],
        reason: &str,
        timeout: Duration,
    ) -> Result<ForcePlan, GroupError> {
        forced::force(&self.member, keep, reason, timeout)
    }

    /// Leaves the group: removed from the voters (dead voters first, where the rest would have no
    /// majority), and from the view. Then `close`. Past the timeout it stays a (dead) voter.
    pub fn leave(&self, timeout: Duration) -> Result<(), GroupError> {
        leave::leave(&self.member, timeout)
    }

    /// Stops and joins all threads. Idempotent.
    pub fn close(&self) {
        self.member.close();
    }

    fn starting_point(
        &self,
        accept: &mut dyn FnMut(Index, &Bytes) -> bool,
    ) -> Result<(SnapshotMeta, Option<Content>), GroupError> {
        let member = &self.member;
        let failed = |reason: String| GroupError::Snapshot { action: "read", reason };
        for index in member.snapshots.list()? {
            // A file of which the log does not go on is of no use, a damaged one was reported.
            let usable = index >= member.wal.base().index;
            let Some((stored, content)) = member.snapshots.load(index).ok().filter(|_| usable)
            else {
                continue;
            };
            let content = Content::decode(content).map_err(|error| failed(error.to_string()))?;
            if accept(index, &content.machine) {
                return Ok((stored.meta, Some(content)));
            }
        }
        let log_base = member.wal.base().index;
        if log_base == 0 && accept(0, &Bytes::new()) {
            return Ok((SnapshotMeta::default(), None));
        }
        Err(GroupError::NeedsStateTransfer { log_base })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.close();
    }
}
