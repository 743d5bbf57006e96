//! The machine: which input goes where, and what follows from it.
//!
//! Invariants:
//! - an input is dealt with whole: reads, orders, housekeeping and proposals that it made possible
//!   are in the same output;
//! - a member that was closed, has failed or is isolated welcomes nobody.

mod greet;
mod housekeeping;
mod lines;
mod look;
mod snapshots;

pub use greet::Greeting;
pub use look::AtLength;

use self::lines::Lines;
use crate::alone::Alone;
use crate::driver::{Driver, Own};
use crate::error::{OrderError, StartError};
use crate::forward::Intake;
use crate::input::{Input, LogRoom};
use crate::lineage::Lineage;
use crate::membership::{admit, Departures, Joining, Membership, Views, VoteWishes};
use crate::noting::{self, Noting};
use crate::options::Options;
use crate::order::{Done, Order};
use crate::orders::Orders;
use crate::output::{Link, LogLevel, Output};
use crate::read::Reads;
use crate::rejected::Cause;
use crate::snapshot::Releases;
use crate::standing::Standings;
use crate::start::{restored, Directory};
use crate::view::View;
use crate::watch::{Contact, DiskWatch, HostWatch, RoomWatch, StandStill};
use quorate_consensus::{Config, Consensus, Event, MemberId, Restored, SnapshotMeta};
use quorate_wire::{Admission, JoinRequest, LeaveAnswer, Packet, PeerIdentity};
use std::time::Duration;

/// One member of a group. See the crate documentation for how to drive it.
pub struct Member {
    driver: Driver,
    membership: Membership,
    orders: Orders,
    noting: Noting,
    reads: Reads,
    standings: Standings,
    views: Views,
    alone: Alone,
    contact: Contact,
    disk: DiskWatch,
    room: RoomWatch,
    lines: Lines,
    log_room: LogRoom,
    stand_still: StandStill,
    /// What the log was last told of how much this member is needed.
    needed: Option<bool>,
    releases: Releases,
    host: HostWatch,
    /// The commit that the host is in the middle of.
    host_commit: Option<i64>,
    kept_house_ms: u64,
    pinged_ms: u64,
}

impl Member {
    /// A member as its directory left it, after [`crate::founding`], [`crate::check_starts`] and
    /// [`crate::fit`]. `newest` is the newest snapshot beside the log.
    pub fn new(
        options: Options,
        directory: Directory,
        newest: Option<(SnapshotMeta, View)>,
        now_ms: u64,
        out: &mut Output,
    ) -> Result<Member, StartError> {
        let own = Own {
            id: directory.member,
            incarnation: directory.incarnation,
            group: (directory.group, directory.charter),
        };
        let (newest, view) = newest.unzip();
        let lineage = Lineage::of(&directory, view.as_ref());
        let restored = restored(directory, newest, &options.dir, options.level)?;
        let (config, commit) = (latest_config(&restored), restored.commit);
        let consensus = Consensus::new(options.consensus(own.id), restored, now_ms);
        let mut driver = Driver::new(options, own, (consensus, commit), lineage, now_ms);
        driver.begin(config, out);
        if let Some(line) = driver.used_up() {
            out.log(LogLevel::Error, line);
        }
        Ok(Member {
            driver,
            membership: Membership {
                joining: Joining::default(),
                departures: Departures::default(),
                votes: VoteWishes::default(),
            },
            orders: Orders::default(),
            noting: Noting::default(),
            reads: Reads::default(),
            standings: Standings::default(),
            views: Views::default(),
            alone: Alone::default(),
            contact: Contact::new(now_ms),
            disk: DiskWatch::new(now_ms),
            room: RoomWatch::default(),
            lines: Lines::default(),
            log_room: LogRoom::Enough,
            stand_still: StandStill::default(),
            needed: None,
            releases: Releases::default(),
            host: HostWatch::new(now_ms),
            host_commit: None,
            kept_house_ms: now_ms,
            pinged_ms: now_ms,
        })
    }

    /// One thing that happened at `now_ms`, of a monotonic clock. `out` may hold the output of
    /// earlier steps, but see [`Input::Persisted`].
    pub fn step(&mut self, now_ms: u64, input: Input, out: &mut Output) {
        self.at(now_ms);
        self.dispatch(input, out);
        self.settle(out);
    }

    /// The log did not take all of `out`: nothing that stands on it leaves, and this member acknowledges
    /// nothing any more. False if that was so before.
    pub fn log_refused(&mut self, now_ms: u64, error: String, out: &mut Output) -> bool {
        if self.driver.failed {
            return false;
        }
        out.effects.clear();
        out.packets.clear();
        (out.feed, out.ask_room) = (None, None);
        self.step(now_ms, Input::LogFailed(error), out);
        true
    }

    /// Takes what was handed in, and empties it.
    pub fn take_in(&mut self, now_ms: u64, intake: &mut Intake, out: &mut Output) {
        self.at(now_ms);
        for (serial, data) in intake.proposals.drain(..) {
            self.driver.pending.push(serial, data);
        }
        for serial in intake.decided.drain(..) {
            self.driver.pending.decided(serial);
        }
        if let Some(peer) = intake.room.take() {
            self.room(peer);
        }
        if let Some(standing) = intake.standing.take() {
            self.standings.set_own(Some(standing));
        }
        for (kind, what) in intake.events.drain(..) {
            self.driver.saw(kind, what, None);
        }
        for order in intake.orders.drain(..) {
            if let Some(mandate) = order.mandate {
                self.noting.begin(order.id, &order.order, mandate, &self.driver, out);
            }
            self.order((order.id, order.order, order.deadline_ms), out);
        }
        self.settle(out);
    }

    /// The answer to somebody who wants to be a member.
    pub fn admit(
        &mut self,
        now_ms: u64,
        guest: PeerIdentity,
        request: &JoinRequest,
        out: &mut Output,
    ) -> Admission {
        self.at(now_ms);
        let admission = admit(&mut self.driver, guest, request, out);
        self.settle(out);
        admission
    }

    fn at(&mut self, now_ms: u64) {
        self.driver.now_ms = self.driver.now_ms.max(now_ms);
    }

    fn dispatch(&mut self, input: Input, out: &mut Output) {
        let Self { driver, views, lines, .. } = self;
        match input {
            Input::Tick { unix_ms } => {
                driver.set_clock(unix_ms);
                self.tick(out);
            }
            Input::Packet { from, packet } => self.packet(from, packet, out),
            Input::Forged(peer) => driver.reject(peer, Cause::Forged, out),
            Input::Heard(peer) => {
                driver.peers.heard(peer, driver.now_ms);
                driver.ignore_refusal(Event::Heard(peer), out);
            }
            Input::Connected(identity) => self.connected(identity, out),
            Input::Disconnected(peer) => {
                driver.peers.disconnected(peer, driver.now_ms);
                if !driver.closed {
                    lines.connection(
                        peer,
                        format!("connection to member {peer} lost"),
                        driver,
                        out,
                    );
                }
                driver.due = true;
            }
            Input::IncomingClosed { peer, connection } => {
                if driver.peers.incoming_closed(peer, connection, driver.now_ms, out) {
                    driver.due = true;
                    self.standings.forget(peer, driver, out);
                }
            }
            Input::NotThere { peer, dialled_ms } => {
                if driver.peers.absent(peer, dialled_ms) {
                    driver.ignore_refusal(Event::Unreachable(peer), out);
                    driver.due = true;
                }
            }
            Input::Refused { peer, refusal, key } => driver.refused(peer, &refusal, key, out),
            Input::Room(peer) => self.room(peer),
            Input::Asked { addr, answer } => {
                self.membership.joining.answered(addr, answer, driver, out);
                self.look_at_orders(out);
            }
            Input::Persisted(position) => {
                self.disk.moved(driver.now_ms);
                driver.persisted(position, out);
            }
            Input::LogFailed(error) => driver.log_failed(error, out),
            Input::Broken(what) => driver.broken(&what, out),
            Input::Fetched { to, from, entries } => {
                driver.ignore_refusal(Event::Fetched { to, from, entries }, out);
            }
            Input::FetchUnavailable { to } => {
                driver.ignore_refusal(Event::FetchUnavailable { to }, out);
            }
            Input::SnapshotNotStored(received) => driver.arrivals.end(&received),
            Input::SnapshotSent { to, last, ok } => {
                driver.ignore_refusal(Event::SnapshotSent { to, last, ok }, out);
            }
            Input::SnapshotTaken { needed, files } => {
                let applied = driver.applied.last.index;
                self.releases.note(files, needed, applied);
                out.release = self.due_release();
            }
            Input::Released { base, config } => {
                driver.ignore_refusal(Event::Compacted(base, config), out);
                out.log(LogLevel::Debug, format!("the log now starts after {}", base.index));
            }
            Input::Started(applied) => {
                driver.lineage.learn(&applied.view);
                (driver.applied, driver.started) = (applied, true);
                views.started(driver);
                driver.due = true;
            }
            Input::Unlogged(unlogged) => driver.unlogged = unlogged,
            // Threads that look at the same time may tell in any order.
            Input::Applied(applied) if applied.last.index < driver.applied.last.index => {}
            Input::Applied(applied) => {
                let other_view = driver.applied.view.number != applied.view.number;
                if other_view {
                    driver.lineage.learn(&applied.view);
                    self.standings.look_again();
                }
                driver.due |= other_view || driver.applied.last.term != applied.last.term;
                driver.applied = applied;
            }
            Input::Noted(id) => self.noting.noted(id),
            Input::Standing(own) => self.standings.set_own(own),
            Input::HostCommit(commit) => self.host_commit = commit,
            Input::LogRoom { room, warning, percent } => self.see_room(room, warning, percent, out),
            Input::ProcessIsolated(isolated) => {
                self.alone.isolate_process(isolated, driver, out);
            }
            Input::Close => self.close(out),
        }
    }

    fn packet(&mut self, from: MemberId, packet: Packet, out: &mut Output) {
        if self.driver.peers.is_foreign(from) {
            return self.driver.reject(from, Cause::OtherKey, out);
        }
        self.driver.peers.heard(from, self.driver.now_ms);
        if matches!(&packet, Packet::Consensus(message) if self.comes_too_early(message, out)) {
            return;
        }
        let Self { driver, membership, views, alone, .. } = self;
        match packet {
            Packet::Consensus(message) => {
                alone.received(&message, driver.now_ms);
                driver.note_handover(&message);
                driver.ignore_refusal(Event::Receive(message), out);
            }
            Packet::Forward(batch) => driver.propose_for_others(from, batch, out),
            Packet::LeaveRequest => {
                membership.departures.ask(from, driver);
                driver.look_soon_for(from);
            }
            Packet::ViewRefresh { .. } | Packet::WantVotes { .. } if !driver.is_member(from) => {
                driver.reject(from, Cause::NoMember, out);
            }
            Packet::LeaveAnswer(_) if !driver.leaving || !driver.is_member(from) => {
                driver.reject(from, Cause::Unasked, out);
            }
            Packet::LeaveAnswer(LeaveAnswer::Done) => {
                membership.departures.set_left();
                driver.changes += 1;
            }
            Packet::LeaveAnswer(LeaveAnswer::Later { reason }) => driver.reason = reason,
            Packet::ViewRefresh { number } => {
                views.ask(number, driver);
                driver.look_soon_for(from);
            }
            Packet::WantVotes { .. } if !driver.may_change(from) => {
                driver.reject(from, Cause::TooMuch, out);
            }
            Packet::WantVotes { votes } => {
                membership.votes.asked(from, votes);
                driver.look_soon_for(from);
            }
            Packet::Note(note) => noting::propose_for(from, note, driver, out),
            Packet::Standing(standing) => self.standings.heard(from, standing, driver, out),
            Packet::Ping => {}
            _ => driver.reject(from, Cause::OutOfPlace, out),
        }
    }

    fn connected(&mut self, identity: PeerIdentity, out: &mut Output) {
        let Self { driver, lines, .. } = self;
        let peer = identity.member;
        if driver.check_key(&identity).is_err() {
            // Its key became known after it was welcome.
            return out.links.push(Link::Break(peer));
        }
        lines.connection(peer, format!("connected to member {peer}"), driver, out);
        driver.peers.connected(identity, driver.now_ms, out);
        driver.ignore_refusal(Event::Connected(peer), out);
        if driver.leadership.leader == Some(peer) {
            driver.pending.requeue();
        }
        self.standings.introduce(peer, driver, out);
        driver.due = true;
    }

    fn room(&mut self, peer: MemberId) {
        if self.driver.leadership.leader == Some(peer) {
            self.driver.pending.room();
        }
    }

    fn order(&mut self, (id, order, deadline_ms): (u64, Order, u64), out: &mut Output) {
        let Self { driver, alone, views, .. } = self;
        let node = || driver.options.name.clone();
        let done = match order {
            _ if driver.closed => Err(OrderError::Closed),
            Order::ReadPoint => return self.reads.join(id, driver.now_ms, deadline_ms),
            Order::AwaitApplied { seqno, at_least } => {
                let times = (driver.now_ms, deadline_ms);
                return self.standings.wait(id, seqno, at_least, times);
            }
            // With a quorum there is nothing to do.
            Order::GoOnAlone if self.contact.is_primary() => Ok(()),
            Order::GoOnAlone => {
                let node = node();
                let gone_on = alone.go_on(driver, out);
                gone_on.map_err(|reason| OrderError::NotAlone { node, reason })
            }
            Order::Isolate(isolated) => {
                alone.isolate(isolated, driver, out);
                Ok(())
            }
            Order::AllowAlone(allowed) => {
                alone.allow(allowed);
                Ok(())
            }
            Order::RefreshView => {
                views.want_after(driver.applied.view.number);
                driver.due = true;
                Ok(())
            }
            Order::SuspectAfter(suspect_ms) => {
                driver.suspect_ms = suspect_ms;
                Ok(())
            }
            other => {
                let order = (id, other, deadline_ms);
                return self.orders.begin(order, driver, &mut self.membership, alone, out);
            }
        };
        out.answers.push((id, done.map(|()| Done::Nothing)));
    }

    /// Everybody who waits is told so.
    fn close(&mut self, out: &mut Output) {
        self.driver.closed = true;
        self.standings.look_again();
        self.look_at_orders(out);
        let closed = |id, _| out.answers.push((id, Err(OrderError::Closed)));
        self.reads.expire(u64::MAX, closed);
    }

    fn look_at_orders(&mut self, out: &mut Output) {
        self.orders.look(&mut self.driver, &mut self.membership, out);
    }

    /// What an input made possible.
    fn settle(&mut self, out: &mut Output) {
        self.answer_reads(out);
        self.standings.look(&mut self.driver, out);
        if self.driver.due {
            self.keep_house(out);
        }
        if self.orders.is_due(&self.driver) {
            self.look_at_orders(out);
        }
        self.noting.look(&mut self.driver, out);
        self.driver.send_pending(out);
    }

    fn answer_reads(&mut self, out: &mut Output) {
        loop {
            for ready in std::mem::take(&mut self.driver.read_points) {
                let answer = |id, index| out.answers.push((id, Ok(Done::ReadPoint(index))));
                self.reads.answered(ready, answer);
            }
            let Some(ctx) = self.reads.start_round(self.driver.now_ms) else { return };
            self.driver.ignore_refusal(Event::ReadIndex { ctx }, out);
        }
    }

    fn expire_reads(&mut self, out: &mut Output) {
        let Self { driver, reads, .. } = self;
        reads.give_up(driver.now_ms, driver.options.election_timeout_ms / 2);
        reads.expire(driver.now_ms, |id, waited_ms| {
            let what = format!("node {} has no read point", driver.options.name);
            let waited = Duration::from_millis(waited_ms);
            out.answers.push((id, Err(OrderError::NoLeader { waited, what })));
        });
    }
}

fn latest_config(restored: &Restored) -> Config {
    let latest = restored.configs.last().map(|(_, config)| config);
    latest.unwrap_or(&restored.snapshot.config).clone()
}
