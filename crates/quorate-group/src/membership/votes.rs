//! How many votes a member has (`pc.weight`): majorities are of votes.
//!
//! A member knows how many it wants; the configuration, and so the log, says how many it has. While
//! the two differ, it asks the leader, who changes the membership as for any other reason.

use super::policy::leaves_enough;
use crate::driver::Driver;
use crate::output::Output;
use quorate_consensus::{Config, ConfigChange, MemberId, MemberInfo};
use quorate_wire::Packet;
use std::collections::BTreeMap;

pub(crate) struct VoteWishes {
    wanted: u8,
    /// What others asked of this member, as the leader it is or was.
    asked: BTreeMap<MemberId, u8>,
}

impl Default for VoteWishes {
    fn default() -> Self {
        Self { wanted: 1, asked: BTreeMap::new() }
    }
}

impl VoteWishes {
    /// This member wants to have so many.
    pub fn want(&mut self, votes: u8) {
        self.wanted = votes;
    }

    /// Asks the leader, where this member has another number of votes than it wants.
    pub fn request(&mut self, driver: &Driver, out: &mut Output) {
        let Some(votes) = self.missing(&driver.config, driver.id) else { return };
        match driver.leader() {
            Some(leader) if leader == driver.id => self.asked(driver.id, votes),
            Some(leader) => out.send(leader, Packet::WantVotes { votes }),
            None => {}
        }
    }

    /// `member` wants so many. It asks again until it has them.
    pub fn asked(&mut self, member: MemberId, votes: u8) {
        self.asked.insert(member, votes);
    }

    /// What to change, if anybody asked for anything. Each is heard once. Those that live must be
    /// able to decide afterwards: a wish for fewer votes waits until the others are back.
    pub fn change(
        &mut self,
        config: &Config,
        alive: impl Fn(MemberId) -> bool,
    ) -> Option<(MemberId, ConfigChange)> {
        while let Some((id, votes)) = self.asked.pop_first() {
            let Some(info) = config.members.get(&id) else { continue };
            // Whoever joins asks when it is a voter: only then is it seen who can decide with that.
            if !info.is_voter() || info.votes == votes {
                continue;
            }
            let put = vec![(id, MemberInfo { votes, ..info.clone() })];
            let change = ConfigChange::Update { put, remove: Vec::new() };
            if leaves_enough(config, &change, &alive) {
                return Some((id, change));
            }
        }
        None
    }

    /// How many this member wants, if it has another number.
    pub fn missing(&self, config: &Config, own: MemberId) -> Option<u8> {
        let info = config.members.get(&own).filter(|info| info.is_voter())?;
        (info.votes != self.wanted).then_some(self.wanted)
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
        let mut wishes = VoteWishes::default();
        wishes.asked(MemberId(1), 0);
        wishes.asked(MemberId(2), 3);
        assert_eq!(wishes.change(&config, |_| true), None, "the last vote; a stranger");
        wishes.asked(MemberId(1), 3);
        let Some((_, ConfigChange::Update { put, .. })) = wishes.change(&config, |_| true) else {
            panic!("it has less");
        };
        assert_eq!((put[0].0, put[0].1.votes), (MemberId(1), 3));
        assert_eq!(wishes.change(&config, |_| true), None);
        wishes.asked(MemberId(1), 3);
        assert_eq!(wishes.change(&config, |_| false), None, "nobody could decide");
        let joining = MemberInfo { joining: true, ..config.members[&MemberId(1)].clone() };
        let mut config = config;
        config.members.insert(MemberId(2), joining);
        wishes.asked(MemberId(2), 255);
        assert_eq!(wishes.change(&config, |_| true), None, "it is no voter yet");
        assert_eq!(wishes.missing(&config, MemberId(1)), None);
    }
}
