//! `quorate member force-quorum`: on without a majority that is lost for good.

use super::say;
use crate::args::Force;
use crate::failure::{FAILED, OK};
use crate::remote::{address_of, member_named, refused, Remote};
use anyhow::{Context, Result};
use quorate_live::port::{Answer, Asked, MemberReport, Plan, Request};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Shows what would be done; does it only if a reason is given. Of those to be kept the one with the longest log is to
/// lead: the others do not agree to a shorter one than their own.
pub fn force(group: &Remote, args: &Force, json: bool) -> Result<u8> {
    let keep: Vec<String> = args.keep.iter().map(|name| group.name(name)).collect();
    let first = keep.first().context("name the members to keep: --keep NAME,NAME")?;
    let reported = group.report()?;
    let report = &reported.1;
    // Whom the member that reports does not know, the one that is to lead may.
    let known = keep.iter().filter_map(|name| member_named(report, name).ok());
    let ask_plan = |member, request| ask_plan(group, address_of(&reported, member), &request);
    let mut plans = Vec::new();
    for member in known {
        let plan = ask_plan(member, Request::ForcePlan { keep: keep.clone() });
        let asking = || format!("asking {}, which is to be kept and so has to agree", member.name);
        plans.push((member, plan.with_context(asking)?));
    }
    let refusing = |(member, plan): &(&MemberReport, Plan)| {
        plan.refusal.as_ref().map(|refusal| (member.name.clone(), refusal.clone()))
    };
    let mut others: BTreeMap<String, String> = plans.iter().filter_map(refusing).collect();
    // Which also says that it is not known.
    let Some((leads, planned)) = plans.into_iter().reduce(longer) else {
        return Err(member_named(report, first).map(drop).unwrap_err());
    };
    others.remove(&leads.name);
    if !json {
        println!("{}: {}", leads.name, shown(&planned));
        others.iter().for_each(|(name, refusal)| println!("{name} is kept, and says: {refusal}"));
    }
    let done = match &args.reason {
        Some(reason) if planned.refusal.is_none() => {
            let request = Request::ForceQuorum { keep: keep.clone(), reason: reason.clone() };
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
    say(json, document(&leads.name, &planned, done.as_ref(), &others), || last)?;
    Ok(if planned.refusal.is_some() { FAILED } else { OK })
}

/// See docs/run/json.md.
fn document(
    leads: &str,
    plan: &Plan,
    done: Option<&Plan>,
    refusals: &BTreeMap<String, String>,
) -> Value {
    json!({ "leads": leads, "plan": plan, "done": done, "refusals": refusals })
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

fn ask_plan(group: &Remote, address: &str, request: &Request) -> Result<Plan> {
    let (_, Asked { node, answer }) = group.order_to(address, request)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::page::names_fields_of;

    #[test]
    fn the_page_names_the_fields_of_a_plan() {
        let plan = Plan::default();
        names_fields_of(&document("n1", &plan, Some(&plan), &BTreeMap::new()));
    }

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
