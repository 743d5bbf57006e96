//! `quorate watch`: the status again and again, with what happened in between.

use crate::args::Watch;
use crate::failure::exit_code;
use crate::remote::Survey;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// To the upper left corner, and nothing behind what follows.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// One look; a line of `--json` (docs/run/json.md), whose fields stay.
#[derive(Debug, Serialize)]
pub struct Look {
    /// RFC 3339, in UTC.
    time: String,
    #[serde(skip)]
    at: Instant,
    /// What each node has applied a second since the look before, by name.
    applied_per_second: BTreeMap<String, f64>,
    /// As `quorate status`; none if nobody answers.
    status: Option<Survey>,
    /// Why nobody does.
    error: Option<String>,
    #[serde(skip)]
    code: u8,
}

/// The exit code is that of the last look.
pub fn watch(survey: impl Fn() -> Result<Survey>, args: &Watch) -> Result<u8> {
    // A mistake in the command line, or in the credential, is an error as in all commands; what comes after it
    // may pass.
    let began = Instant::now();
    let mut last = Look::of(survey()?, began, None);
    last.show(args.json, true)?;
    let interval = Duration::from_secs_f64(args.interval);
    for number in 2.. {
        if args.count.is_some_and(|count| number > count) {
            break;
        }
        thread::sleep(interval.saturating_sub(last.at.elapsed()));
        let at = Instant::now();
        last = match survey() {
            Ok(survey) => Look::of(survey, at, Some(&last)),
            Err(error) => Look::in_vain(&error),
        };
        last.show(args.json, false)?;
    }
    Ok(last.code)
}

impl Look {
    fn of(survey: Survey, at: Instant, before: Option<&Look>) -> Look {
        let applied_per_second = before.map(|before| rates(before, &survey, at));
        Look {
            time: now(),
            at,
            applied_per_second: applied_per_second.unwrap_or_default(),
            code: survey.health.exit_code(),
            status: Some(survey),
            error: None,
        }
    }

    fn in_vain(error: &anyhow::Error) -> Look {
        Look {
            time: now(),
            at: Instant::now(),
            applied_per_second: BTreeMap::new(),
            status: None,
            error: Some(format!("{error:#}")),
            code: exit_code(error),
        }
    }

    /// On a terminal in place of the one before.
    fn show(&self, json: bool, is_first: bool) -> Result<()> {
        if json {
            println!("{}", serde_json::to_string(self)?);
        } else if io::stdout().is_terminal() {
            let text = self.text();
            let lines = text.lines().map(|line| format!("{line}{CLEAR_LINE}\n"));
            let cleared = if is_first { CLEAR_BELOW } else { "" };
            print!("{HOME}{cleared}{}{CLEAR_BELOW}", lines.collect::<String>());
        } else {
            println!("{}", self.text());
        }
        Ok(())
    }

    fn text(&self) -> String {
        let status = self.status.as_ref().map(Survey::to_string).unwrap_or_default();
        let error = self.error.as_ref().map(|error| format!("! {error}\n")).unwrap_or_default();
        let each = self.applied_per_second.iter().map(|(name, rate)| format!("{name} {rate:.0}/s"));
        let each: Vec<String> = each.collect();
        let rates = match each.is_empty() {
            true => String::new(),
            false => format!("\napplied: {}\n", each.join(", ")),
        };
        format!("{}\n{status}{error}{rates}", self.time)
    }
}

fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// A commit has one seqno on all nodes, so the rate of the fastest is the group's.
fn rates(before: &Look, now: &Survey, at: Instant) -> BTreeMap<String, f64> {
    let seconds = (at - before.at).as_secs_f64();
    let former = before.status.iter().flat_map(|survey| &survey.nodes);
    let former: BTreeMap<&str, i64> =
        former.filter_map(|node| Some((node.name.as_str(), node.seqno?))).collect();
    let rate = |seqno: i64, since: i64| (seqno - since).max(0) as f64 / seconds;
    let nodes = now.nodes.iter();
    nodes
        .filter_map(|node| {
            Some((node.name.clone(), rate(node.seqno?, *former.get(node.name.as_str())?)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::NodeSurvey;
    use crate::view::page::names_fields_of;
    use serde_json::Value;

    fn survey(seqnos: &[(&str, i64)]) -> Survey {
        let node = |(name, seqno): &(&str, i64)| NodeSurvey {
            name: (*name).to_owned(),
            seqno: Some(*seqno),
            ..NodeSurvey::default()
        };
        let mut survey = Survey::unknown("c");
        survey.nodes = seqnos.iter().map(node).collect();
        survey
    }

    #[test]
    fn rates_are_of_nodes_that_were_there_before() {
        let begin = Instant::now();
        let later = begin + Duration::from_secs(2);
        let first = Look::of(survey(&[("n1", 10), ("n2", 30)]), begin, None);
        let second = survey(&[("n1", 2010), ("n2", 20), ("n3", 9)]);
        let second = Look::of(second, later, Some(&first));
        assert!(second.text().ends_with("\napplied: n1 1000/s, n2 0/s\n"), "{}", second.text());
        assert!(!first.text().contains("applied"), "{}", first.text());
        let mut line = serde_json::to_value(&second).unwrap();
        assert_eq!(line["applied_per_second"]["n1"], 1000.0);
        assert_eq!(line["status"]["nodes"][1]["seqno"], 20);
        // Its fields are names of nodes.
        line["applied_per_second"] = Value::Null;
        names_fields_of(&line);
    }

    #[test]
    fn a_look_in_vain_says_why_and_the_next_has_no_rates() {
        let vain = Look::in_vain(&anyhow::anyhow!("no member answers"));
        assert!(vain.text().ends_with("\n! no member answers\n"), "{}", vain.text());
        let line = serde_json::to_value(&vain).unwrap();
        assert!(line["status"].is_null() && line["error"] == "no member answers", "{line}");
        let next = Look::of(survey(&[("n1", 3)]), Instant::now(), Some(&vain));
        assert!(next.applied_per_second.is_empty());
    }
}
