//! Majorities, and pairs of majorities while a configuration is joint.
//!
//! Invariant: a decision counts only if a majority of the voters holds it *and*, in a joint
//! configuration, a majority of the outgoing voters too. A configuration without voters decides
//! nothing.

use crate::config::Config;
use crate::types::MemberId;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tally {
    Won,
    Lost,
    Pending,
}

/// The greatest value that a quorum has reached, given what each voter has reached.
pub(crate) fn reached(config: &Config, value: impl Fn(MemberId) -> u64) -> u64 {
    let incoming = majority_reached(config.voters().map(&value));
    if config.is_joint() {
        incoming.min(majority_reached(config.outgoing.iter().copied().map(&value)))
    } else {
        incoming
    }
}

/// How an election stands, given each voter's answer so far.
pub(crate) fn tally(config: &Config, answer: impl Fn(MemberId) -> Option<bool>) -> Tally {
    let incoming = majority_tally(config.voters().map(&answer));
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
        let info = MemberInfo { role: MemberRole::Voter, addr: String::new(), name: String::new() };
        Config {
            members: voters.iter().map(|id| (MemberId(*id), info.clone())).collect(),
            outgoing: outgoing.iter().map(|id| MemberId(*id)).collect(),
        }
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
}
