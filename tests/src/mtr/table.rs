//! Two providers' results side by side, and what the documentation has to say of the difference.

use super::results::{Outcome, Results};
use std::fmt::Write;

/// Of the tests that pass on Galera, this share has to pass here, in per cent.
pub const SHARE_MIN: f64 = 95.0;
/// Shown, but not judged.
const EXTRA_SUITES: [&str; 2] = ["galera_3nodes", "galera_3nodes_sr"];

pub struct Comparison<'a> {
    pub ours: &'a Results,
    pub galera: &'a Results,
    /// The text of docs/compatibility.md.
    pub documented: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// Each entry is one reason.
    Bad(Vec<String>),
}

struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
    unstable: Vec<String>,
}

impl Comparison<'_> {
    /// The table for `suites`, and whether it is good enough.
    pub fn show(&self, suites: &[String]) -> (String, Verdict) {
        let mut out = format!(
            "{:<18} {:<8} {:>6} {:>6} {:>7} {:>8}  {}\n",
            "suite",
            "provider",
            "passed",
            "failed",
            "skipped",
            "unstable",
            "of those that pass on Galera"
        );
        let mut details = String::new();
        let mut reasons = Vec::new();
        for suite in suites {
            let extra = EXTRA_SUITES.contains(&suite.as_str());
            let missing = self.missing(suite);
            let on_galera = count(self.galera, suite);
            let here = count(self.ours, suite);
            let share = share(on_galera.passed, missing.len());
            let label = if extra { format!("{suite} (extra)") } else { suite.clone() };
            line(&mut out, &label, "galera", &on_galera, "");
            line(
                &mut out,
                "",
                "quorate",
                &here,
                &share.map_or("-".into(), |s| format!("{s:.1} %")),
            );
            for (who, counts) in [("galera", &on_galera), ("quorate", &here)] {
                for test in &counts.unstable {
                    let _ = writeln!(details, "unstable with {who}: {test}");
                }
            }
            for (test, how) in missing {
                let known = self.documents(&test);
                let note = if known { "" } else { "  (no line in docs/compatibility.md)" };
                let _ = writeln!(details, "passes on Galera, {how} here: {test}{note}");
                if !known && !extra {
                    reasons.push(format!("{test} has no line in docs/compatibility.md"));
                }
            }
            if let Some(share) = share.filter(|s| *s < SHARE_MIN && !extra) {
                reasons.push(format!("{suite}: {share:.1} % is below {SHARE_MIN} %"));
            }
            if on_galera.passed == 0 {
                reasons.push(format!("{suite}: no results with Galera to compare with"));
            }
        }
        out.push_str(&details);
        let verdict = if reasons.is_empty() { Verdict::Good } else { Verdict::Bad(reasons) };
        (out, verdict)
    }

    /// Tests that pass on Galera and not here, and what they do here.
    fn missing(&self, suite: &str) -> Vec<(String, &'static str)> {
        self.galera
            .of_suite(suite)
            .filter(|(_, row)| row.outcome.passed())
            .filter_map(|(name, _)| match self.ours.outcome(name) {
                Some(outcome) if outcome.passed() => None,
                Some(outcome) => Some((name.to_owned(), outcome.name())),
                None => Some((name.to_owned(), "not run")),
            })
            .collect()
    }

    /// A line of the document names the test in backquotes (whatever its combination).
    fn documents(&self, test: &str) -> bool {
        let plain = test.split(' ').next().unwrap_or(test);
        self.documented.contains(&format!("`{plain}`"))
    }
}

fn count(results: &Results, suite: &str) -> Counts {
    let mut counts = Counts { passed: 0, failed: 0, skipped: 0, unstable: Vec::new() };
    for (name, row) in results.of_suite(suite) {
        match row.outcome {
            Outcome::Failed | Outcome::InDoubt => counts.failed += 1,
            Outcome::Skipped => counts.skipped += 1,
            Outcome::Passed => counts.passed += 1,
            Outcome::Unstable => {
                counts.passed += 1;
                counts.unstable.push(name.to_owned());
            }
        }
    }
    counts
}

fn share(passed_on_galera: usize, missing: usize) -> Option<f64> {
    (passed_on_galera > 0)
        .then(|| (passed_on_galera - missing) as f64 / passed_on_galera as f64 * 100.0)
}

fn line(out: &mut String, suite: &str, provider: &str, counts: &Counts, share: &str) {
    let row = format!(
        "{suite:<18} {provider:<8} {:>6} {:>6} {:>7} {:>8}  {share}",
        counts.passed,
        counts.failed,
        counts.skipped,
        counts.unstable.len()
    );
    let _ = writeln!(out, "{}", row.trim_end());
}

#[cfg(test)]
mod tests {
    use super::super::results::Told;
    use super::*;

    fn results(lines: &[&str]) -> Results {
        let mut results = Results::default();
        assert!(lines.iter().all(|line| results.read_line(line) != Told::Nothing));
        results
    }

    #[test]
    fn a_test_lost_without_a_word_is_bad_even_above_the_share() {
        let many: Vec<String> = (0..99).map(|n| format!("wsrep.t{n} [ pass ] 1")).collect();
        let mut galera: Vec<&str> = many.iter().map(String::as_str).collect();
        galera.push("wsrep.lost 'mix' [ pass ] 1");
        let mut ours: Vec<&str> = many.iter().map(String::as_str).collect();
        ours.push("wsrep.lost 'mix' w1 [ fail ]");
        let (ours, galera) = (results(&ours), results(&galera));
        let suites = ["wsrep".to_string()];
        let judge =
            |documented| Comparison { ours: &ours, galera: &galera, documented }.show(&suites);
        let (table, verdict) = judge("");
        assert!(table.contains("99.0 %") && table.contains("failed here: wsrep.lost 'mix'"));
        assert_eq!(
            verdict,
            Verdict::Bad(vec!["wsrep.lost 'mix' has no line in docs/compatibility.md".into()])
        );
        assert_eq!(judge("| `wsrep.lost` | why |").1, Verdict::Good);
    }

    #[test]
    fn a_low_share_is_bad_though_documented_and_extra_suites_are_not_judged() {
        let galera = results(&[
            "galera.a [ pass ] 1",
            "galera.b [ pass ] 1",
            "galera.c [ fail ]",
            "galera_3nodes.x [ pass ] 1",
        ]);
        let ours = results(&["galera.a [ pass ] 1", "galera.c [ fail ]"]);
        let comparison = Comparison { ours: &ours, galera: &galera, documented: "`galera.b`" };
        let (table, verdict) = comparison.show(&["galera".into(), "galera_3nodes".into()]);
        assert!(table.contains("not run here: galera.b"));
        assert_eq!(verdict, Verdict::Bad(vec!["galera: 50.0 % is below 95 %".into()]));
    }
}
