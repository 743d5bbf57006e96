//! What an operator orders of the membership: roles, priorities, zones, and going on without a lost
//! majority. The words of the orders, as options carry them, and of the answers.
//!
//! ```text
//! quorate.member_set    = NAME [role=voter|learner] [priority=0..100] [zone=ZONE]
//! quorate.member_remove = NAME
//! quorate.rules         = [zones=N] [priorities=optimistic|forced] [primary_mode=multi|single]
//!                         [primary_failover=serve|wait] [leader_follows_writes=yes|no] [paused=yes|no]
//!                         [consistency=eventual|after]
//! quorate.force_plan    = NAME,NAME,...          what force_quorum would do; changes nothing
//! quorate.force_quorum  = NAME,NAME,...: REASON
//! ```

mod command;
mod patience;
mod session;
pub mod stats;

pub use command::change_options;
pub use session::Session;

use crate::options::values::{parse_bool, parse_failover, parse_primaries, parse_role};
use quorate_consensus::{Config, MemberInfo, PriorityRule, Rules, PRIORITY_MAX};
use quorate_live::{Alteration, Author, ForcePlan, Group};
use quorate_node::link::Link;
use std::sync::Arc;
use std::time::Duration;

/// Why a change of the options was refused.
pub enum Refusal {
    /// The session is yet to be told.
    New(String),
    /// It has been told, and may have been told something newer since.
    Told(String),
}

impl<E: std::fmt::Display> From<E> for Refusal {
    fn from(error: E) -> Self {
        Refusal::New(error.to_string())
    }
}

/// How long an order goes on.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// Carries out an order; its answer is for the status variable.
pub fn order(
    link: &Arc<Link>,
    group: &Group,
    name: &str,
    text: &str,
    author: Author,
) -> Result<String, String> {
    let operator = group.operator(author);
    let said = |error: quorate_live::GroupError| error.to_string();
    match name {
        "quorate.member_set" => {
            let (member, alteration) = parse_alteration(text)?;
            operator.alter_member(member, &alteration, TIMEOUT).map_err(said)?;
            Ok(describe(&group.status().config))
        }
        "quorate.member_remove" => {
            operator.remove_member(text, TIMEOUT).map_err(said)?;
            Ok(describe(&group.status().config))
        }
        "quorate.rules" => {
            let rules = parse_rules(text, group.status().config.rules)?;
            operator.set_rules(rules, TIMEOUT).map_err(said)?;
            Ok(group.status().config.rules.to_string())
        }
        "quorate.force_plan" => {
            let found = group.plan_force_quorum(&names(text));
            match &found.refusal {
                Some(refusal) => {
                    Err(format!("force-quorum would be refused: {refusal}. Nothing was changed"))
                }
                None => Ok(plan(link, &found)),
            }
        }
        "quorate.force_quorum" => {
            let (keep, reason) = text
                .split_once(':')
                .filter(|(_, reason)| !reason.trim().is_empty())
                .ok_or("give the members to keep and a reason: NAME,NAME: REASON")?;
            let done = operator.force_quorum(&names(keep), reason.trim(), TIMEOUT);
            Ok(plan(link, &done.map_err(said)?))
        }
        other => Err(format!("'{other}' is not an order (a bug)")),
    }
}

/// Members as `quorate member list` reads them: one a `;`, fields by spaces.
pub fn describe(config: &Config) -> String {
    let members = config.members.iter().map(|(id, info)| {
        let MemberInfo { priority, votes, joining, zone, addr, name, .. } = info;
        let role = info.role;
        format!(
            "name={name} role={role} priority={priority} votes={votes} joining={joining} \
             zone={zone} addr={addr} id={id}"
        )
    });
    members.collect::<Vec<_>>().join("; ")
}

fn plan(link: &Arc<Link>, plan: &ForcePlan) -> String {
    format!(
        "keeps {}; gives up {}: their logs never come back. Kept is everything up to log index {} \
         (term {}), seqno {}; this node knows {} to be committed. What was acknowledged after that, if \
         anything, is lost",
        plan.kept.join(", "),
        plan.lost.join(", "),
        plan.last.index,
        plan.last.term,
        link.progress.seqno(),
        plan.commit,
    )
}

fn names(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

pub(crate) fn parse_alteration(text: &str) -> Result<(&str, Alteration), String> {
    let mut words = text.split_whitespace();
    let name = words.next().ok_or("give the member's name")?;
    let mut alteration = Alteration::default();
    for word in words {
        match word.split_once('=') {
            Some(("role", role)) => {
                let role = parse_role(role).ok_or("role is voter or learner")?;
                alteration.role = Some(role);
            }
            Some(("priority", priority)) => {
                let priority = priority.parse().ok().filter(|w| *w <= PRIORITY_MAX);
                alteration.priority = Some(priority.ok_or("priority is a number from 0 to 100")?);
            }
            Some(("zone", zone)) => alteration.zone = Some(zone.to_owned()),
            _ => {
                return Err(format!(
                    "'{word}' is not role=, priority= or zone=. A member whose name has spaces is named here by its id, \
                     which wsrep_quorate_members shows"
                ))
            }
        }
    }
    if alteration == Alteration::default() {
        return Err("say what is to change: role=, priority= or zone=".into());
    }
    Ok((name, alteration))
}

pub(crate) fn parse_rules(text: &str, mut rules: Rules) -> Result<Rules, String> {
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some(("zones", zones)) => {
                rules.zones_min = zones.parse().map_err(|_| "zones is a small number")?;
            }
            Some(("priorities", "optimistic")) => rules.priorities = PriorityRule::Optimistic,
            Some(("priorities", "forced")) => rules.priorities = PriorityRule::Forced,
            Some(("primary_mode", mode)) => {
                rules.primaries = parse_primaries(mode).ok_or("primary_mode is multi or single")?;
            }
            Some(("primary_failover", failover)) => {
                let waits = parse_failover(failover);
                rules.failover_waits = waits.ok_or("primary_failover is serve or wait")?;
            }
            Some(("leader_follows_writes", follows)) => {
                let follows = parse_bool(follows);
                rules.follows_writes = follows.ok_or("leader_follows_writes is yes or no")?;
            }
            Some(("paused", paused)) => {
                rules.paused = parse_bool(paused).ok_or("paused is yes or no")?;
            }
            Some(("consistency", "after")) => rules.after = true,
            Some(("consistency", "eventual")) => rules.after = false,
            _ => {
                return Err(format!(
                "'{word}' is not zones=N, priorities=optimistic|forced, primary_mode=multi|single, \
                     primary_failover=serve|wait, leader_follows_writes=yes|no, paused=yes|no or \
                     consistency=eventual|after"
            ))
            }
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::{MemberRole, Primaries};

    #[test]
    fn orders_are_read_or_refused_with_the_form() {
        let (name, wanted) = parse_alteration("node2 role=learner priority=7 zone=eu").unwrap();
        assert_eq!(
            (name, wanted.role, wanted.priority),
            ("node2", Some(MemberRole::Learner), Some(7))
        );
        assert_eq!(wanted.zone.as_deref(), Some("eu"));
        for bad in ["", "node2", "node2 priority=101", "node2 role=logger", "node2 colour=red"] {
            assert!(parse_alteration(bad).is_err(), "{bad}");
        }
        let rules = parse_rules("zones=2 priorities=forced", Rules::default()).unwrap();
        assert_eq!((rules.zones_min, rules.priorities), (2, PriorityRule::Forced));
        assert!(parse_rules("zones=many", rules).is_err());
        let text =
            "primary_mode=single primary_failover=wait leader_follows_writes=yes paused=yes \
                    consistency=after";
        let all = parse_rules(text, rules).unwrap();
        assert_eq!(all.primaries, Primaries::Single);
        assert_eq!(parse_rules(&all.to_string(), Rules::default()), Ok(all));
        for bad in ["primary_mode=dual", "primary_failover=", "leader_follows_writes=maybe"] {
            assert!(parse_rules(bad, rules).is_err(), "{bad}");
        }
        assert_eq!(names(" a, b ,"), ["a", "b"]);
    }
}
