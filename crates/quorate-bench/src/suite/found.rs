//! What a test found in a cell: figures, curves, events and facts, and how they are made of what was measured.

use crate::drive::sysbench::Report;
use crate::meter::lag::Lag;
use crate::meter::{Figure, Used};
use anyhow::{ensure, Result};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a measurement has found; the rest of a cell is known before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub figures: BTreeMap<String, f64>,
    pub curves: BTreeMap<String, Vec<(f64, f64)>>,
    pub events: Vec<(f64, String)>,
    pub facts: BTreeMap<String, String>,
}

impl Found {
    pub(super) fn set<const N: usize>(&mut self, figures: [(&str, f64); N]) {
        self.figures.extend(figures.map(|(name, value)| (name.to_owned(), value)));
    }

    /// An error if something here is no number: a record cannot keep it.
    pub(crate) fn check(&self) -> Result<()> {
        let figures = self.figures.iter().map(|(name, value)| (name, *value));
        let points = self.curves.iter().flat_map(|(name, curve)| {
            curve.iter().flat_map(move |(x, y)| [x, y].map(|value| (name, *value)))
        });
        for (name, value) in figures.chain(points) {
            ensure!(value.is_finite(), "{name} is no number: {value}");
        }
        Ok(())
    }

    /// What sysbench says of a load, and the curve of throughput.
    pub(super) fn set_report(&mut self, report: &Report) {
        self.set([("tps", report.tps), ("avg_ms", report.average_ms), ("p95_ms", report.p95_ms)]);
        self.set_conflicts(report.errors, report.transactions);
        self.curves.insert("tps".into(), report.curve.clone());
    }

    pub(super) fn set_conflicts(&mut self, conflicts: f64, transactions: f64) {
        self.set([("conflicts_per_1000_trx", 1e3 * conflicts / transactions.max(1.0))]);
    }

    /// How long a member needed to be back. None: longer than `limit`.
    pub(super) fn set_back(&mut self, back: Option<Duration>, limit: Duration) {
        match back {
            Some(back) => self.set([("back_to_three_s", back.as_secs_f64())]),
            None => {
                let told = format!("not within {} s, while clients wrote", limit.as_secs());
                self.facts.insert("whole again".into(), told);
            }
        }
    }

    /// How long members needed for the rest of a load once it had ended, and what all of it cost. Where
    /// that took longer than `limit`, nobody knows what it costs.
    pub(super) fn set_behind(
        &mut self,
        behind: Option<Duration>,
        limit: Duration,
        used: &Used,
        report: &Report,
    ) {
        match behind {
            Some(behind) => {
                self.set([("behind_s", behind.as_secs_f64())]);
                self.set_costs(used, report.transactions);
            }
            None => {
                let limit = limit.as_secs();
                let told = format!("not all members had everything {limit} s after the load");
                self.facts.insert("no costs".into(), told);
            }
        }
    }

    /// What a transaction costs; what could not be counted stands among the facts, with its reason.
    pub(super) fn set_costs(&mut self, used: &Used, transactions: f64) {
        let each = |sum: f64| sum / transactions.max(1.0);
        self.set([
            ("net_bytes_per_trx", each(used.bytes)),
            ("packets_per_trx", each(used.packets)),
            ("lab_us_per_trx", each(used.lab_cpu_s * 1e6)),
        ]);
        if let Some(own) = used.own {
            self.set([
                ("own_cpu_us_per_trx", each(own.cpu.as_secs_f64() * 1e6)),
                ("own_switches_per_trx", each((own.sleeps + own.preempted) as f64)),
            ]);
        }
        self.set_counted("cpu_us_per_trx", used.cpu_s.clone().map(|seconds| each(seconds * 1e6)));
        self.set_counted("syncs_per_trx", used.syncs.clone().map(each));
    }

    /// Where it could not be counted, the reason stands among the facts.
    pub(super) fn set_counted(&mut self, name: &'static str, figure: Figure) {
        match figure {
            Ok(value) => self.set([(name, value)]),
            Err(reason) => drop(self.facts.insert(name.into(), reason)),
        }
    }

    /// The median, as `commit_us`, and what is slower.
    pub(super) fn set_percentiles(&mut self, times: Vec<Duration>) {
        let Some([median, p95, p99, max]) = at_shares(times, [0.5, 0.95, 0.99, 1.0]) else {
            return;
        };
        self.set([
            ("commit_us", median * 1e6),
            ("p95_ms", p95 * 1e3),
            ("p99_ms", p99 * 1e3),
            ("max_ms", max * 1e3),
        ]);
    }

    /// What is cut off by the end of a load stands among the facts.
    pub(super) fn set_lag(&mut self, lag: Lag) {
        if lag.cut > 0 {
            let cut = format!("{} of {} rows, at the end of the load", lag.cut, lag.times.len());
            self.facts.insert("not everywhere".into(), cut);
        }
        let Some([median, p99, max]) = at_shares(lag.times, [0.5, 0.99, 1.0]) else { return };
        self.set([
            ("lag_p50_ms", median * 1e3),
            ("lag_p99_ms", p99 * 1e3),
            ("lag_max_ms", max * 1e3),
        ]);
    }
}

/// Seconds that these shares of the times are not above; none of none.
fn at_shares<const N: usize>(mut times: Vec<Duration>, shares: [f64; N]) -> Option<[f64; N]> {
    times.sort_unstable();
    let last = times.len().checked_sub(1)?;
    Some(shares.map(|share| times[(last as f64 * share).round() as usize].as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::sysbench::CATCH_UP_LIMIT;
    use crate::meter::Activity;

    fn ms(times: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        times.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn percentiles_are_of_the_times() {
        let mut found = Found::default();
        found.set_percentiles(ms((1..=101).rev()));
        let figure = |name: &str| found.figures[name].round();
        assert_eq!((figure("commit_us"), figure("p95_ms")), (51_000.0, 96.0));
        assert_eq!((figure("p99_ms"), figure("max_ms")), (100.0, 101.0));
    }

    fn used() -> Used {
        Used {
            seconds: 10.0,
            cpu_s: Ok(2.0),
            bytes: 5e5,
            packets: 4e3,
            syncs: Err("no tracing".into()),
            lab_cpu_s: 0.5,
            own: Some(Activity { cpu: Duration::from_millis(2), sleeps: 30, preempted: 10 }),
        }
    }

    fn report() -> Report {
        Report {
            transactions: 1e3,
            tps: 100.0,
            average_ms: 1.0,
            p95_ms: 2.0,
            errors: 5.0,
            curve: vec![(1.0, 100.0)],
        }
    }

    #[test]
    fn what_a_load_costs_is_known_once_all_members_have_it() {
        let mut found = Found::default();
        found.set_report(&report());
        found.set_behind(Some(Duration::from_millis(2500)), CATCH_UP_LIMIT, &used(), &report());
        let figure = |name: &str| found.figures[name];
        assert_eq!((figure("behind_s"), figure("conflicts_per_1000_trx")), (2.5, 5.0));
        assert_eq!((figure("cpu_us_per_trx"), figure("lab_us_per_trx")), (2000.0, 500.0));
        assert_eq!((figure("net_bytes_per_trx"), figure("packets_per_trx")), (500.0, 4.0));
        assert_eq!((figure("own_cpu_us_per_trx"), figure("own_switches_per_trx")), (2.0, 0.04));
        assert_eq!(found.facts["syncs_per_trx"], "no tracing");

        let mut late = Found::default();
        late.set_behind(None, CATCH_UP_LIMIT, &used(), &report());
        assert!(late.figures.is_empty());
        assert!(late.facts["no costs"].contains("120 s"), "{late:?}");
    }

    #[test]
    fn what_is_no_number_is_noticed() {
        let mut found = Found::default();
        found.set_report(&report());
        found.check().unwrap();
        found.curves.insert("tps".into(), vec![(1.0, f64::NAN)]);
        assert!(found.check().is_err());
        found.curves.clear();
        found.set([("tps", f64::INFINITY)]);
        assert!(found.check().is_err());
    }

    #[test]
    fn a_lag_that_was_cut_is_told() {
        let mut found = Found::default();
        found.set_lag(Lag { times: ms([5, 7, 900]), cut: 1 });
        assert_eq!((found.figures["lag_p50_ms"], found.figures["lag_max_ms"]), (7.0, 900.0));
        assert_eq!(found.facts["not everywhere"], "1 of 3 rows, at the end of the load");
        let mut none = Found::default();
        none.set_lag(Lag::default());
        assert_eq!(none, Found::default());
    }

    #[test]
    fn a_member_that_is_not_back_is_told() {
        let mut found = Found::default();
        found.set_back(Some(Duration::from_millis(1500)), Duration::from_secs(60));
        assert_eq!((found.figures["back_to_three_s"], found.facts.len()), (1.5, 0));
        let mut none = Found::default();
        none.set_back(None, Duration::from_secs(60));
        assert!(none.figures.is_empty());
        assert_eq!(none.facts["whole again"], "not within 60 s, while clients wrote");
    }
}
