//! What an operator orders of the membership. The leader carries it out, and says when it is done.

use crate::error::GroupError;
use crate::machine::LogLevel;
use crate::member::Member;
use quorate_consensus::{
    Config, ConfigChange, Event, MemberId, MemberInfo, MemberRole, Rules, StepError,
};
use std::time::{Duration, Instant};

/// What is to be different; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alteration {
    pub role: Option<MemberRole>,
    /// 0 (never leads) to 100.
    pub weight: Option<u8>,
    pub zone: Option<String>,
}

pub(crate) fn alter(
    member: &Member,
    name: &str,
    alteration: &Alteration,
    timeout: Duration,
) -> Result<(), GroupError> {
    carry_out(member, timeout, |config| {
        let (id, info) = find(config, name)?;
        let is_logger = |role| role == MemberRole::Logger;
        if alteration.role.is_some_and(|role| is_logger(role) != is_logger(info.role)) {
            let what = if is_logger(info.role) { "logger" } else { "server" };
            return Err(format!(
                "{name} is a {what}: a logger has no database and never becomes a server, nor a \
                 server a logger; remove it, and start the other in its place"
            ));
        }
        let altered = altered(info, alteration);
        let change = ConfigChange::Update { put: vec![(id, altered.clone())], remove: Vec::new() };
        Ok((*info != altered).then_some(change))
    })
}

pub(crate) fn remove(member: &Member, name: &str, timeout: Duration) -> Result<(), GroupError> {
    let mut gone = None;
    carry_out(member, timeout, move |config| {
        // Asked again after it went, the name is not known any more.
        let (id, _) = match gone {
            Some(id) if !config.members.contains_key(&id) => return Ok(None),
            _ => find(config, name)?,
        };
        gone = Some(id);
        Ok(Some(ConfigChange::Update { put: Vec::new(), remove: vec![id] }))
    })
}

pub(crate) fn set_rules(
    member: &Member,
    rules: Rules,
    timeout: Duration,
) -> Result<(), GroupError> {
    carry_out(member, timeout, |config| {
        Ok((config.rules != rules).then_some(ConfigChange::Rules(rules)))
    })
}

/// Asks the core for whatever `change` finds to be done, until that is nothing, and the membership
/// is committed. What has been asked for may cost this member the leadership (its own vote, say):
/// then it is done once this member sees it committed, and lost if another leads without it.
fn carry_out(
    member: &Member,
    timeout: Duration,
    mut change: impl FnMut(&Config) -> Result<Option<ConfigChange>, String>,
) -> Result<(), GroupError> {
    let deadline = Instant::now() + timeout;
    let refused = |reason| GroupError::Membership { node: member.options.name.clone(), reason };
    let mut asked = false;
    loop {
        let seen = member.membership.changes();
        let status = member.core.lock().consensus.status(member.now_ms());
        let leads = status.leader == Some(member.id);
        if !leads && !asked {
            return Err(refused(not_leading(&status.config, status.leader)));
        }
        let settled = status.commit >= status.config_index && !status.config.is_joint();
        match change(&status.config).map_err(refused)? {
            None if settled => return Ok(()),
            Some(_) if !leads && status.leader.is_some() => {
                return Err(refused(not_leading(&status.config, status.leader)));
            }
            Some(wanted) if leads => {
                let line = format!("an operator changes the membership: {wanted:?}");
                match member.step(Event::ChangeMembership(wanted)) {
                    Ok(()) => {
                        asked = true;
                        member.log(LogLevel::Info, line);
                    }
                    Err(StepError::BadChange(reason)) => return Err(refused(reason)),
                    // Another change, or a transfer, is under way.
                    Err(_) => {}
                }
            }
            // It is on its way, or nobody leads at the moment.
            _ => {}
        }
        if Instant::now() >= deadline {
            let reason = format!("nothing was committed within {timeout:?}; it may still be");
            return Err(refused(reason));
        }
        let patience = Instant::now() + member.options.heartbeat_interval();
        member.membership.wait_change(seen, deadline.min(patience));
    }
}

fn altered(info: &MemberInfo, alteration: &Alteration) -> MemberInfo {
    let role = alteration.role.unwrap_or(info.role);
    // Whoever had no vote has to catch up first.
    let joining = role != MemberRole::Learner && !info.votes();
    MemberInfo {
        role,
        joining,
        weight: alteration.weight.unwrap_or(info.weight),
        zone: alteration.zone.clone().unwrap_or_else(|| info.zone.clone()),
        ..info.clone()
    }
}

pub(crate) fn find<'a>(
    config: &'a Config,
    name: &str,
) -> Result<(MemberId, &'a MemberInfo), String> {
    let mut found =
        config.members.iter().filter(|(id, m)| m.name == name || id.to_string() == name);
    match (found.next(), found.next()) {
        (Some((id, info)), None) => Ok((*id, info)),
        (Some(_), Some(_)) => Err(format!("several members are called {name}: give the id")),
        (None, _) => {
            let names: Vec<_> = config.members.values().map(|info| info.name.as_str()).collect();
            Err(format!("no member is called {name}; there are {}", names.join(", ")))
        }
    }
}

pub(crate) fn not_leading(config: &Config, leader: Option<MemberId>) -> String {
    match leader.and_then(|leader| config.members.get(&leader)) {
        Some(info) => format!("it does not lead; ask {} at {}, which does", info.name, info.addr),
        None => "the group has no leader at the moment".into(),
    }
}
