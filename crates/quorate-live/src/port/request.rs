//! What an operator can ask for.

use super::document::{decode, encode, Unreadable};
use crate::net::trust::Privilege;
use quorate_consensus::{MemberRole, Primaries, PriorityRule, Rules, PRIORITY_MAX};
use quorate_group::Alteration;
use serde::{Deserialize, Serialize};

/// Longest name of a member or zone, and longest reason; more members than this, no group has.
const NAME_BYTES_MAX: usize = 255;
const REASON_BYTES_MAX: usize = 1000;
const KEEP_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Everything that a member knows.
    Status,
    /// What happened to the group, as far as it is kept.
    History,
    /// Hand leadership to the member of this name (none: to whoever is furthest). The leader does it.
    Switchover {
        to: Option<String>,
    },
    /// The leader does it, as the next two.
    MemberSet(MemberChange),
    MemberRemove {
        name: String,
    },
    Rules(RulesChange),
    /// What `force_quorum` would do on the member that is asked. Changes nothing.
    ForcePlan {
        keep: Vec<String>,
    },
    /// The member that is asked, and those it is to keep, go on without the others.
    ForceQuorum {
        keep: Vec<String>,
        reason: String,
    },
    /// The member that is asked gives its database up: its server ends, and its next start fetches another's.
    Reinit,
    /// Cuts the member that is asked off from the others, or lets it go on.
    Isolate {
        isolated: bool,
    },
}

/// What is to be different about a member; what is none stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberChange {
    pub name: String,
    #[serde(default)]
    pub role: Option<RoleWord>,
    /// 0 (never leads) to 100.
    #[serde(default)]
    pub priority: Option<u8>,
    #[serde(default)]
    pub zone: Option<String>,
}

/// What is to be different about the rules; what is none stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulesChange {
    #[serde(default)]
    pub zones: Option<u8>,
    #[serde(default)]
    pub priorities: Option<PriorityWord>,
    #[serde(default)]
    pub primary_mode: Option<ModeWord>,
    #[serde(default)]
    pub primary_failover: Option<FailoverWord>,
    #[serde(default)]
    pub leader_follows_writes: Option<bool>,
    #[serde(default)]
    pub paused: Option<bool>,
    #[serde(default)]
    pub consistency: Option<ConsistencyWord>,
}

/// What a member can be told to be. That a server becomes no logger, the machine says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleWord {
    Voter,
    Learner,
    Logger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityWord {
    Optimistic,
    Forced,
}

/// When a commit is answered: once it is safe, or once all members that are up to date have applied it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsistencyWord {
    Eventual,
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModeWord {
    Multi,
    Single,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailoverWord {
    Serve,
    Wait,
}

impl Request {
    pub fn encode(&self) -> Result<Vec<u8>, Unreadable> {
        encode(self)
    }

    /// Understood whole, and within bounds, or refused.
    pub fn decode(bytes: &[u8]) -> Result<Request, Unreadable> {
        let request: Request = decode(bytes)?;
        request.check().map_err(Unreadable::Malformed)?;
        Ok(request)
    }

    /// The least that an operator has to be allowed for it.
    pub fn needs(&self) -> Privilege {
        if self.is_order() {
            Privilege::All
        } else {
            Privilege::Read
        }
    }

    /// Whether something is to be done.
    pub fn is_order(&self) -> bool {
        !matches!(self, Request::Status | Request::History | Request::ForcePlan { .. })
    }

    /// Whether only the leader does it. Everything else is done where it is asked for.
    pub fn is_leaders(&self) -> bool {
        matches!(
            self,
            Request::Switchover { .. }
                | Request::MemberSet(_)
                | Request::MemberRemove { .. }
                | Request::Rules(_)
        )
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Request::Status
            | Request::History
            | Request::Reinit
            | Request::Isolate { .. }
            | Request::Switchover { to: None } => Ok(()),
            Request::Switchover { to: Some(name) } | Request::MemberRemove { name } => {
                check_name(name)
            }
            Request::MemberSet(change) => change.check(),
            Request::Rules(change) if *change == RulesChange::default() => {
                Err("no rule is given that is to change".into())
            }
            Request::Rules(_) => Ok(()),
            Request::ForcePlan { keep } => check_keep(keep),
            Request::ForceQuorum { keep, reason } => {
                check_keep(keep)?;
                match reason.trim().is_empty() || reason.len() > REASON_BYTES_MAX {
                    true => Err(format!("give a reason, of at most {REASON_BYTES_MAX} bytes")),
                    false => Ok(()),
                }
            }
        }
    }
}

impl MemberChange {
    fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        if self.priority.is_some_and(|priority| priority > PRIORITY_MAX) {
            return Err(format!("a priority is a number from 0 to {PRIORITY_MAX}"));
        }
        self.zone.as_deref().map_or(Ok(()), check_zone)?;
        match self.alteration() == Alteration::default() {
            true => Err("say what is to change: role, priority or zone".into()),
            false => Ok(()),
        }
    }

    pub(crate) fn alteration(&self) -> Alteration {
        let role = self.role.map(|role| match role {
            RoleWord::Voter => MemberRole::Voter,
            RoleWord::Learner => MemberRole::Learner,
            RoleWord::Logger => MemberRole::Logger,
        });
        Alteration { role, priority: self.priority, zone: self.zone.clone() }
    }
}

impl RulesChange {
    pub(crate) fn applied_to(&self, mut rules: Rules) -> Rules {
        rules.zones_min = self.zones.unwrap_or(rules.zones_min);
        rules.priorities = self.priorities.map_or(rules.priorities, |word| match word {
            PriorityWord::Optimistic => PriorityRule::Optimistic,
            PriorityWord::Forced => PriorityRule::Forced,
        });
        rules.primaries = self.primary_mode.map_or(rules.primaries, |word| match word {
            ModeWord::Multi => Primaries::Multi,
            ModeWord::Single => Primaries::Single,
        });
        rules.failover_waits =
            self.primary_failover.map_or(rules.failover_waits, |word| word == FailoverWord::Wait);
        rules.follows_writes = self.leader_follows_writes.unwrap_or(rules.follows_writes);
        rules.paused = self.paused.unwrap_or(rules.paused);
        rules.after = self.consistency.map_or(rules.after, |word| word == ConsistencyWord::After);
        rules
    }
}

/// Names of members are the servers': they may have spaces.
fn check_name(name: &str) -> Result<(), String> {
    match !name.is_empty() && name.len() <= NAME_BYTES_MAX {
        true => Ok(()),
        false => Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes")),
    }
}

/// Zones are named here, and stand in lists.
fn check_zone(zone: &str) -> Result<(), String> {
    match zone.len() <= NAME_BYTES_MAX && !zone.chars().any(char::is_whitespace) {
        true => Ok(()),
        false => Err(format!("a zone has at most {NAME_BYTES_MAX} bytes and no spaces")),
    }
}

fn check_keep(keep: &[String]) -> Result<(), String> {
    if keep.is_empty() || keep.len() > KEEP_MAX {
        return Err(format!("name the members to keep, 1 to {KEEP_MAX}"));
    }
    keep.iter().try_for_each(|name| check_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(body: &str) -> Result<Request, Unreadable> {
        Request::decode(format!("{{\"version\":1,\"body\":{body}}}").as_bytes())
    }

    #[test]
    fn a_request_is_said_as_it_is_documented_and_survives() {
        assert_eq!(decoded("\"status\""), Ok(Request::Status));
        let change = MemberChange { name: "n1".into(), priority: Some(7), ..<_>::default() };
        assert_eq!(
            decoded(r#"{"member_set":{"name":"n1","priority":7}}"#),
            Ok(Request::MemberSet(change))
        );
        for request in [
            Request::Switchover { to: None },
            Request::MemberRemove { name: "a server of ours".into() },
            Request::Rules(RulesChange { primary_mode: Some(ModeWord::Single), ..<_>::default() }),
            Request::ForceQuorum { keep: vec!["a".into()], reason: "fire".into() },
            Request::Isolate { isolated: true },
            Request::Reinit,
            Request::History,
        ] {
            let bytes = request.encode().unwrap();
            assert_eq!(Request::decode(&bytes), Ok(request));
        }
    }

    #[test]
    fn what_is_not_understood_in_whole_is_refused() {
        for body in [
            "null",
            "\"stop\"",
            r#"{"switchover":{"to":"a","now":true}}"#,
            r#"{"member_set":{"name":"a"}}"#,
            r#"{"member_set":{"name":"","priority":1}}"#,
            r#"{"member_set":{"name":"a","zone":"the west"}}"#,
            r#"{"member_set":{"name":"a","priority":101}}"#,
            r#"{"rules":{}}"#,
            r#"{"force_quorum":{"keep":["a"],"reason":" "}}"#,
            r#"{"force_plan":{"keep":[]}}"#,
        ] {
            assert!(matches!(decoded(body), Err(Unreadable::Malformed(_))), "{body}");
        }
        let later = Request::decode(br#"{"version":9,"body":{"new":1}}"#);
        assert_eq!(later, Err(Unreadable::Version { theirs: 9 }));
        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(decoded(&deep).is_err());
    }

    #[test]
    fn only_looking_needs_no_more_than_the_right_to_look() {
        let force = Request::ForceQuorum { keep: vec!["a".into()], reason: "r".into() };
        assert_eq!(Request::Status.needs(), Privilege::Read);
        assert_eq!(force.needs(), Privilege::All);
        assert!(!force.is_leaders() && Request::Switchover { to: None }.is_leaders());
    }
}
