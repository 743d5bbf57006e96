//! What MariaDB's test runner said of each test: read from its output, kept as a table of tabs.
//!
//! A test that fails and then passes counts as passed, as the runner itself has it, but is unstable.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Passed,
    /// Passed, but not at first.
    Unstable,
    Failed,
    /// Passed, but servers that ran it and others warned of something when they stopped: any of these may have
    /// caused it.
    InDoubt,
    /// Needs what this server or machine has not (a debug build, --big-test), or is disabled.
    Skipped,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub outcome: Outcome,
    pub milliseconds: u64,
    /// Why it was skipped.
    pub comment: String,
}

/// By full name: `suite.test`, with its combination where there are several: `suite.test 'mix'`.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Results(pub BTreeMap<String, Row>);

/// What one line of the runner's output tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// A test's end, but not that it failed.
    End,
    /// What is wrong follows.
    Failure,
    Nothing,
}

/// Servers that stop after several tests warned of something; whichever of the tests it belongs to.
const WARNED_AT_SHUTDOWN: &str =
    "***Warnings generated in error logs during shutdown after running tests: ";
const HEAD: &str = "test\toutcome\tms\tcomment";

impl Outcome {
    const NAMES: [(Outcome, &'static str); 5] = [
        (Outcome::Passed, "passed"),
        (Outcome::Unstable, "unstable"),
        (Outcome::Failed, "failed"),
        (Outcome::InDoubt, "in doubt"),
        (Outcome::Skipped, "skipped"),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(o, _)| *o == self).map_or("", |(_, n)| n)
    }

    pub fn passed(self) -> bool {
        matches!(self, Outcome::Passed | Outcome::Unstable)
    }

    fn named(name: &str) -> Option<Outcome> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(o, _)| *o)
    }
}

impl Results {
    /// Takes in one line of the runner's output.
    pub fn read_line(&mut self, line: &str) -> Told {
        if let Some((_, tests)) = line.split_once(WARNED_AT_SHUTDOWN) {
            let tests: Vec<&str> = tests.split_whitespace().collect();
            let rows = self.0.iter_mut().filter(|(name, _)| tests.contains(&without_mix(name)));
            let passed = rows.filter(|(_, row)| row.outcome.passed());
            passed.for_each(|(_, row)| row.outcome = Outcome::InDoubt);
            return Told::Failure;
        }
        let Some((name, verdict, rest)) = parse(line) else { return Told::Nothing };
        let outcome = match verdict {
            "pass" => Outcome::Passed,
            "retry-pass" => Outcome::Unstable,
            "fail" | "retry-fail" | "exp-fail" => Outcome::Failed,
            "skipped" | "disabled" => Outcome::Skipped,
            _ => return Told::Nothing,
        };
        let milliseconds = if outcome.passed() { rest.parse().unwrap_or(0) } else { 0 };
        let comment = if outcome == Outcome::Skipped { rest.to_owned() } else { String::new() };
        self.0.insert(name, Row { outcome, milliseconds, comment });
        if outcome == Outcome::Failed {
            Told::Failure
        } else {
            Told::End
        }
    }

    /// The tests that ended like this, whatever the combination.
    pub fn ended(&self, how: &[Outcome]) -> Vec<String> {
        let these = self.0.iter().filter(|(_, row)| how.contains(&row.outcome));
        let mut tests: Vec<String> = these.map(|(name, _)| without_mix(name).to_owned()).collect();
        tests.dedup();
        tests
    }

    /// Takes in a second run of those that failed or are in doubt: who passes now is unstable, and who fails now
    /// has failed.
    pub fn run_again(&mut self, again: Results) {
        for (name, mut row) in again.0 {
            let before = self.0.get(&name).map(|row| row.outcome);
            if !matches!(before, Some(Outcome::Failed | Outcome::InDoubt)) {
                continue;
            }
            if row.outcome.passed() {
                row.outcome = Outcome::Unstable;
            }
            self.0.insert(name, row);
        }
    }

    pub fn load(path: &Path) -> Result<Results> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Results::default()),
            Err(e) => return Err(e).with_context(|| format!("reading {}", path.display())),
        };
        let mut results = Results::default();
        for line in text.lines().skip(1) {
            let mut fields = line.splitn(4, '\t');
            let mut field = || fields.next();
            let row = (|| {
                let name = field()?.to_owned();
                let outcome = Outcome::named(field()?)?;
                let milliseconds = field()?.parse().ok()?;
                Some((name, Row { outcome, milliseconds, comment: field()?.to_owned() }))
            })();
            let (name, row) =
                row.with_context(|| format!("{} has a damaged line: {line}", path.display()))?;
            results.0.insert(name, row);
        }
        Ok(results)
    }

    pub fn save(&self, path: &Path) -> Result<()> {
        let lines = self.0.iter().map(|(name, row)| {
            format!("{name}\t{}\t{}\t{}\n", row.outcome.name(), row.milliseconds, row.comment)
        });
        let text = std::iter::once(format!("{HEAD}\n")).chain(lines).collect::<String>();
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// Takes in a newer run: of whole suites, or of some tests.
    pub fn update(&mut self, newer: Results, whole_suites: &[String]) {
        self.0.retain(|name, _| !whole_suites.iter().any(|s| s == suite(name)));
        self.0.extend(newer.0);
    }

    pub fn of_suite<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = (&'a str, &'a Row)> {
        self.0.iter().map(|(n, r)| (n.as_str(), r)).filter(move |(n, _)| suite(n) == wanted)
    }

    pub fn outcome(&self, name: &str) -> Option<Outcome> {
        self.0.get(name).map(|row| row.outcome)
    }
}

/// `galera.x 'mix'` → `galera`.
fn suite(name: &str) -> &str {
    name.split_once('.').map_or("", |(suite, _)| suite)
}

/// `galera.x 'mix'` → `galera.x`.
fn without_mix(name: &str) -> &str {
    name.split_once(' ').map_or(name, |(test, _)| test)
}

/// `galera.x 'mix'   w1 [ pass ]   12` → name, verdict, the rest.
fn parse(line: &str) -> Option<(String, &str, &str)> {
    let (head, tail) = line.split_once(" [ ")?;
    let (verdict, rest) = tail.split_once(" ]")?;
    let mut words: Vec<&str> = head.split_whitespace().collect();
    if words.last().is_some_and(|word| is_worker(word)) {
        words.pop();
    }
    let (first, combination) = words.split_first()?;
    let plausible = first.split_once('.').is_some_and(|(s, t)| !s.is_empty() && !t.is_empty())
        && combination.iter().all(|c| c.starts_with('\''));
    plausible.then(|| (words.join(" "), verdict, rest.trim()))
}

/// `w1`: which of the runner's workers ran it.
fn is_worker(word: &str) -> bool {
    word.strip_prefix('w').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
worker[01] Using MTR_BUILD_THREAD 300, with reserved ports 19000..19029
wsrep.variables_debug                    [ skipped ]  Requires debug build
wsrep.MDEV-33997 'binlogon'              w2 [ pass ]     10
galera_sr.mysql-wsrep-features#32        [ pass ]   3061
galera.MDEV-35511                        w1 [ fail ]
        Test ended at 2026-01-02 03:04:05
galera.MDEV-35511                        w1 [ retry-fail ]
galera.GCF-1                             [ fail ]  Found warnings/errors in server log file!
galera.GCF-1                             [ retry-pass ]    7
 - SSL connections [ pass ] supported
";

    fn read() -> Results {
        let mut results = Results::default();
        OUTPUT.lines().for_each(|line| {
            results.read_line(line);
        });
        results
    }

    #[test]
    fn who_passes_when_run_again_is_unstable() {
        let read = |lines: &[&str]| {
            let mut results = Results::default();
            lines
                .iter()
                .for_each(|line| assert_ne!(results.read_line(line), Told::Nothing, "{line}"));
            results
        };
        let mut results = read(&[
            "galera.a 'mix' w1 [ fail ]  Found warnings/errors in server log file!",
            "galera.a 'row' w1 [ pass ]   11",
            "galera.b w2 [ fail ]  Found warnings/errors in server log file!",
        ]);
        assert_eq!(results.ended(&[Outcome::Failed]), ["galera.a", "galera.b"]);
        results.run_again(read(&[
            "galera.a 'mix' w1 [ pass ]   12",
            "galera.a 'row' w1 [ fail ]",
            "galera.b w2 [ fail ]",
        ]));
        let outcomes: Vec<_> = results.0.values().map(|row| row.outcome).collect();
        assert_eq!(outcomes, [Outcome::Unstable, Outcome::Passed, Outcome::Failed]);
    }

    #[test]
    fn a_warning_at_shutdown_leaves_the_tests_before_it_in_doubt() {
        let mut results = Results::default();
        assert_eq!(results.read_line("galera.a 'mix' w1 [ pass ]   11"), Told::End);
        assert_eq!(results.read_line("galera.b w2 [ pass ]   11"), Told::End);
        assert_eq!(results.read_line("galera.c w1 [ pass ]   11"), Told::End);
        assert_eq!(results.read_line("galera.d w1 [ fail ]"), Told::Failure);
        let warned = format!("{WARNED_AT_SHUTDOWN}galera.a galera.c galera.d");
        assert_eq!(results.read_line(&warned), Told::Failure);
        assert_eq!(results.ended(&[Outcome::InDoubt]), ["galera.a", "galera.c"]);
        let mut again = Results::default();
        again.read_line("galera.a 'mix' w1 [ pass ]   11");
        again.read_line("galera.c w1 [ fail ]");
        results.run_again(again);
        assert_eq!(results.ended(&[Outcome::Failed]), ["galera.c", "galera.d"]);
        assert_eq!(results.ended(&[Outcome::Unstable]), ["galera.a"]);
    }

    #[test]
    fn the_runners_lines_are_understood() {
        let results = read();
        let seen: Vec<_> = results.0.iter().map(|(n, r)| (n.as_str(), r.outcome)).collect();
        assert_eq!(
            seen,
            [
                ("galera.GCF-1", Outcome::Unstable),
                ("galera.MDEV-35511", Outcome::Failed),
                ("galera_sr.mysql-wsrep-features#32", Outcome::Passed),
                ("wsrep.MDEV-33997 'binlogon'", Outcome::Passed),
                ("wsrep.variables_debug", Outcome::Skipped),
            ]
        );
        assert_eq!(results.0["wsrep.variables_debug"].comment, "Requires debug build");
        assert_eq!(results.0["wsrep.MDEV-33997 'binlogon'"].milliseconds, 10);
    }

    #[test]
    fn kept_results_are_the_same_and_a_newer_run_replaces_its_suites() -> Result<()> {
        let path =
            std::env::temp_dir().join(format!("quorate-mtr-results-{}.tsv", std::process::id()));
        let mut results = read();
        results.save(&path)?;
        let loaded = Results::load(&path);
        fs::remove_file(&path)?;
        assert_eq!(loaded?, results);

        let mut newer = Results::default();
        newer.read_line("galera.GCF-1    [ pass ]    7");
        results.update(newer.clone(), &[]);
        assert_eq!(results.0.len(), 5);
        assert_eq!(results.outcome("galera.GCF-1"), Some(Outcome::Passed));
        results.update(newer, &["galera".into()]);
        assert_eq!(results.outcome("galera.MDEV-35511"), None);
        Ok(())
    }
}
