//! What a logger keeps of its log for the servers.
//!
//! A snapshot stands for what is let go of; that of a logger has no rows. What only loggers have, and servers of which
//! the last disk is lost, no start and no state transfer brings back.
//!
//! Invariant: an entry that a logger lets go of is on the disk of some server in each majority.

use quorate_consensus::{Config, Index, MemberId, MemberInfo, MemberRole};

/// Servers that vote.
pub(crate) fn voting_servers(config: &Config) -> impl Iterator<Item = (&MemberId, &MemberInfo)> {
    let votes =
        |info: &MemberInfo| info.role == MemberRole::Voter && !info.joining && info.votes > 0;
    config.members.iter().filter(move |(_, info)| votes(info))
}

/// Up to where each majority has a server with the log on its disk; `logged` is where that of a server ends.
pub(crate) fn had_without_loggers(config: &Config, logged: impl Fn(MemberId) -> Index) -> Index {
    // Who leaves the group is not asked any more.
    let config = Config { outgoing: Vec::new(), ..config.clone() };
    let is_logger =
        |id: MemberId| config.members.get(&id).is_some_and(|info| info.role == MemberRole::Logger);
    let mut ends: Vec<(Index, MemberId)> =
        voting_servers(&config).map(|(id, _)| (logged(*id), *id)).collect();
    ends.sort_unstable();
    for (at, (end, _)) in ends.iter().enumerate() {
        let lacks = |id| ends[..=at].iter().any(|(_, other)| *other == id);
        if config.is_quorum(|id| is_logger(id) || lacks(id)) {
            return *end;
        }
    }
    Index::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers with logs up to these ends, and loggers.
    fn had(ends: &[Index], loggers: u128) -> Index {
        let servers = ends.len() as u128;
        let member = |id: u128| {
            let role = if id < servers { MemberRole::Voter } else { MemberRole::Logger };
            (MemberId(id), MemberInfo::new(role, "", id.to_string()))
        };
        let members = (0..servers + loggers).map(member).collect();
        let config = Config { members, ..Config::default() };
        had_without_loggers(&config, |id| ends[id.0 as usize])
    }

    #[test]
    fn what_a_majority_may_have_of_loggers_alone_is_kept() {
        assert_eq!(had(&[90, 30], 1), 30);
        assert_eq!(had(&[90, 0], 1), 0, "that said nothing yet");
        assert_eq!(had(&[90, 30, 20], 1), 30, "two of four are no majority");
        assert_eq!(had(&[90, 80, 30], 2), 30);
        assert_eq!(had(&[90, 80, 70, 30], 1), 70);
        assert_eq!(had(&[], 1), Index::MAX);
    }
}
