//! A survey as people read it: a table, and below it what is wrong.

use super::survey::{NodeSurvey, Survey};
use super::trouble::is_recent;
use crate::view::table::{human_age, human_bytes, or_dash, table};
use std::fmt;

const HEAD: [&str; 10] =
    ["NODE", "ADDRESS", "ROLE", "STATE", "SEQNO", "LAG", "LOG", "ZONE", "PRIO", "RELEASE"];
/// What is under way at the moment of the question is no lag.
const LAG_SECONDS_SHOWN: f64 = 0.05;
const LOG_AGE_SHOWN_S: u64 = 60;
/// Below the table, where that is so.
const PAUSED: &str =
    "The group is paused: no member is expelled, and leadership stays where it is (quorate resume).";

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![HEAD.map(String::from)];
        rows.extend(self.nodes.iter().map(NodeSurvey::row));
        if self.is_known {
            writeln!(f, "{}, term {}, level {}", self.cluster, self.term, self.level)?;
        }
        f.write_str(&table(&rows))?;
        if self.rules.paused {
            writeln!(f, "\n{PAUSED}")?;
        }
        self.nodes
            .iter()
            .filter_map(NodeSurvey::old_fault)
            .try_for_each(|fault| write!(f, "\n{fault}\n"))?;
        match self.troubles.is_empty() {
            true => writeln!(f, "\nNothing is wrong."),
            false => self.troubles.iter().try_for_each(|trouble| write!(f, "\n! {trouble}\n")),
        }?;
        self.notes.iter().try_for_each(|note| write!(f, "\nNote: {note}\n"))
    }
}

impl NodeSurvey {
    fn row(&self) -> [String; HEAD.len()] {
        let member = self.member.as_ref();
        let address = self.address.clone();
        [
            self.name.clone(),
            or_dash(address.or_else(|| member.map(|member| member.address.clone()))),
            or_dash(self.role.clone()),
            self.state.clone(),
            or_dash(self.seqno.map(|seqno| seqno.to_string())),
            or_dash(self.lag_in_words()),
            or_dash(self.log_in_words()),
            or_dash(member.map(|member| member.zone.clone())),
            or_dash(member.map(|member| member.priority.to_string())),
            or_dash(self.release.clone()),
        ]
    }

    /// `1200, 3.4 s`; without the time where that is nothing.
    pub fn lag_in_words(&self) -> Option<String> {
        let seconds = self.lag_seconds.filter(|seconds| *seconds >= LAG_SECONDS_SHOWN);
        let seconds = seconds.map(|seconds| format!(", {seconds:.1} s")).unwrap_or_default();
        self.lag.map(|lag| format!("{lag}{seconds}"))
    }

    /// `64.0 MiB, 6 h`: its size, and how far back it reaches at least. A single file, written to just now, tells nothing.
    fn log_in_words(&self) -> Option<String> {
        let bytes = human_bytes(self.log_bytes?);
        let age = self.own.as_ref().and_then(|own| own.log.age_s);
        let age = age.filter(|age| *age >= LOG_AGE_SHOWN_S);
        Some(age.map_or(bytes.clone(), |age| format!("{bytes}, {}", human_age(age))))
    }

    /// A recent one is a trouble; an older one may explain what is seen now.
    fn old_fault(&self) -> Option<String> {
        let fault = self.own.as_ref()?.last_fault.as_ref().filter(|fault| !is_recent(fault))?;
        let (name, ago) = (&self.name, human_age(fault.seconds_ago));
        Some(format!("Last error of {name}, {ago} ago: {}", fault.message))
    }
}
