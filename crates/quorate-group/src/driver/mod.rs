//! The consensus core, the peers, and proposals on their way to the leader: what all other parts
//! stand on.
//!
//! Invariants:
//! - what the sequencer may read (`apply_limit`) is committed, and never goes back. The own disk may be the last one
//!   to have it ([`Consensus::showable`]): so after a crash the layer above may have seen more than the own log can
//!   show again (`unlogged`), and this member has no part in giving up a majority before it has come in again;
//! - a member whose log has failed steps its core no more.

mod asked;
mod deferred;
mod events;
mod leadership;
mod peers;
mod propose;
mod trust;

use leadership::Leadership;
pub(crate) use peers::{Peer, Peers};
#[cfg(test)]
pub(crate) use trust::check_key;

use deferred::Deferred;

use crate::error::{memory_fault, unreadable, StartError};
use crate::forward::Pending;
use crate::happened::Happened;
use crate::input::Applied;
use crate::lineage::Lineage;
use crate::options::Options;
use crate::output::{Link, LogLevel, Notice, Output, SnapshotOrder};
use crate::paced::Pace;
use crate::rejected::{Cause, Rejections};
use crate::snapshot::Arrivals;
use crate::view::ViewMember;
use quorate_consensus::placement::Writes;
use quorate_consensus::{
    Charter, Config, Consensus, Event, Fault, Index, LogPosition, MemberId, MemberInfo, Objection,
    PeerStatus, ReadReady, Rules, Status, StepError, Term, LEVEL_MIN,
};
use quorate_wire::PeerIdentity;

pub(crate) struct Driver {
    pub options: Options,
    pub id: MemberId,
    pub incarnation: u32,
    /// 0 until this member belongs to a group.
    pub group: (u128, Charter),
    pub peers: Peers,
    /// Of those that are admitted.
    admissions: Pace,
    pub config: Config,
    pub leadership: Leadership,
    /// Since when there is no leader, until that was said.
    leaderless_ms: Option<u64>,
    /// Where the state machine stands, once it was started.
    pub applied: Applied,
    pub started: bool,
    /// The database above has what this member's log has not got (again) yet.
    pub unlogged: bool,
    pub now_ms: u64,
    /// Silence after which a member leaves the view; may be changed.
    pub suspect_ms: u64,
    /// The log failed, or a bug was met: nothing is acknowledged any more.
    pub failed: bool,
    pub closed: bool,
    /// Taking leave: does not ask to be admitted again.
    pub leaving: bool,
    /// Why this member is not where it wants to be, for those who wait.
    pub reason: String,
    /// What somebody says of this member's state whose word does not count, until there is a leader.
    pub disputed: Option<String>,
    /// Something changed that housekeeping looks at.
    pub due: bool,
    /// Counts the leaders, terms and memberships seen.
    pub changes: u64,
    /// Answers of the core to reads, for whoever asked.
    pub read_points: Vec<ReadReady>,
    pub pending: Pending,
    pub lineage: Lineage,
    /// Leaders' snapshots that are being written.
    pub arrivals: Arrivals,
    /// What others said that did not count.
    pub rejections: Rejections,
    consensus: Consensus,
    commit: Index,
    apply_limit: Index,
    /// Others' proposals that cannot be proposed yet.
    deferred: Deferred,
    pub writes: Writes,
    /// What the observer knows.
    rules_known: Option<Rules>,
    happened: Happened,
    /// When the time of the calendar was last told, and that: see [`crate::Input::Tick`].
    clock: (u64, u64),
    /// Who led last, as far as this member knows, and whether it handed leadership to this one.
    led_by: Option<MemberId>,
    handed_over: bool,
}

/// Who this member is, and what group it belongs to.
pub(crate) struct Own {
    pub id: MemberId,
    pub incarnation: u32,
    pub group: (u128, Charter),
}

impl Driver {
    pub fn new(
        options: Options,
        own: Own,
        (consensus, commit): (Consensus, Index),
        lineage: Lineage,
        now_ms: u64,
    ) -> Self {
        let suspect_ms = options.suspect_ms;
        let writes = Writes::new(options.pace);
        let leadership = Leadership { since_ms: now_ms, ..Leadership::default() };
        Self {
            options,
            id: own.id,
            incarnation: own.incarnation,
            group: own.group,
            peers: Peers::default(),
            admissions: asked::admissions(),
            config: Config::default(),
            leadership,
            leaderless_ms: None,
            applied: Applied::default(),
            started: false,
            unlogged: false,
            now_ms,
            suspect_ms,
            failed: false,
            closed: false,
            leaving: false,
            reason: String::new(),
            disputed: None,
            due: true,
            changes: 0,
            read_points: Vec::new(),
            pending: Pending::default(),
            lineage,
            arrivals: Arrivals::default(),
            rejections: Rejections::default(),
            consensus,
            commit,
            apply_limit: 0,
            deferred: Deferred::default(),
            writes,
            rules_known: None,
            happened: Happened::default(),
            clock: (now_ms, 0),
            led_by: None,
            handed_over: false,
        }
    }

    /// Steps the core. A member whose log has failed hears nothing.
    pub fn step(&mut self, event: Event, out: &mut Output) -> Result<(), StepError> {
        if self.failed {
            return Err(StepError::NotLeader { leader: None });
        }
        let stepped = self.consensus.step(self.now_ms, event, &mut out.effects);
        self.take_effects(out);
        stepped
    }

    /// What a member says that starts with this configuration.
    pub fn begin(&mut self, config: Config, out: &mut Output) {
        self.config_changed(config, out);
        self.take_effects(out);
    }

    /// For events that the core cannot refuse in a way that matters to the caller.
    pub fn ignore_refusal(&mut self, event: Event, out: &mut Output) {
        if let Err(refusal) = self.step(event, out) {
            if !self.failed {
                out.log(LogLevel::Debug, format!("not now: {refusal}"));
            }
        }
    }

    /// See [`Consensus::who_may_decide`].
    pub fn who_may_decide(&self) -> impl Iterator<Item = (MemberId, Option<&MemberInfo>)> {
        self.consensus.who_may_decide()
    }

    pub fn status(&self) -> Status {
        self.consensus.status(self.now_ms)
    }

    pub fn last(&self) -> LogPosition {
        self.consensus.last()
    }

    pub fn term(&self) -> Term {
        self.consensus.term()
    }

    /// Whether the log has this position, or begins after it.
    pub fn agrees_with(&self, position: LogPosition) -> bool {
        self.consensus.agrees_with(position)
    }

    pub fn commit(&self) -> Index {
        self.commit
    }

    /// Whether this member leads, as far as anybody should know.
    pub fn leads(&self) -> bool {
        self.leadership.is_leader && !self.failed
    }

    /// Who leads, as far as this member can rely on it.
    pub fn leader(&self) -> Option<MemberId> {
        self.leadership.leader.filter(|_| !self.failed)
    }

    pub fn led_ms(&self) -> u64 {
        self.now_ms.saturating_sub(self.leadership.since_ms)
    }

    /// Where this member leads: the end of what all others have that are there and get on with its log. A log that
    /// stands still elsewhere, on a full disk for example, is not to fill the disk here.
    pub fn had_by_all(&self) -> Index {
        let status = self.status();
        let suspect_ms = self.options.suspect_ms;
        let gets_log = |peer: &&PeerStatus| {
            let is_there = peer.silent_ms <= suspect_ms && peer.still_ms <= 4 * suspect_ms;
            is_there && !peer.snapshotting
        };
        status.peers.iter().filter(gets_log).map(|peer| peer.matched).min().unwrap_or(Index::MAX)
    }

    pub fn identity(&self) -> PeerIdentity {
        let (group, charter) = self.group;
        PeerIdentity {
            member: self.id,
            incarnation: self.incarnation,
            group,
            charter,
            levels: (LEVEL_MIN, self.options.level),
            group_name: self.options.group_name.clone(),
            name: self.options.name.clone(),
            addr: self.options.advertise.clone(),
            incoming: self.options.incoming.clone(),
            key: self.options.key,
        }
    }

    /// This member belongs to the group of `from` from now on, unless it belongs to one already.
    pub fn adopt_group(&mut self, from: &PeerIdentity, out: &mut Output) {
        if self.group.0 == 0 && from.group != 0 {
            self.group = (from.group, from.charter);
            out.group = Some(self.group);
        }
    }

    /// The log has failed, for good: lead no more, acknowledge nothing. Connections stay, so that
    /// what the core says on its way out leaves.
    pub fn log_failed(&mut self, error: String, out: &mut Output) {
        let fatal = format!(
            "the log of node {} failed: {error}. This node acknowledges nothing more until it is restarted. What was \
             acknowledged to clients is safe: a majority has it on disk",
            self.options.name
        );
        self.withdraw(fatal, error, out);
    }

    /// `what` is in this member's memory, and is not what was proposed any more.
    pub fn altered(&mut self, what: &str, out: &mut Output) {
        let fatal = memory_fault(&self.options.name, what);
        self.withdraw(fatal.clone(), fatal, out);
    }

    /// The others say that this member is an older state of itself: it stops, for good.
    fn rolled_back(&mut self, reason: String, out: &mut Output) {
        if !self.failed {
            out.mark = Some(reason.clone());
            let dir = self.options.dir.clone();
            let error = StartError::RolledBack { dir, reason }.to_string();
            self.withdraw(format!("node {} stops: {error}", self.options.name), error, out);
        }
    }

    /// Takes no part any more, and says why, once.
    fn withdraw(&mut self, fatal: String, reason: String, out: &mut Output) {
        if self.failed {
            return;
        }
        out.notices.push(Notice::Fatal(fatal));
        self.reason = reason;
        let stepped = self.step(Event::StepDown, out);
        debug_assert!(stepped.is_ok());
        self.failed = true;
        self.due = true;
    }

    /// A bug was met: nothing that this member says can be relied on. The core, which may have been
    /// met by it half-way through a step, is not asked any more.
    pub fn broken(&mut self, what: &str, out: &mut Output) {
        if std::mem::replace(&mut self.failed, true) {
            return;
        }
        let node = &self.options.name;
        out.notices.push(Notice::Fatal(format!("a bug stopped node {node}: {what}")));
        self.peers.hang_up(out);
        self.due = true;
    }

    pub fn config_changed(&mut self, config: Config, out: &mut Output) {
        let others = self.consensus.everybody().filter(|(id, _)| *id != self.id);
        let placed = others.filter_map(|(id, info)| Some((id, info?.addr.clone()))).collect();
        self.peers.configured(placed, self.now_ms, out);
        let rules = config.rules;
        self.config = config;
        self.unmask(out);
        if self.rules_known.replace(rules) != Some(rules) {
            out.notices.push(Notice::Rules(rules));
        }
        self.changes += 1;
        self.due = true;
    }

    /// What this member is in its group, or was when it left.
    pub fn last_known(&self) -> Option<&MemberInfo> {
        self.consensus.last_known(self.id)
    }

    /// What of the core's effects is for this member itself; the rest stays in `out`.
    fn take_effects(&mut self, out: &mut Output) {
        if let Some(meta) = &out.effects.reset_log {
            out.install = Some(meta.last.index);
        }
        if let Some(commit) = out.effects.commit.take() {
            self.commit = self.commit.max(commit);
        }
        let limit = self.consensus.showable();
        if limit > self.apply_limit {
            self.apply_limit = limit;
            out.feed = Some(limit);
        }
        let term = self.consensus.term();
        let orders = out.effects.snapshots.drain(..).map(|to| SnapshotOrder { to, term });
        out.snapshots.extend(orders);
        self.read_points.append(&mut out.effects.reads);
        self.refuse_losers(out);
        for rejected in std::mem::take(&mut out.effects.rejected) {
            self.reject(rejected.from, Cause::Core(rejected.objection), out);
        }
        match out.effects.fault.take() {
            Some(Fault::Altered { index }) => self.altered(&format!("log index {index}"), out),
            Some(Fault::Unreadable { index, reason }) => {
                let fatal = unreadable(&self.options.name, index, &reason);
                self.withdraw(fatal.clone(), fatal, out);
            }
            None => {}
        }
        out.effects.stepped_down = false;
        if let Some(config) = out.effects.config.take() {
            self.config_changed(config, out);
        }
        if let Some(role) = out.effects.role.take() {
            self.role_changed(role, out);
        }
    }

    /// Something of `from` does not count.
    pub fn reject(&mut self, from: MemberId, cause: Cause, out: &mut Output) {
        if let Some(line) = self.rejections.note(from, cause, self.now_ms) {
            let level = if cause.may_be_honest() { LogLevel::Info } else { LogLevel::Warn };
            out.log(level, line);
        }
    }

    /// Why a majority is not to be given up with this member among those kept, as long as that is so.
    pub fn cannot_keep(&self) -> Option<&'static str> {
        if !self.arrivals.is_empty() {
            Some("a snapshot that a leader sent is being written here: try again then")
        } else if !self.started {
            Some("where the database of this node stands is not known yet: try again then")
        } else if self.unlogged {
            Some(
                "its database has commits that its log has not, or takes in a state that may have, and what the \
                 group has not must not be in it. Start this server again, then give the order again: that gives \
                 up a state transfer, and looks anew whether the log has the commits. If it is refused again, the \
                 log lost them in a crash. Then another server that is left may have them in its log: give the \
                 order without this one, and compare the seqnos (see 'A majority is lost' in the documentation) \
                 before anything is written and before any directory is emptied",
            )
        } else {
            None
        }
    }

    /// Whether this is a member, in the configuration in force or, while that changes, in the one before.
    pub fn is_member(&self, id: MemberId) -> bool {
        self.config.members.contains_key(&id) || self.config.is_voter(id)
    }

    /// What to do where the terms of this member are used up.
    pub fn used_up(&self) -> Option<String> {
        let (node, term) = (&self.options.name, self.term());
        self.consensus.terms_are_used_up().then(|| {
            format!(
                "the file of term and vote of node {node} says term {term}, which is so near the last one that \
                 nobody can be elected any more: the file was damaged, or written by somebody. No data is \
                 affected. If the other nodes have a leader, stop this one, empty its log directory, and start \
                 it: it joins anew. If they have none, order a forced quorum (force-quorum) that keeps all of \
                 them, on the node with the longest log: it begins the terms anew"
            )
        })
    }

    /// See [`Consensus::objects_to_leader`].
    pub fn objects_to_leader(&self, from: MemberId, term: Term) -> Option<Objection> {
        self.consensus.objects_to_leader(from, term)
    }

    /// Members whose logs were rolled back are heard no more.
    fn refuse_losers(&mut self, out: &mut Output) {
        while let Some(id) = out.effects.lost_entries.pop() {
            if self.lineage.lost_entries(id) {
                let line = format!(
                    "member {id} has less on disk than it had acknowledged: its log was rolled back \
                     or lost writes; it does not count any more, and is told so"
                );
                out.log(LogLevel::Error, line);
            }
            out.links.push(Link::Cut(id));
        }
    }

    /// Everything that a view tells of this member.
    pub fn view_member(&self) -> ViewMember {
        self.identity().into()
    }

    /// Lets go of peers that are in no configuration and not connected.
    pub fn drop_strangers(&mut self, out: &mut Output) {
        let patience = self.suspect_ms;
        for id in self.peers.strangers(self.now_ms, patience) {
            self.peers.remove(id);
            out.links.push(Link::Drop(id));
        }
    }
}
