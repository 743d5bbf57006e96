//! `status`, `switchover` and `member` of any group, asked on its own port.

use super::{appointed, say};
use crate::args::{Force, Member, MemberRole, MemberSet, Switchover};
use crate::failure::{Failure, FAILED, NO_PERMISSION, OK, USAGE};
use crate::remote::{member_named, refused, Remote};
use crate::view::table::table;
use anyhow::{Context, Result};
use quorate_live::port::{
    Answer, Asked, MemberChange, MemberReport, Plan, Report, Request, RoleWord, RulesChange,
};
use quorate_live::Privilege;
use serde::de::DeserializeOwned;
use serde_json::{json, Value};
use std::time::Instant;

pub fn status(remote: &Remote, json: bool) -> Result<u8> {
    let survey = remote.survey()?;
    if json {
        println!("{}", serde_json::to_string_pretty(&survey)?);
    } else {
        print!("{survey}");
    }
    Ok(survey.health.exit_code())
}

pub fn switchover(remote: &Remote, args: &Switchover) -> Result<u8> {
    appointed::wait(&args.when, "Switchover", || {
        let (_, report) = remote.report()?;
        if report.privilege != Privilege::All.word() {
            let message = format!("operator {} may only look at this group", report.operator);
            return Err(Failure::new(NO_PERMISSION, message).into());
        }
        args.to.as_ref().map_or(Ok(()), |to| member_named(&report, to).map(drop))
    })?;
    let began = Instant::now();
    let (_, asked) = remote.order(&Request::Switchover { to: args.to.clone() })?;
    let Answer::Leads { name } = &asked.answer else {
        return Err(refused(&asked.node, asked.answer));
    };
    let took_ms = began.elapsed().as_millis() as u64;
    say(args.json, json!({ "leader": name, "former": asked.node, "took_ms": took_ms }), || {
        match *name == asked.node {
            true => format!("{name} leads already\n"),
            false => format!("{name} leads now ({} did); it took {took_ms} ms\n", asked.node),
        }
    })
}

pub fn member(remote: &Remote, what: &Member, json: bool) -> Result<u8> {
    match what {
        Member::List => list(&remote.report()?.1, json),
        Member::Add { .. } => {
            let message = "a member joins by being started: a server with wsrep_cluster_address (see quorate \
                           setup), a logger by quorate logger";
            Err(Failure::new(USAGE, message).into())
        }
        Member::SetRole { name, role } => {
            let role = Some(role_word(*role));
            let change = MemberChange { name: name.clone(), role, ..MemberChange::default() };
            alter(remote, Request::MemberSet(change), json)
        }
        Member::Set(MemberSet { name, role, priority, zone }) => {
            let (name, priority, zone) = (name.clone(), *priority, zone.clone());
            let role = role.map(role_word);
            let change = MemberChange { name, role, priority, zone };
            alter(remote, Request::MemberSet(change), json)
        }
        Member::Remove { name } => {
            alter(remote, Request::MemberRemove { name: name.clone() }, json)
        }
        Member::Reinit { name, .. } => told(remote, name, &Request::Reinit, json, || {
            format!(
                "{name} has given its data up and ends. Its service starts it again, and it fetches another \
                 server's data: quorate status shows when it is Synced\n"
            )
        }),
        Member::Isolate { name, end } => {
            let request = Request::Isolate { isolated: !end };
            told(remote, name, &request, json, || cut_off(name, *end))
        }
        Member::Rules {
            zones,
            priorities,
            primary_mode,
            primary_failover,
            leader_follows_writes,
            consistency,
        } => {
            let change = RulesChange {
                zones: *zones,
                priorities: given("--priorities", priorities)?,
                primary_mode: given("--primary-mode", primary_mode)?,
                primary_failover: given("--primary-failover", primary_failover)?,
                leader_follows_writes: match leader_follows_writes.as_deref() {
                    None => None,
                    Some("yes") => Some(true),
                    Some("no") => Some(false),
                    Some(other) => return Err(unknown("--leader-follows-writes", other)),
                },
                paused: None,
                consistency: given("--consistency", consistency)?,
            };
            rules(remote, change, json)
        }
        Member::ForceQuorum(args) => force(remote, args, json),
    }
}

/// Has the member of this name do something.
fn told(
    remote: &Remote,
    name: &str,
    request: &Request,
    json: bool,
    text: impl FnOnce() -> String,
) -> Result<u8> {
    let (_, Asked { node, answer }) = remote.order_at(name, request)?;
    match answer {
        Answer::Done => say(json, json!({ "member": name }), text),
        other => Err(refused(&node, other)),
    }
}

pub fn cut_off(name: &str, end: bool) -> String {
    match end {
        true => format!("{name} is no longer cut off\n"),
        false => format!(
            "{name} is cut off from the others until: quorate member isolate {name} --end\n"
        ),
    }
}

/// Has a change made, and shows the members as the leader knows them that made it: others may learn of it
/// later.
fn alter(remote: &Remote, request: Request, json: bool) -> Result<u8> {
    let (address, Asked { node, answer }) = remote.order(&request)?;
    match answer {
        Answer::Done => list(&remote.report_of(&address)?, json),
        other => Err(refused(&node, other)),
    }
}

fn list(report: &Report, json: bool) -> Result<u8> {
    say(json, json!({ "members": report.members }), || members(&report.members))
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
pub fn pause(remote: &Remote, paused: bool, json: bool) -> Result<u8> {
    rules(remote, RulesChange { paused: Some(paused), ..RulesChange::default() }, json)
}

fn rules(remote: &Remote, change: RulesChange, json: bool) -> Result<u8> {
    let report = if change == RulesChange::default() {
        remote.report()?.1
    } else {
        let (address, Asked { node, answer }) = remote.order(&Request::Rules(change))?;
        match answer {
            Answer::Done => remote.report_of(&address)?,
            other => return Err(refused(&node, other)),
        }
    };
    say(json, json!({ "rules": report.rules }), || format!("{}\n", report.rules))
}

/// Shows what would be done; does it only if a reason is given. Of those to be kept the one with the longest log is to
/// lead: the others do not agree to a shorter one than their own.
fn force(remote: &Remote, args: &Force, json: bool) -> Result<u8> {
    let first = args.keep.first().context("name the members to keep: --keep NAME,NAME")?;
    let reported = remote.report()?;
    let report = &reported.1;
    // Whom the member that reports does not know, the one that is to lead may.
    let known = args.keep.iter().filter_map(|name| member_named(report, name).ok());
    let ask_plan = |name: &str, request| ask_plan(remote, &reported, name, request);
    let mut plans = Vec::new();
    for member in known {
        let plan = ask_plan(&member.name, Request::ForcePlan { keep: args.keep.clone() });
        let asking = || format!("asking {}, which is to be kept and so has to agree", member.name);
        plans.push((member, plan.with_context(asking)?));
    }
    // Which also says that it is not known.
    let Some((leads, planned)) = plans.into_iter().reduce(longer) else {
        return Err(member_named(report, first).map(drop).unwrap_err());
    };
    let leads = &leads.name;
    if !json {
        println!("{leads}: {}", shown(&planned));
    }
    let done = match &args.reason {
        Some(reason) if planned.refusal.is_none() => {
            let request = Request::ForceQuorum { keep: args.keep.clone(), reason: reason.clone() };
            Some(ask_plan(leads, request)?)
        }
        _ => None,
    };
    let last = match (&done, &planned.refusal) {
        (Some(done), _) => format!("done: {}\n", shown(done)),
        (None, Some(_)) => "Nothing was changed.\n".to_owned(),
        (None, None) => {
            "Nothing was changed. To do it: add --reason 'WHY', which is kept in the log.\n".into()
        }
    };
    say(json, json!({ "leads": leads, "plan": planned, "done": done }), || last)?;
    Ok(if planned.refusal.is_some() { FAILED } else { OK })
}

/// Whose log ends later; of equals one with a database, or else the first.
fn longer<'a>(
    first: (&'a MemberReport, Plan),
    second: (&'a MemberReport, Plan),
) -> (&'a MemberReport, Plan) {
    let rank = |(member, plan): &(&MemberReport, Plan)| {
        (plan.last_term, plan.last_index, member.role != "logger")
    };
    if rank(&second) > rank(&first) {
        second
    } else {
        first
    }
}

fn ask_plan(
    remote: &Remote,
    reported: &(String, Report),
    name: &str,
    request: Request,
) -> Result<Plan> {
    let (_, Asked { node, answer }) = remote.order_by(reported, name, &request)?;
    match answer {
        Answer::Plan(plan) => Ok(plan),
        other => Err(refused(&node, other)),
    }
}

fn shown(plan: &Plan) -> String {
    match &plan.refusal {
        Some(refusal) => format!("refused: {refusal}"),
        None => format!(
            "keeps {}; gives up {}: their logs never come back. Kept is everything up to log index {} \
             (term {}); this node knows {} to be committed. What was acknowledged after that, if anything, \
             is lost",
            plan.kept.join(", "),
            plan.lost.join(", "),
            plan.last_index,
            plan.last_term,
            plan.commit_index,
        ),
    }
}

fn role_word(role: MemberRole) -> RoleWord {
    match role {
        MemberRole::Voter => RoleWord::Voter,
        MemberRole::Learner => RoleWord::Learner,
    }
}

/// One of the words that the port has for it.
fn given<T: DeserializeOwned>(option: &str, text: &Option<String>) -> Result<Option<T>> {
    let word = |text: &String| serde_json::from_value(Value::String(text.clone()));
    text.as_ref().map(|text| word(text).map_err(|_| unknown(option, text))).transpose()
}

fn unknown(option: &str, text: &str) -> anyhow::Error {
    let message = format!("{text:?} is none of the values of {option}: see its help");
    Failure::new(USAGE, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_longest_log_is_to_lead_and_of_equals_a_server() {
        let leads = |ends: &[(&str, u64, u64)]| {
            let members: Vec<MemberReport> = ends
                .iter()
                .enumerate()
                .map(|(at, (role, ..))| MemberReport {
                    name: at.to_string(),
                    role: role.to_string(),
                    ..MemberReport::default()
                })
                .collect();
            let plans = ends.iter().map(|(_, last_term, last_index)| Plan {
                last_term: *last_term,
                last_index: *last_index,
                ..Plan::default()
            });
            let best = members.iter().zip(plans).reduce(longer);
            best.map(|(member, _)| member.name.clone()).unwrap_or_default()
        };
        assert_eq!(leads(&[]), "");
        assert_eq!(leads(&[("voter", 3, 90), ("voter", 3, 90)]), "0");
        assert_eq!(leads(&[("voter", 3, 90), ("voter", 3, 91), ("voter", 2, 500)]), "1");
        assert_eq!(leads(&[("voter", 3, 90), ("logger", 4, 7)]), "1");
        assert_eq!(leads(&[("logger", 3, 90), ("learner", 3, 90)]), "1");
    }
}
