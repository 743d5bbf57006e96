//! The story of a run, for those who have to understand a violation.
//!
//! Ordinary runs record nothing: a seed replays exactly, so a run that broke a rule is simply run
//! again with a trace.

use crate::schedule::Micros;
use std::collections::VecDeque;

/// The last lines of it.
pub struct Trace {
    lines_max: usize,
    lines: VecDeque<String>,
}

impl Trace {
    pub fn last(lines_max: usize) -> Self {
        Trace { lines_max, lines: VecDeque::new() }
    }

    pub fn is_on(&self) -> bool {
        self.lines_max > 0
    }

    pub fn line(&mut self, now: Micros, text: &str) {
        if self.lines.len() == self.lines_max {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{:>10.3} ms  {text}", now as f64 / 1000.0));
    }

    pub fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}
