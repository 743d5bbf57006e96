//! Roles and rules in words, as operators write and read them.

use crate::config::{MemberRole, Primaries, PriorityRule, Rules};
use std::fmt;

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
        )
    }
}
