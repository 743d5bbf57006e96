//! `quorate member`, `pause`, `resume`: who belongs to a group, with which role and priority, and what holds for all.

use super::force::force;
use super::reinit::reinit;
use super::{agree, say, up};
use crate::args::{Member, MemberRemove, MemberRole, MemberSet, Rules};
use crate::cluster::Cluster;
use crate::failure::{Failure, OK, USAGE};
use crate::remote::{may_order, member_named, refused, Remote};
use crate::view::table::table;
use anyhow::Result;
use quorate_live::port::{
    Answer, Asked, MemberChange, MemberReport, Report, Request, RoleWord, RulesChange,
};
use serde::de::DeserializeOwned;
use serde_json::{json, Value};

pub fn member(group: &Remote, what: &Member, json: bool) -> Result<u8> {
    match what {
        Member::List => list(&group.leaders_report()?.1, json),
        Member::Add { role, limit } => {
            let Some(cluster) = group.here() else {
                let message = "a member joins by being started: a server with wsrep_cluster_address (see quorate \
                               setup), a logger by quorate logger";
                return Err(Failure::new(USAGE, message).into());
            };
            match up::add(&cluster.dir, *role, *limit, json)? {
                OK => {
                    let grown = group.reread(Cluster::open(&cluster.dir)?);
                    list(&grown.leaders_report()?.1, json)
                }
                code if json => {
                    let message = "not all nodes are Synced: standard error says which, and why. No data is lost; \
                                   quorate status shows how they are";
                    Err(Failure::new(code, message).into())
                }
                code => Ok(code),
            }
        }
        Member::SetRole { name, role } => {
            let change = MemberChange { role: Some(role_word(*role)), ..MemberChange::default() };
            set(group, name, change, json)
        }
        Member::Set(MemberSet { name, role, priority, zone }) => {
            let (priority, zone) = (*priority, zone.clone());
            let role = role.map(role_word);
            set(group, name, MemberChange { role, priority, zone, ..MemberChange::default() }, json)
        }
        Member::Remove(MemberRemove { name, yes }) => {
            let name = group.name(name);
            let (address, report) = leader_knowing(group, &name)?;
            may_order(&report)?;
            agree(
                &format!(
                    "Whatever becomes of {name}, the others count its vote no more. Remove it?"
                ),
                *yes,
            )?;
            alter(group, &address, Request::MemberRemove { name }, json)
        }
        Member::Reinit(args) => reinit(group, args, json),
        Member::Isolate { name, end } => {
            let (name, request) = (group.name(name), Request::Isolate { isolated: !end });
            told(group, &name, &request, json, || match end {
                true => format!("{name} is no longer cut off\n"),
                false => format!(
                    "{name} is cut off from the others until: quorate member isolate {name} --end\n"
                ),
            })
        }
        Member::Rules(args) => rules(group, change(args)?, json),
        Member::ForceQuorum(args) => force(group, args, json),
    }
}

fn set(group: &Remote, name: &str, change: MemberChange, json: bool) -> Result<u8> {
    let name = group.name(name);
    let (address, _) = leader_knowing(group, &name)?;
    alter(group, &address, Request::MemberSet(MemberChange { name, ..change }), json)
}

/// Where a change of the member of this name is to be ordered, and what is said there. A name that nobody has is no
/// order: it is refused here.
fn leader_knowing(group: &Remote, name: &str) -> Result<(String, Report)> {
    let (address, report) = group.leaders_report()?;
    member_named(&report, name)?;
    Ok((address, report))
}

/// Has the member of this name do something.
fn told(
    group: &Remote,
    name: &str,
    request: &Request,
    json: bool,
    text: impl FnOnce() -> String,
) -> Result<u8> {
    let (_, Asked { node, answer }) = group.order_at(name, request)?;
    match answer {
        Answer::Done => say(json, json!({ "member": name }), text),
        other => Err(refused(&node, other)),
    }
}

/// Has a change made, and shows the members as the leader knows them that made it: others may learn of it
/// later.
fn alter(group: &Remote, leader: &str, request: Request, json: bool) -> Result<u8> {
    let (address, Asked { node, answer }) = group.order_to(leader, &request)?;
    match answer {
        Answer::Done => list(&group.report_of(&address)?, json),
        other => Err(refused(&node, other)),
    }
}

fn list(report: &Report, json: bool) -> Result<u8> {
    say(json, document(&report.members), || members(&report.members))
}

/// See docs/run/json.md.
fn document(members: &[MemberReport]) -> Value {
    json!({ "members": members })
}

fn members(members: &[MemberReport]) -> String {
    let head = ["NAME", "ROLE", "PRIORITY", "VOTES", "ZONE", "ADDRESS"];
    let mut rows = vec![head.map(String::from)];
    rows.extend(members.iter().map(|member| {
        let joining = if member.joining { " (joining)" } else { "" };
        [
            member.name.clone(),
            format!("{}{joining}", member.role),
            member.priority.to_string(),
            member.votes.to_string(),
            member.zone.clone(),
            member.address.clone(),
        ]
    }));
    table(&rows)
}

/// Nothing moves leadership, or expels a member, without an order, until it is resumed.
pub fn pause(group: &Remote, paused: bool, json: bool) -> Result<u8> {
    rules(group, RulesChange { paused: Some(paused), ..RulesChange::default() }, json)
}

fn rules(group: &Remote, change: RulesChange, json: bool) -> Result<u8> {
    let report = if change == RulesChange::default() {
        group.leaders_report()?.1
    } else {
        let (address, Asked { node, answer }) = group.order(&Request::Rules(change))?;
        match answer {
            Answer::Done => group.report_of(&address)?,
            other => return Err(refused(&node, other)),
        }
    };
    say(json, json!({ "rules": report.rules }), || format!("{}\n", report.rules))
}

fn change(args: &Rules) -> Result<RulesChange> {
    Ok(RulesChange {
        zones: args.zones,
        priorities: given("--priorities", &args.priorities)?,
        primary_mode: given("--primary-mode", &args.primary_mode)?,
        primary_failover: given("--primary-failover", &args.primary_failover)?,
        leader_follows_writes: args.leader_follows_writes.as_ref().map(|word| word == "yes"),
        paused: None,
        consistency: given("--consistency", &args.consistency)?,
    })
}

fn role_word(role: MemberRole) -> RoleWord {
    match role {
        MemberRole::Voter => RoleWord::Voter,
        MemberRole::Learner => RoleWord::Learner,
    }
}

/// One of the words that the port has for it.
fn given<T: DeserializeOwned>(option: &str, text: &Option<String>) -> Result<Option<T>> {
    let word = |text: &String| {
        serde_json::from_value(Value::String(text.clone())).map_err(|_| {
            let message = format!("{text:?} is none of the values of {option}: see its help");
            Failure::new(USAGE, message).into()
        })
    };
    text.as_ref().map(word).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::page::names_fields_of;

    #[test]
    fn each_member_has_its_line() {
        let member = |name: &str, role: &str| MemberReport {
            name: name.into(),
            role: role.into(),
            priority: 50,
            votes: 1,
            address: "a:1".into(),
            ..MemberReport::default()
        };
        let joining = MemberReport {
            joining: true,
            zone: "eu".into(),
            standing: Some(Default::default()),
            ..member("long", "logger")
        };
        let all = [member("n1", "voter"), joining];
        assert_eq!(
            members(&all),
            "NAME  ROLE              PRIORITY  VOTES  ZONE  ADDRESS\n\
             n1    voter             50        1            a:1\n\
             long  logger (joining)  50        1      eu    a:1\n"
        );
        names_fields_of(&document(&all));
    }
}
