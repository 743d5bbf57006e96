//! The story of a run, for those who have to understand a violation.
//!
//! Ordinary runs record nothing: a seed replays exactly, so a run that broke a rule is simply run
//! again with a trace.

use std::collections::VecDeque;
use std::time::Duration;

/// The last lines of it.
#[derive(Clone, Debug, Default)]
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

    /// `at`: since the run began.
    pub fn line(&mut self, at: Duration, text: &str) {
        if self.lines.len() == self.lines_max {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{:>10.3} ms  {text}", at.as_secs_f64() * 1000.0));
    }

    pub fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut trace = Trace::last(2);
        assert!(trace.is_on() && !Trace::default().is_on());
        for ms in [1, 20, 300] {
            trace.line(Duration::from_millis(ms), "x");
        }
        assert_eq!(trace.into_lines(), ["    20.000 ms  x", "   300.000 ms  x"]);
    }
}
