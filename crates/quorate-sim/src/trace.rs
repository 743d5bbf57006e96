//! The story of a run, for those who have to understand a violation.
//!
//! Ordinary runs record nothing: a seed replays exactly, so a run that broke a rule is simply run
//! again with a trace.

use crate::schedule::Micros;
use std::collections::VecDeque;
use std::io::Write;

pub enum Trace {
    Off,
    /// Keeps the last lines.
    Last(usize, VecDeque<String>),
    /// Writes each line as it happens.
    All(Box<dyn Write>),
}

impl Trace {
    pub fn last(lines: usize) -> Self {
        Trace::Last(lines, VecDeque::with_capacity(lines + 1))
    }

    pub fn is_on(&self) -> bool {
        !matches!(self, Trace::Off)
    }

    pub fn line(&mut self, now: Micros, text: &str) {
        let line = format!("{:>10.3} ms  {text}", now as f64 / 1000.0);
        match self {
            Trace::Off => {}
            Trace::Last(keep, lines) => {
                lines.push_back(line);
                if lines.len() > *keep {
                    lines.pop_front();
                }
            }
            // A reader that went away (a closed pager) is no reason to stop the run.
            Trace::All(out) => drop(writeln!(out, "{line}")),
        }
    }

    pub fn into_lines(self) -> Vec<String> {
        match self {
            Trace::Last(_, lines) => lines.into(),
            Trace::Off | Trace::All(_) => Vec::new(),
        }
    }
}
