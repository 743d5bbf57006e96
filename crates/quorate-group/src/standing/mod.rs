//! How the members' servers stand: what this member says of its own one, what the others say of theirs, and who waits
//! until others have applied something.
//!
//! A member says it with each heartbeat interval in which something changed, in place of a ping. Where clients of
//! another member wait for it, it says each step at once; and then the core tells all members of a commit at once.
//!
//! Invariants:
//! - nothing is waited for that a member said in an earlier life, or on an earlier connection: what it has applied may
//!   be less by now;
//! - a member of the view that has a server, and has not said anything yet or for long, is waited for. One that is not up
//!   to date is not: it says so as long as that is so.

mod told;
mod waits;

use crate::driver::Driver;
use crate::output::{Notice, Output, ServerStanding};
use crate::rejected::Cause;
use quorate_consensus::level::STANDINGS;
use quorate_consensus::{Event, Index, MemberId, AHEAD_MAX};
use quorate_wire::{Packet, Standing};
use std::collections::BTreeMap;
use told::Told;
use waits::{Present, Waits};

/// Between two looks at all standings that the host is given.
const PERIOD_MS: u64 = 1_000;
/// Election timeouts for which the last word of a member holds. It says something in each of them.
const SILENT_TIMEOUTS: u64 = 3;
/// A lag below this is none that matters.
const LAG_LEAST_MS: u32 = 1_000;

#[derive(Default)]
pub(crate) struct Standings {
    /// `None`: there is no server, as with a logger.
    own: Option<Standing>,
    told: Told,
    others: BTreeMap<MemberId, Other>,
    /// The last entry of the log that each member said it has passed, also of one that is gone. (Its log may have
    /// more; after a start of its server it says less for a moment.)
    passed: BTreeMap<MemberId, Index>,
    waits: Waits,
    shown_ms: u64,
    /// What the host was told of whether anybody waits for its server.
    awaited: bool,
    /// What the core was told of whether anybody waits for any server.
    any_awaited: bool,
}

struct Other {
    standing: Standing,
    /// Entries that were known to be committed then, and that it had not passed.
    uncertified: u64,
    heard_ms: u64,
    /// What it was told last that this member has applied.
    told: i64,
}

impl Other {
    /// Whether its clients wait for what it was not told of yet.
    fn waits_for(&self, own: &Standing) -> bool {
        self.standing.prompt && self.told < own.applied
    }
}

impl Standings {
    /// The host's word on its server. Threads that look at the same time may tell in any order; while this process
    /// lives, what is applied does not become less.
    pub fn set_own(&mut self, own: Option<Standing>) {
        let applied = |standing: &Option<Standing>| standing.map(|standing| standing.applied);
        if own.is_none() || applied(&own) >= applied(&self.own) {
            self.own = own;
        }
    }

    /// Another member's word on its server.
    pub fn heard(
        &mut self,
        from: MemberId,
        standing: Standing,
        driver: &mut Driver,
        out: &mut Output,
    ) {
        if !driver.is_member(from) {
            return driver.reject(from, Cause::NoMember, out);
        }
        let told = self.others.get(&from).map_or(-1, |other| other.told);
        if self.passed.insert(from, standing.index).is_none() {
            self.passed.retain(|id, _| driver.is_member(*id));
        }
        let uncertified = uncertified(&standing, driver);
        let other = Other { standing, uncertified, heard_ms: driver.now_ms, told };
        let before = self.others.insert(from, other).map(|other| lag_of(&other.standing));
        let lag = lag_of(&standing);
        if before != Some(lag) {
            driver.ignore_refusal(Event::Lag { member: from, lag: Some(lag) }, out);
        }
        self.waits.look_again();
    }

    /// What it said holds no more: its connection has ended, or another one took its place.
    pub fn forget(&mut self, member: MemberId, driver: &mut Driver, out: &mut Output) {
        if self.others.remove(&member).is_some() {
            driver.ignore_refusal(Event::Lag { member, lag: None }, out);
        }
    }

    /// There is a new connection to `peer`, on which nothing was said.
    pub fn introduce(&mut self, peer: MemberId, driver: &Driver, out: &mut Output) {
        if let Some(own) = self.own.filter(|_| may_say(driver) && driver.is_member(peer)) {
            self.say(peer, own, driver, out);
        }
    }

    /// The caller `order` waits until everybody who counts, or so many, have applied this.
    pub fn wait(&mut self, order: u64, seqno: i64, at_least: Option<u8>, times: (u64, u64)) {
        self.waits.join(order, seqno, at_least, times);
    }

    fn is_awaited(&self) -> bool {
        self.others.values().any(|other| other.standing.prompt)
    }

    /// After each input: says at once what somebody waits for, and answers who waits here.
    pub fn look(&mut self, driver: &mut Driver, out: &mut Output) {
        let awaited = self.is_awaited();
        if std::mem::replace(&mut self.awaited, awaited) != awaited {
            out.notices.push(Notice::Awaited(awaited));
        }
        let any_awaited = awaited || self.own.is_some_and(|own| own.prompt);
        if std::mem::replace(&mut self.any_awaited, any_awaited) != any_awaited {
            driver.ignore_refusal(Event::Awaited(any_awaited), out);
        }
        if let Some(own) = self.own {
            let waiting = self.others.values().any(|other| other.waits_for(&own));
            if waiting || self.told.is_other_state(&own) {
                self.say_now(own, driver, out);
            }
        }
        if self.waits.is_due() {
            let (present, able) = (self.present(driver), may_say(driver));
            self.waits.look(able, driver, &present, out);
        }
    }

    /// Time passed, there is another view, or this member closes.
    pub fn look_again(&mut self) {
        self.waits.look_again();
    }

    /// What a member said that has been silent for long holds no more.
    pub fn forget_silent(&mut self, driver: &mut Driver, out: &mut Output) {
        let patience_ms = SILENT_TIMEOUTS * driver.options.election_timeout_ms;
        let silent = |other: &Other| driver.now_ms.saturating_sub(other.heard_ms) > patience_ms;
        let silent = self.others.iter().filter(|(_, other)| silent(other)).map(|(id, _)| *id);
        for id in silent.collect::<Vec<_>>() {
            self.forget(id, driver, out);
        }
    }

    /// With the housekeeping: whether the members hear often enough of this one by it.
    pub fn keep_telling(&mut self, driver: &mut Driver, out: &mut Output) -> bool {
        let Some(own) = self.own.filter(|_| may_say(driver)) else { return false };
        self.show_host(own, driver, out);
        let interval_ms = match self.told.differs(&own) || !own.synced {
            true => driver.options.heartbeat_interval_ms(),
            false => driver.options.election_timeout_ms,
        };
        if self.told.is_older(driver.now_ms, interval_ms) {
            self.say_to_all(own, driver, out);
        }
        true
    }

    /// The last entry that `server` has passed, by what it said in the life of this process.
    pub fn passed_by(&self, server: MemberId) -> Index {
        self.passed.get(&server).copied().unwrap_or_default()
    }

    /// The last entry that is certainly on its disk. It may have passed what that does not have yet.
    pub fn logged_by(&self, server: MemberId) -> Index {
        self.passed_by(server).saturating_sub(AHEAD_MAX)
    }

    /// What another member said last.
    pub fn of(&self, member: MemberId) -> Option<Standing> {
        self.others.get(&member).map(|other| other.standing)
    }

    fn say_now(&mut self, own: Standing, driver: &mut Driver, out: &mut Output) {
        if !may_say(driver) {
            return;
        }
        if self.told.is_other_state(&own) {
            return self.say_to_all(own, driver, out);
        }
        let waiting = self.others.iter().filter(|(_, other)| other.waits_for(&own));
        let waiting = waiting.map(|(id, _)| *id);
        for id in waiting.collect::<Vec<_>>() {
            self.say(id, own, driver, out);
        }
    }

    fn say_to_all(&mut self, own: Standing, driver: &mut Driver, out: &mut Output) {
        let lag = lag_of(&own);
        if self.told.last().map(|last| lag_of(&last)) != Some(lag) {
            driver.ignore_refusal(Event::Lag { member: driver.id, lag: Some(lag) }, out);
        }
        self.told.note(own, driver.now_ms);
        let members = driver.peers.ids().into_iter().filter(|id| driver.is_member(*id));
        members.for_each(|id| self.say(id, own, driver, out));
    }

    fn say(&mut self, to: MemberId, own: Standing, driver: &Driver, out: &mut Output) {
        out.send(to, Packet::Standing(own));
        let reached = driver.peers.get(to).is_some_and(|peer| peer.outgoing);
        if let Some(other) = self.others.get_mut(&to).filter(|_| reached) {
            other.told = own.applied;
        }
    }

    /// What the host throttles its clients by.
    fn show_host(&mut self, own: Standing, driver: &Driver, out: &mut Output) {
        if driver.now_ms.saturating_sub(self.shown_ms) < PERIOD_MS {
            return;
        }
        self.shown_ms = driver.now_ms;
        let own = ServerStanding {
            member: driver.id,
            standing: own,
            uncertified: uncertified(&own, driver),
        };
        let members = driver.applied.view.members.iter();
        let others = members.filter_map(|member| {
            let Other { standing, uncertified, .. } = *self.others.get(&member.id)?;
            Some(ServerStanding { member: member.id, standing, uncertified })
        });
        out.notices.push(Notice::Standings([own].into_iter().chain(others).collect()));
    }

    /// The others of the view, which has none without a server: who counts, and how far each is.
    fn present(&self, driver: &Driver) -> Vec<Present> {
        let others = driver.applied.view.members.iter().filter(|member| member.id != driver.id);
        let present = others.filter_map(|member| {
            let said = self.of(member.id);
            let counts = said.is_none_or(|standing| standing.synced);
            let applied = said.map(|standing| standing.applied);
            counts.then_some(Present { member: member.id, applied })
        });
        present.collect()
    }
}

/// How much of what is committed that server has not certified.
fn uncertified(standing: &Standing, driver: &Driver) -> u64 {
    driver.commit().saturating_sub(standing.index)
}

/// Earlier releases do not read it.
fn may_say(driver: &Driver) -> bool {
    driver.config.level >= STANDINGS && !driver.closed && !driver.failed
}

/// How much rather others should lead: 0 for less than a second of lag, one more for each doubling.
fn lag_of(standing: &Standing) -> u8 {
    match standing.lag_ms {
        _ if standing.applied < 0 => u8::MAX,
        ..LAG_LEAST_MS => 0,
        lag_ms => 1 + (lag_ms / LAG_LEAST_MS).ilog2() as u8,
    }
}
