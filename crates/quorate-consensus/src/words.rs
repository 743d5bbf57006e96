//! Roles, rules and changes in words, as operators write and read them.

use crate::config::{Config, ConfigChange, MemberInfo, MemberRole, Primaries, PriorityRule, Rules};
use crate::types::MemberId;
use std::fmt;

impl ConfigChange {
    /// With the names that members have `before` it.
    pub fn in_words(&self, before: &Config) -> String {
        match self {
            ConfigChange::Update { put, remove } => {
                let put = put.iter().map(|(_, info)| info.to_string());
                let removed = remove.iter().map(|id| removed(*id, before));
                put.chain(removed).collect::<Vec<_>>().join("; ")
            }
            ConfigChange::Expel(id) => format!("{}, for good", removed(*id, before)),
            ConfigChange::Rules(rules) => format!("rules {rules}"),
            ConfigChange::Level(level) => format!("feature level {level}"),
        }
    }
}

fn removed(id: MemberId, before: &Config) -> String {
    match before.members.get(&id) {
        Some(info) => format!("{} is removed (member {id})", info.name),
        None => format!("member {id} is removed"),
    }
}

impl fmt::Display for MemberInfo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, joining, priority, votes, key: _, zone, addr, name } = self;
        write!(out, "{name} at {addr} is a {role}")?;
        if *joining {
            out.write_str(" that has yet to catch up")?;
        }
        write!(out, " (priority {priority}, votes {votes}")?;
        if !zone.is_empty() {
            write!(out, ", zone {zone}")?;
        }
        out.write_str(")")
    }
}

impl fmt::Display for MemberRole {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            MemberRole::Voter => "voter",
            MemberRole::Learner => "learner",
            MemberRole::Logger => "logger",
        })
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let priorities = match self.priorities {
            PriorityRule::Optimistic => "optimistic",
            PriorityRule::Forced => "forced",
        };
        let mode = match self.primaries {
            Primaries::Multi => "multi",
            Primaries::Single => "single",
        };
        let failover = if self.failover_waits { "wait" } else { "serve" };
        let follows = if self.follows_writes { "yes" } else { "no" };
        write!(
            out,
            "zones={} priorities={priorities} primary_mode={mode} primary_failover={failover} \
             leader_follows_writes={follows}",
            self.zones_min
        )?;
        // As before, where it is not.
        if self.paused {
            out.write_str(" paused=yes")?;
        }
        if self.after {
            out.write_str(" consistency=after")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::MemberId;

    #[test]
    fn a_change_is_told_with_names() {
        let info = MemberInfo::new(MemberRole::Voter, "10.0.0.1:4567", "node1");
        let before = Config { members: [(MemberId(1), info.clone())].into(), ..Config::default() };
        let west = MemberInfo { joining: true, zone: "west".into(), ..info };
        let change =
            ConfigChange::Update { put: vec![(MemberId(1), west)], remove: vec![MemberId(1)] };
        assert_eq!(
            change.in_words(&before),
            "node1 at 10.0.0.1:4567 is a voter that has yet to catch up (priority 50, votes 1, zone \
             west); node1 is removed (member 00000000-0000-0000-0000-000000000001)"
        );
        assert_eq!(
            ConfigChange::Rules(Rules::default()).in_words(&before),
            "rules zones=0 priorities=optimistic primary_mode=multi primary_failover=serve \
             leader_follows_writes=no"
        );
        assert_eq!(ConfigChange::Level(2).in_words(&before), "feature level 2");
    }
}
