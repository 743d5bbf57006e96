//! `quorate watch`: the status again and again, with what happened in between.

use crate::args::Watch;
use crate::cluster::Cluster;
use crate::failure::exit_code;
use crate::remote::Remote;
use crate::view::{Health, Report};
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// To the upper left corner, and nothing behind what follows.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// One look.
struct Look {
    shown: String,
    code: u8,
    at: Instant,
    /// Last applied, by node.
    seqnos: BTreeMap<String, i64>,
}

/// A group elsewhere, or the cluster in this directory. The exit code is that of the last look.
pub fn watch(remote: Option<&Remote>, dir: &Path, args: &Watch) -> Result<u8> {
    let look = || match remote {
        Some(remote) => look_at(remote),
        None => look_here(&Cluster::open(dir)?),
    };
    // A mistake in the command line, or in the credential, is an error as in all commands; what comes after it
    // may pass.
    let mut last = look()?;
    show(&last, None, 1)?;
    let interval = Duration::from_secs_f64(args.interval);
    for number in 2.. {
        if args.count.is_some_and(|count| number > count) {
            break;
        }
        thread::sleep(interval.saturating_sub(last.at.elapsed()));
        let next = look().unwrap_or_else(|error| Look {
            shown: format!("! {error:#}\n"),
            code: exit_code(&error),
            at: Instant::now(),
            seqnos: BTreeMap::new(),
        });
        show(&next, Some(&last), number)?;
        last = next;
    }
    Ok(last.code)
}

fn look_at(remote: &Remote) -> Result<Look> {
    let at = Instant::now();
    let survey = remote.survey()?;
    let nodes = survey.nodes.iter().map(|node| (&node.name, node.seqno));
    Ok(Look::of(&survey, survey.health, at, nodes))
}

fn look_here(cluster: &Cluster) -> Result<Look> {
    let at = Instant::now();
    let report = Report::collect(cluster);
    let nodes = report.nodes.iter().map(|node| (&node.name, node.seqno));
    Ok(Look::of(&report, report.health, at, nodes))
}

impl Look {
    fn of<'a>(
        shown: &impl Display,
        health: Health,
        at: Instant,
        nodes: impl Iterator<Item = (&'a String, Option<i64>)>,
    ) -> Look {
        let seqnos = nodes.filter_map(|(name, seqno)| Some((name.clone(), seqno?))).collect();
        Look { shown: shown.to_string(), code: health.exit_code(), at, seqnos }
    }
}

fn show(look: &Look, before: Option<&Look>, number: u64) -> io::Result<()> {
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    let rates = before.and_then(|before| rates(before, look)).unwrap_or_default();
    let text = format!("{now}\n{}{rates}", look.shown);
    let mut out = io::stdout().lock();
    match out.is_terminal() {
        true => {
            let lines = text.lines().map(|line| format!("{line}{CLEAR_LINE}\n"));
            let cleared = if number == 1 { CLEAR_BELOW } else { "" };
            write!(out, "{HOME}{cleared}{}{CLEAR_BELOW}", lines.collect::<String>())?;
        }
        false => writeln!(out, "{text}")?,
    }
    out.flush()
}

/// What each node has applied a second. A commit has one seqno on all nodes, so that of the fastest is the group's.
fn rates(before: &Look, now: &Look) -> Option<String> {
    let seconds = (now.at - before.at).as_secs_f64();
    let rate = |(name, seqno): (&String, &i64)| {
        let since = before.seqnos.get(name)?;
        Some(format!("{name} {:.0}/s", (seqno - since).max(0) as f64 / seconds))
    };
    let each: Vec<String> = now.seqnos.iter().filter_map(rate).collect();
    (!each.is_empty()).then(|| format!("\napplied: {}\n", each.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_nodes_that_were_there_before() {
        let begin = Instant::now();
        let look = |seconds, seqnos: &[(&str, i64)]| Look {
            shown: String::new(),
            code: 0,
            at: begin + Duration::from_secs(seconds),
            seqnos: seqnos.iter().map(|(name, seqno)| (name.to_string(), *seqno)).collect(),
        };
        let (first, second) =
            (look(0, &[("n1", 10), ("n2", 30)]), look(2, &[("n1", 2010), ("n2", 20), ("n3", 9)]));
        assert_eq!(rates(&first, &second).as_deref(), Some("\napplied: n1 1000/s, n2 0/s\n"));
        assert_eq!(rates(&look(0, &[]), &second), None);
    }
}
