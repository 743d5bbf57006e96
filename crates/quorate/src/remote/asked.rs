//! All members of a group are asked at once, each for itself.

use crate::failure::{Failure, NO_PERMISSION, UNREACHABLE};
use quorate_live::port::{Answer, MemberReport, Operating, Report, Request, Unanswered};
use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// For each member; whoever has not answered by then does not.
const PATIENCE: Duration = Duration::from_secs(5);

/// By address.
pub type Answers = BTreeMap<String, Result<Report, Unanswered>>;

/// Asks these, and then the members that they tell of. Whose answer is there already, or why there is none, is not
/// asked.
///
/// Members of another group than the one that most of them belong to are as good as silent.
pub fn gather(seeds: &[String], answers: &mut Answers, operating: &Arc<Operating>) {
    let unasked = |answers: &Answers, address: &String| !answers.contains_key(address);
    let seeds: Vec<String> =
        seeds.iter().filter(|address| unasked(answers, address)).cloned().collect();
    answers.extend(ask_all(&seeds, operating));
    keep_one_group(answers);
    let Some(known) = best(answers) else { return };
    let is_answered = |id: &str| reports(answers).any(|report| report.own.id == id);
    let others = known.members.iter().filter(|member| !is_answered(&member.id));
    let others = others.map(|member| member.address.clone());
    let others: Vec<String> = others.filter(|address| unasked(answers, address)).collect();
    answers.extend(ask_all(&others, operating));
    keep_one_group(answers);
}

fn keep_one_group(answers: &mut Answers) {
    let mut members: BTreeMap<&str, usize> = BTreeMap::new();
    let grouped = reports(answers).filter(|report| !report.group.is_empty());
    grouped.for_each(|report| *members.entry(&report.group).or_default() += 1);
    let most = members.values().max().copied();
    let is_largest = |report: &&Report| members.get(&*report.group).copied() == most;
    let Some(group) =
        reports(answers).filter(is_largest).max_by_key(knows).map(|r| r.group.clone())
    else {
        return;
    };
    for answer in answers.values_mut() {
        let Ok(report) = answer else { continue };
        if !report.group.is_empty() && report.group != group {
            let (name, other) = (&report.own.name, &report.group);
            *answer = Err(Unanswered::Lost(format!(
                "{name}, which answers there, is a member of another group ({other})"
            )));
        }
    }
}

pub fn silent(answers: &Answers) -> impl Iterator<Item = (&String, &Unanswered)> + Clone {
    answers.iter().filter_map(|(address, answer)| Some((address, answer.as_ref().err()?)))
}

pub fn reports(answers: &Answers) -> impl Iterator<Item = &Report> {
    answers.values().filter_map(|answer| answer.as_ref().ok())
}

/// As the member says it itself, if it does.
pub fn said_by<'a>(member: &MemberReport, answers: &'a Answers) -> Option<&'a Report> {
    reports(answers).find(|report| report.own.id == member.id)
}

/// Who is in the newest term, leads there, and has most of the log knows the group best.
pub fn best(answers: &Answers) -> Option<&Report> {
    reports(answers).max_by_key(knows)
}

fn knows(report: &&Report) -> (u64, bool, u64) {
    (report.term, report.own.leads, report.own.commit_index)
}

/// Why there is no answer: who was asked, and what was in the way.
pub fn nobody<'a>(
    silent: impl Iterator<Item = (&'a String, &'a Unanswered)> + Clone,
) -> anyhow::Error {
    let forbidden = |(_, error): (_, &Unanswered)| matches!(error, Unanswered::Forbidden(_));
    let code = if silent.clone().any(forbidden) { NO_PERMISSION } else { UNREACHABLE };
    let lines: Vec<String> = silent.map(|(address, error)| format!("{address}: {error}")).collect();
    Failure::new(code, format!("no member answers. {}", lines.join("; "))).into()
}

/// Who has not answered in time is left alone with its thread.
fn ask_all(addresses: &[String], operating: &Arc<Operating>) -> Answers {
    let (answered, answers) = channel();
    for address in addresses {
        let (answered, operating, address) = (answered.clone(), operating.clone(), address.clone());
        thread::spawn(move || {
            let answer = operating.ask(&address, &Request::Status);
            // Whoever waited for it may have given up.
            let _told = answered.send((address, answer));
        });
    }
    drop(answered);
    let late = || Err(Unanswered::NotReached(format!("no answer within {PATIENCE:?}")));
    let mut all: Answers = addresses.iter().map(|address| (address.clone(), late())).collect();
    let end = Instant::now() + PATIENCE;
    while let Ok((address, answer)) =
        answers.recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        let report = answer.and_then(|asked| match asked.answer {
            Answer::Status(report) => Ok(*report),
            Answer::Refused(refused) => Err(Unanswered::Forbidden(refused.reason)),
            other => {
                let what = kind(&other);
                Err(Unanswered::Lost(format!("asked how the group is, it says {what}")))
            }
        });
        all.insert(address, report);
    }
    all
}

/// What an answer says, in words: the whole of one can be long.
pub fn kind(answer: &Answer) -> &'static str {
    match answer {
        Answer::Status(_) => "how the group is",
        Answer::History(_) => "what has happened to the group",
        Answer::Done => "that an order was carried out",
        Answer::Leads { .. } => "who leads now",
        Answer::Plan(_) => "what would be done by force",
        Answer::AskLeader { .. } => "that the leader is to be asked",
        Answer::Refused(_) => "that it refuses",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_live::port::OwnReport;

    fn told(at: &str, group: &str, term: u64) -> (String, Result<Report, Unanswered>) {
        let own = OwnReport { id: at.into(), name: at.into(), ..OwnReport::default() };
        (at.to_owned(), Ok(Report { group: group.into(), term, own, ..Report::default() }))
    }

    #[test]
    fn members_of_another_group_are_as_good_as_silent() {
        let mut answers = Answers::from([
            told("a", "shop", 3),
            told("b", "shop", 3),
            told("c", "founded anew", 9),
            told("d", "", 0),
        ]);
        keep_one_group(&mut answers);
        assert_eq!(best(&answers).map(|report| &*report.group), Some("shop"));
        let silent: Vec<_> = silent(&answers).map(|(at, why)| (&**at, why.to_string())).collect();
        let why = "c, which answers there, is a member of another group (founded anew)";
        assert_eq!(silent, [("c", why.to_owned())]);
        let mut alone = Answers::from([told("d", "", 0)]);
        keep_one_group(&mut alone);
        assert!(best(&alone).is_some());
    }
}
