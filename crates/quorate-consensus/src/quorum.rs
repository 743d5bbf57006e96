//! Majorities, and pairs of majorities while a configuration is joint.
//!
//! Invariant: a decision counts only if a majority of the voters holds it *and*, in a joint
//! configuration, a majority of the outgoing voters too. A configuration without voters decides
//! nothing. A voter with several votes counts as so many voters of one mind, so that any two
//! majorities have somebody in common, as always. The rule of zones only ever asks for more, and only of commits: whatever is committed
//! is on a majority, so that whoever is elected by one has it.

use crate::config::Config;
use crate::types::{Index, MemberId};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tally {
    Won,
    Lost,
    Pending,
}

/// The greatest value that a quorum has reached, given what each voter has reached.
pub(crate) fn reached(config: &Config, value: impl Fn(MemberId) -> u64) -> u64 {
    let incoming = majority_reached(config.votes().map(&value));
    if config.is_joint() {
        incoming.min(majority_reached(config.outgoing.iter().copied().map(&value)))
    } else {
        incoming
    }
}

/// What is committed, given up to where each voter has the log on disk: a quorum has it, in as many zones as
/// the rules ask for.
pub(crate) fn held(config: &Config, value: impl Fn(MemberId) -> Index) -> Index {
    let by_majority = reached(config, &value);
    match config.rules.zones_min {
        0 | 1 => by_majority,
        _ => by_majority.min(zones_reached(config, value)),
    }
}

/// The greatest value that voters in as many zones have reached as the commit rule asks for.
pub(crate) fn zones_reached(config: &Config, value: impl Fn(MemberId) -> u64) -> u64 {
    let mut zones: BTreeMap<&str, u64> = BTreeMap::new();
    for (id, info) in config.members.iter().filter(|(_, info)| info.is_voter()) {
        let best = zones.entry(&info.zone).or_default();
        *best = value(*id).max(*best);
    }
    let mut best: Vec<u64> = zones.into_values().collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    let needed = usize::from(config.rules.zones_min.max(1));
    best.get(needed - 1).copied().unwrap_or(0)
}

/// How an election stands, given each voter's answer so far.
pub(crate) fn tally(config: &Config, answer: impl Fn(MemberId) -> Option<bool>) -> Tally {
    let incoming = majority_tally(config.votes().map(&answer));
    if !config.is_joint() {
        return incoming;
    }
    match (incoming, majority_tally(config.outgoing.iter().copied().map(&answer))) {
        (Tally::Won, Tally::Won) => Tally::Won,
        (Tally::Lost, _) | (_, Tally::Lost) => Tally::Lost,
        _ => Tally::Pending,
    }
}

fn majority_reached(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    // The smallest of the best `n / 2 + 1` values.
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn majority_tally(answers: impl Iterator<Item = Option<bool>>) -> Tally {
    let (mut voters, mut yes, mut no) = (0usize, 0usize, 0usize);
    for answer in answers {
        voters += 1;
        match answer {
            Some(true) => yes += 1,
            Some(false) => no += 1,
            None => {}
        }
    }
    let majority = voters / 2 + 1;
    if yes >= majority {
        Tally::Won
    } else if voters - no < majority {
        Tally::Lost
    } else {
        Tally::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{MemberInfo, MemberRole};

    fn config(voters: &[u128], outgoing: &[u128]) -> Config {
        let info = MemberInfo::new(MemberRole::Voter, "", "");
        Config {
            members: voters.iter().map(|id| (MemberId(*id), info.clone())).collect(),
            outgoing: outgoing.iter().map(|id| MemberId(*id)).collect(),
            ..Config::default()
        }
    }

    #[test]
    fn zones_are_counted_by_their_best_voter() {
        let mut five = config(&[1, 2, 3, 4, 5], &[]);
        for (id, info) in &mut five.members {
            info.zone = ["", "a", "a", "a", "b", "c"][id.0 as usize].into();
        }
        let have = |id: MemberId| [0, 9, 8, 7, 5, 3][id.0 as usize];
        let reached = |config: &Config, zones_min| {
            let rules = crate::Rules { zones_min, ..config.rules };
            zones_reached(&Config { rules, ..config.clone() }, have)
        };
        assert_eq!([0, 1, 2, 3, 4].map(|zones| reached(&five, zones)), [9, 9, 5, 3, 0]);
        if let Some(info) = five.members.get_mut(&MemberId(4)) {
            info.role = MemberRole::Learner;
        }
        assert_eq!(reached(&five, 2), 3, "a learner does not count");
    }

    #[test]
    fn nobody_decides_in_an_empty_configuration() {
        assert_eq!(reached(&config(&[], &[]), |_| 7), 0);
        assert_eq!(tally(&config(&[], &[]), |_| Some(true)), Tally::Lost);
    }

    #[test]
    fn a_majority_is_more_than_half() {
        let four = config(&[1, 2, 3, 4], &[]);
        assert_eq!(reached(&four, |id| [0, 9, 8, 7, 1][id.0 as usize]), 7);
        assert_eq!(tally(&four, |id| (id.0 <= 2).then_some(true)), Tally::Pending);
        assert_eq!(tally(&four, |id| Some(id.0 <= 2)), Tally::Lost);
        assert_eq!(tally(&four, |id| (id.0 <= 3).then_some(true)), Tally::Won);
    }

    #[test]
    fn a_joint_configuration_needs_both_majorities() {
        let joint = config(&[3, 4, 5], &[1, 2, 3]);
        // The new half has everything, the old half only member 3.
        assert_eq!(reached(&joint, |id| if id.0 >= 3 { 9 } else { 2 }), 2);
        assert_eq!(tally(&joint, |id| (id.0 >= 3).then_some(true)), Tally::Pending);
        assert_eq!(tally(&joint, |id| Some(id.0 >= 3)), Tally::Lost);
        assert_eq!(tally(&joint, |id| (id.0 >= 2 && id.0 <= 4).then_some(true)), Tally::Won);
    }

    #[test]
    fn votes_are_counted_not_voters() {
        let mut heavy = config(&[1, 2, 3], &[]);
        heavy.members.get_mut(&MemberId(1)).unwrap().votes = 3;
        let has = |id: MemberId| [0, 9, 4, 4][id.0 as usize];
        assert_eq!(reached(&heavy, has), 9, "three of five votes");
        let light = |id: MemberId| (id.0 > 1).then_some(true);
        assert_eq!(tally(&heavy, light), Tally::Pending);
        assert_eq!(tally(&heavy, |id| Some(id.0 == 1)), Tally::Won);
        assert_eq!(tally(&heavy, |id| Some(id.0 > 1)), Tally::Lost);
        assert!(heavy.is_quorum(|id| id.0 == 1) && !heavy.is_quorum(|id| id.0 > 1));
        heavy.members.get_mut(&MemberId(2)).unwrap().votes = 0;
        assert_eq!(heavy.votes().map(|id| id.0).collect::<Vec<_>>(), [1, 1, 1, 3]);
        heavy.outgoing = vec![MemberId(1), MemberId(2), MemberId(3)];
        assert!(!heavy.is_quorum(|id| id.0 == 1), "not of the outgoing ones");
    }
}
