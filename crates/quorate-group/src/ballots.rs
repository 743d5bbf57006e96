//! How many votes a member has (`pc.weight`): majorities are of votes.
//!
//! A member knows how many it wants; the configuration, and so the log, says how many it has. While
//! the two differ, it asks the leader, who changes the membership as for any other reason.

use crate::member::Member;
use parking_lot::Mutex;
use quorate_consensus::{Config, ConfigChange, MemberId, MemberInfo};
use quorate_wire::Packet;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

pub(crate) struct Ballots {
    wanted: AtomicU8,
    /// What others asked of this member, as the leader it is or was.
    asked: Mutex<BTreeMap<MemberId, u8>>,
}

impl Default for Ballots {
    fn default() -> Self {
        Self { wanted: AtomicU8::new(1), asked: Mutex::default() }
    }
}

impl Ballots {
    /// `member` wants so many. It asks again until it has them.
    pub fn asked(&self, member: MemberId, ballots: u8) {
        self.asked.lock().insert(member, ballots);
    }

    /// What to change, if anybody asked for anything. Each is heard once. Those that live must be
    /// able to decide afterwards: a wish for fewer votes waits until the others are back.
    pub fn change(
        &self,
        config: &Config,
        alive: impl Fn(MemberId) -> bool,
    ) -> Option<ConfigChange> {
        let mut asked = self.asked.lock();
        while let Some((id, ballots)) = asked.pop_first() {
            let Some(info) = config.members.get(&id) else { continue };
            if info.ballots == ballots {
                continue;
            }
            let mut after = config.clone();
            let info = MemberInfo { ballots, ..info.clone() };
            after.members.insert(id, info.clone());
            if after.is_quorum(&alive) {
                return Some(ConfigChange::Update { put: vec![(id, info)], remove: Vec::new() });
            }
        }
        None
    }

    fn missing(&self, config: &Config, own: MemberId) -> Option<u8> {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let info = config.members.get(&own).filter(|info| info.votes())?;
        (info.ballots != wanted).then_some(wanted)
    }
}

impl Member {
    /// Called by the keeper each heartbeat interval.
    pub fn ask_for_ballots(&self, config: &Config, leader: Option<MemberId>) {
        let Some(ballots) = self.ballots.missing(config, self.id) else { return };
        match leader {
            Some(leader) if leader == self.id => self.ballots.asked(self.id, ballots),
            Some(leader) => {
                self.with_core(|driver| driver.send(leader, Packet::Ballots { ballots }))
            }
            None => {}
        }
    }

    /// Wants so many votes from now on, and waits a moment for them.
    pub fn want_ballots(&self, ballots: u8, patience: Duration) {
        self.ballots.wanted.store(ballots, Ordering::Relaxed);
        self.notices.wake();
        let deadline = Instant::now() + patience;
        self.membership.wait_changed(deadline, || {
            let driver = self.core.lock();
            let config = &driver.config;
            let settled = !config.is_joint() && self.ballots.missing(config, self.id).is_none();
            settled || driver.leadership.leader.is_none() || self.is_stopping()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::MemberRole;

    #[test]
    fn each_wish_is_heard_once_and_none_takes_the_last_vote() {
        let info = MemberInfo::new(MemberRole::Voter, "a:1", "n");
        let config = Config { members: [(MemberId(1), info)].into(), ..Config::default() };
        let ballots = Ballots::default();
        ballots.asked(MemberId(1), 0);
        ballots.asked(MemberId(2), 3);
        assert_eq!(ballots.change(&config, |_| true), None, "the last vote; a stranger");
        ballots.asked(MemberId(1), 3);
        let Some(ConfigChange::Update { put, .. }) = ballots.change(&config, |_| true) else {
            panic!("it has less");
        };
        assert_eq!((put[0].0, put[0].1.ballots), (MemberId(1), 3));
        assert_eq!(ballots.change(&config, |_| true), None);
        ballots.asked(MemberId(1), 3);
        assert_eq!(ballots.change(&config, |_| false), None, "nobody could decide");
        assert_eq!(ballots.missing(&config, MemberId(1)), None);
    }
}
