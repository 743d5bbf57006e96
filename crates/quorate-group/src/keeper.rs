//! Housekeeping, a few times a second and whenever something changes: tells the observer, and,
//! where this member leads, keeps views and membership as they should be.

use crate::driver::{Driver, Leadership};
use crate::machine::LogLevel;
use crate::member::Member;
use crate::net::peer::Known;
use crate::notices::Notice;
use crate::policy::{self, Presence};
use crate::progress::Applied;
use crate::view::ViewMember;
use crate::watches::Watches;
use parking_lot::Mutex;
use quorate_consensus::{follow, ConfigChange, EntryKind, Event, MemberId, Proposal, Status};
use quorate_wire::{LeaveAnswer, Packet, PeerIdentity};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What is asked of the keeper. Requests of other members to this one, as the leader it is or was,
/// are repeated by their senders until they are met.
#[derive(Default)]
pub(crate) struct Desk {
    state: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    /// Who wants to leave, and since when.
    leaving: BTreeMap<MemberId, Instant>,
    /// Somebody was cut off since view of this number, and wants a fresh one.
    fresh_view: Option<u64>,
    /// The state machine of this member has to see a view after this one.
    own_view: Option<u64>,
}

impl Desk {
    pub fn ask_removal(&self, member: &Member, leaver: MemberId) {
        self.state.lock().leaving.entry(leaver).or_insert_with(Instant::now);
        member.notices.wake();
    }

    pub fn ask_view(&self, member: &Member, number: u64) {
        let mut state = self.state.lock();
        state.fresh_view = state.fresh_view.max(Some(number));
        drop(state);
        member.notices.wake();
    }

    /// This member was cut off, or starts from a state in which it is in the view already: its
    /// state machine is to see a view after this one.
    pub fn want_view_after(&self, number: u64) {
        let mut state = self.state.lock();
        state.own_view = state.own_view.max(Some(number));
    }

    /// The number of the view that this member has to see a successor of, unless it has.
    fn own_view_wanted(&self, seen: u64) -> Option<u64> {
        let mut state = self.state.lock();
        state.own_view = state.own_view.filter(|number| *number >= seen);
        state.own_view
    }

    fn leaving(&self) -> Vec<(MemberId, Instant)> {
        self.state.lock().leaving.iter().map(|(id, since)| (*id, *since)).collect()
    }

    fn has_left(&self, id: MemberId) {
        self.state.lock().leaving.remove(&id);
    }

    /// Whether somebody needs a view newer than `number`. Older wishes are met.
    fn wants_view_after(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        state.fresh_view = state.fresh_view.filter(|wanted| *wanted >= number);
        state.fresh_view.is_some()
    }
}

/// The thread's own memory.
pub(crate) struct Keeper<'a> {
    member: &'a Member,
    /// When the last leader was lost, if there is none.
    leaderless: Option<Instant>,
    /// Ever had contact with a quorum.
    was_primary: bool,
    view_asked: Instant,
    pinged: Instant,
    /// Number of the view this leader has proposed, until it is seen; and the term it did so in.
    view_proposed: Option<(u64, u64)>,
    watches: Watches,
}

impl<'a> Keeper<'a> {
    pub fn new(member: &'a Member) -> Self {
        Self {
            member,
            leaderless: Some(member.opened),
            was_primary: false,
            view_asked: member.opened,
            pinged: member.opened,
            view_proposed: None,
            watches: Watches::new(member.opened),
        }
    }

    /// The thread.
    pub fn run(mut self) {
        let patience = self.member.options.heartbeat_interval() / 2;
        while !self.member.is_stopping() {
            let notices = self.member.notices.wait(patience);
            tell(self.member, notices);
            if !self.member.is_stopping() {
                self.round();
            }
        }
        tell(self.member, self.member.notices.wait(Duration::ZERO));
    }

    fn round(&mut self) {
        let member = self.member;
        let applied = member.progress.applied();
        let (status, mut leadership, reports, known) = {
            let driver = member.core.lock();
            let known: BTreeMap<_, _> =
                driver.peers.iter().map(|(id, peer)| (*id, peer.known())).collect();
            let status = driver.consensus.status(member.now_ms());
            (status, driver.leadership, driver.disk_reports, known)
        };
        if member.has_failed() {
            // Whatever the core believed last.
            (leadership.leader, leadership.is_leader) = (None, false);
        }
        member.keep_isolated();
        if !member.has_failed() {
            self.watches.look(member, &status, leadership.leader, reports);
        }
        self.contact(&status, &leadership, &applied);
        self.ask_for_admission(&status, &leadership);
        self.ask_for_view(&leadership, &applied);
        member.ask_for_ballots(&status.config, leadership.leader);
        if leadership.is_leader {
            self.view(&status, &leadership, &known, &applied);
            self.membership(&status, &leadership, &known);
            self.follow_writes(&status, &leadership, &known);
        }
        self.leavers(&status, &leadership, &known);
        member.reads.retry(member.options.election_timeout / 2);
        member.with_core(|driver| {
            driver.retry_deferred(member);
            member.survive_if_allowed(driver);
            self.drop_strangers(driver, &known);
            self.ping(driver);
        });
    }

    /// Reports whether there is contact with a quorum.
    fn contact(&mut self, status: &Status, leadership: &Leadership, applied: &Applied) {
        let member = self.member;
        let cut_off =
            member.survival.is_isolated() && !status.config.is_quorum(|id| id == member.id);
        let primary = member.primary.load(Ordering::Relaxed);
        if leadership.leader.is_some() && !cut_off {
            self.leaderless = None;
            if !primary {
                member.primary.store(true, Ordering::Relaxed);
                if self.was_primary {
                    member.desk.want_view_after(applied.view.number);
                }
                self.was_primary = true;
                member.observer.primary(true);
            }
            return;
        }
        let since = *self.leaderless.get_or_insert_with(Instant::now);
        let patient = since.elapsed() < member.options.primary_timeout;
        if primary && (!patient || cut_off) {
            member.primary.store(false, Ordering::Relaxed);
            member.observer.primary(false);
        }
    }

    /// A member without a leader for long, or of no group, asks around.
    fn ask_for_admission(&self, status: &Status, leadership: &Leadership) {
        let member = self.member;
        let alone = status.config.members.len() == 1;
        let belongs = status.config.members.contains_key(&member.id);
        let lost = self
            .leaderless
            .is_some_and(|since| since.elapsed() >= member.options.election_timeout * 2);
        let needed = !belongs || (lost && leadership.leader.is_none() && !alone);
        let may = !member.is_leaving() && !member.has_failed() && !member.survival.is_isolated();
        member.membership.set_asking(needed && may);
    }

    /// Asks the leader for the view that this member has to see.
    fn ask_for_view(&mut self, leadership: &Leadership, applied: &Applied) {
        let member = self.member;
        let wanted = member.desk.own_view_wanted(applied.view.number);
        let Some(number) = wanted.filter(|_| applied.started) else { return };
        let due = self.view_asked.elapsed() >= member.options.heartbeat_interval();
        let Some(leader) = leadership.leader.filter(|_| due) else { return };
        self.view_asked = Instant::now();
        if leadership.is_leader {
            member.desk.ask_view(member, number);
        } else {
            member.with_core(|driver| driver.send(leader, Packet::ViewRefresh { number }));
        }
    }

    /// Proposes the next view, one at a time, from where the own state machine stands.
    fn view(
        &mut self,
        status: &Status,
        leadership: &Leadership,
        known: &BTreeMap<MemberId, Known>,
        applied: &Applied,
    ) {
        let member = self.member;
        let current = &applied.view;
        let in_flight = self
            .view_proposed
            .is_some_and(|(number, term)| term == status.term && number > current.number);
        // What former leaders proposed is seen once an entry of the own term is.
        if !applied.started || applied.last.term != status.term || in_flight {
            return;
        }
        let presence = status
            .config
            .members
            .keys()
            .map(|id| (*id, self.presence(*id, status, leadership, known.get(id))))
            .collect();
        let refresh = member.desk.wants_view_after(current.number);
        let Some(view) = policy::next_view(current, &status.config, member.id, &presence, refresh)
        else {
            return;
        };
        let proposal = Proposal::new(EntryKind::View, view.encode());
        if member.step(Event::Propose(vec![proposal])).is_ok() {
            self.view_proposed = Some((view.number, status.term));
        }
    }

    fn presence(
        &self,
        id: MemberId,
        status: &Status,
        leadership: &Leadership,
        known: Option<&Known>,
    ) -> Presence {
        let member = self.member;
        if id == member.id {
            return Presence::Here(view_member(member.identity()));
        }
        let Some(known) = known else { return Presence::Unclear };
        let suspect = member.suspect_timeout();
        let leading = leadership.since.elapsed();
        if !known.is_connected() {
            let silent = known.last_contact.elapsed().min(leading);
            return match known.refused || silent >= suspect {
                true => Presence::Gone,
                false => Presence::Unclear,
            };
        }
        let silent = status.peers.iter().find(|peer| peer.id == id).map(|peer| peer.silent_ms);
        let silent = silent.map_or(leading, |ms| Duration::from_millis(ms).min(leading));
        if silent >= suspect {
            return Presence::Gone;
        }
        match &known.identity {
            Some(identity) => Presence::Here(view_member(identity.clone())),
            None => Presence::Unclear,
        }
    }

    /// Full members out of joining ones that caught up; new addresses of known members; expulsion
    /// of those gone for long.
    fn membership(
        &self,
        status: &Status,
        leadership: &Leadership,
        known: &BTreeMap<MemberId, Known>,
    ) {
        let member = self.member;
        if status.config.is_joint() || status.commit < status.config_index {
            return;
        }
        let own = member.identity();
        let connected = known.values().filter(|known| known.is_connected());
        let identities = connected.filter_map(|known| known.identity.as_ref()).chain([&own]);
        let silent_ms = member.options.election_timeout.as_millis() as u64;
        let alive = |id| id == member.id || known.get(&id).is_some_and(Known::is_connected);
        let change = policy::promotion(status, silent_ms)
            .or_else(|| policy::readdress(&status.config, identities))
            .or_else(|| member.ballots.change(&status.config, alive))
            .or_else(|| self.expulsion(status, leadership, known));
        if let Some(change) = change {
            self.change(change);
        }
    }

    /// Hands leadership to whom all writes come from, where the rules want that.
    fn follow_writes(
        &self,
        status: &Status,
        leadership: &Leadership,
        known: &BTreeMap<MemberId, Known>,
    ) {
        let member = self.member;
        if !status.config.rules.moves_with_writes() {
            return;
        }
        let may =
            |id| known.get(&id).is_some_and(Known::is_connected) && follow::may_follow(status, id);
        let led_ms = leadership.since.elapsed().as_millis() as u64;
        member.with_core(|driver| {
            let Some(to) = driver.writes.follow(member.id, led_ms, member.now_ms(), may) else {
                return;
            };
            let line = format!("all writes come from member {to}: leadership follows them");
            member.log(LogLevel::Info, line);
            driver.ignore_refusal(member, Event::TransferLeadership(to));
        });
    }

    /// Only what this leader saw itself counts: it waits for `expel_timeout` after its election.
    fn expulsion(
        &self,
        status: &Status,
        leadership: &Leadership,
        known: &BTreeMap<MemberId, Known>,
    ) -> Option<ConfigChange> {
        let member = self.member;
        let timeout = member.options.expel_timeout?;
        let silent = |id: MemberId| {
            let peer = status.peers.iter().find(|peer| peer.id == id);
            let heard = peer.map_or(Duration::ZERO, |peer| Duration::from_millis(peer.silent_ms));
            heard.min(leadership.since.elapsed())
        };
        let gone_for_long = |id| id != member.id && silent(id) >= timeout;
        let alive = |id| {
            id == member.id
                || (known.get(&id).is_some_and(Known::is_connected)
                    && silent(id) < member.options.suspect_timeout)
        };
        policy::expulsion(&status.config, gone_for_long, alive)
    }

    /// Removes those who asked for it, and tells them once that is committed.
    fn leavers(&self, status: &Status, leadership: &Leadership, known: &BTreeMap<MemberId, Known>) {
        let member = self.member;
        let committed = status.commit >= status.config_index && !status.config.is_joint();
        for (id, since) in member.desk.leaving() {
            if !status.config.members.contains_key(&id) {
                if !committed {
                    continue;
                }
                member.desk.has_left(id);
                if id == member.id {
                    member.membership.set_left();
                } else {
                    let done = Packet::LeaveAnswer(LeaveAnswer::Done);
                    member.with_core(|driver| driver.send(id, done));
                }
            } else if leadership.is_leader && committed {
                // A connection may outlive its process for a moment: whoever was heard since the
                // request lives, the others get a while to be heard or to disconnect.
                let heard = |id: MemberId| {
                    let peer = status.peers.iter().find(|peer| peer.id == id);
                    peer.is_some_and(|p| Duration::from_millis(p.silent_ms) < since.elapsed())
                };
                let connected = |id: MemberId| known.get(&id).is_some_and(Known::is_connected);
                let unclear = |other: MemberId| {
                    other != id && other != member.id && connected(other) && !heard(other)
                };
                let patient = since.elapsed() < 2 * member.options.election_timeout;
                if patient && status.config.voters().any(unclear) {
                    continue;
                }
                let alive = |id: MemberId| id == member.id || (connected(id) && heard(id));
                self.change(policy::removal(&status.config, id, alive));
            } else if !leadership.is_leader && id != member.id {
                // It asks the next leader.
                member.desk.has_left(id);
            }
        }
    }

    fn change(&self, change: ConfigChange) {
        let line = format!("membership: {change:?}");
        match self.member.step(Event::ChangeMembership(change)) {
            Ok(()) => self.member.log(LogLevel::Info, line),
            Err(refusal) => self.member.log(LogLevel::Debug, format!("{line}: {refusal}")),
        }
    }

    /// Followers have nothing to say to each other until they elect a leader; then a connection
    /// that is dead already would cost a try.
    fn ping(&mut self, driver: &mut Driver) {
        if self.pinged.elapsed() < self.member.options.election_timeout {
            return;
        }
        self.pinged = Instant::now();
        let peers: Vec<MemberId> = driver.peers.keys().copied().collect();
        peers.into_iter().for_each(|id| driver.send(id, Packet::Ping));
    }

    /// Lets go of peers that are in no configuration and not connected.
    fn drop_strangers(&self, driver: &mut Driver, known: &BTreeMap<MemberId, Known>) {
        for (id, known) in known {
            let stranger = !driver.config.members.contains_key(id) && !known.incoming;
            if stranger && known.last_contact.elapsed() >= self.member.suspect_timeout() {
                self.member.drop_peer(driver, *id);
            }
        }
    }
}

fn tell(member: &Member, notices: Vec<Notice>) {
    for notice in notices {
        match notice {
            Notice::Leader(term, leader) => {
                member.observer.leader(term, leader, leader == Some(member.id));
            }
            Notice::Rules(rules) => member.observer.rules(rules),
            Notice::Fatal(message) => member.observer.fatal(message),
            Notice::Log(level, message) => member.observer.log(level, message),
        }
    }
}

fn view_member(identity: PeerIdentity) -> ViewMember {
    ViewMember {
        id: identity.member,
        incarnation: identity.incarnation,
        name: identity.name,
        incoming: identity.incoming,
        addr: identity.addr,
    }
}
