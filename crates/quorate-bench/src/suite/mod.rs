//! The tests, each named after what it repeats.

mod conflicts;
mod dip;
mod failover;
mod flow;
mod jitter;
mod large;
mod latency;
mod oltp;
mod persistence;
mod replay;
mod rpo;
mod scale;
mod secondary;
mod tpcc;

use crate::drive::sysbench::{self, Load, Report, Tables, CATCH_UP_LIMIT};
use crate::fleet::Fleet;
use crate::meter::lag::Lag;
use crate::meter::{Meter, Used};
use crate::plan::{Asked, Grid, Point};
use crate::record::Place;
use crate::system::System;
use anyhow::{bail, ensure, Result};
use quorate_lab::net::Topology;
use quorate_lab::process::Syncs;
use std::cell::Cell as Once;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

/// A test of the suite.
pub trait Test: Sync {
    fn name(&self) -> &'static str;

    /// What is done, in a line.
    fn about(&self) -> &'static str;

    /// An error that says what is missing on this machine, and how to get it.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Its grid on one network.
    fn points(&self, scale: &Scale) -> Vec<Point>;

    /// What a point takes, about.
    fn each(&self, scale: &Scale, point: &Point) -> Duration;

    /// Whether members are hurt. They are whole again afterwards, or the cell has failed.
    fn harms(&self) -> bool {
        false
    }

    /// Whether nothing can be measured on its fleet afterwards.
    fn spends(&self) -> bool {
        false
    }

    /// Whether another member leads afterwards: what comes next has a new fleet.
    fn moves_primary(&self, _system: &dyn System) -> bool {
        false
    }

    /// Whether it is measured on all networks, rather than on the first.
    fn is_everywhere(&self, scale: &Scale) -> bool {
        scale.grid == Grid::Full
    }

    /// Where else it is measured, unless networks were asked for.
    fn further_networks(&self, _grid: Grid) -> &'static [Topology] {
        &[]
    }

    /// Whether it takes the tables of sysbench.
    fn fills(&self) -> bool {
        true
    }

    /// What is otherwise at this scale than in what was published.
    fn differs(&self, _scale: &Scale) -> Option<String> {
        None
    }

    /// What the default grid measures, of systems that nobody has named: all, or those that say something here.
    fn usual_systems(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Whether a system can do what is done at a place; it has no cell there if not.
    fn is_for(&self, _system: &dyn System, _place: &Place) -> bool {
        true
    }

    /// Whether the servers that it is measured on sync.
    fn syncs(&self, _place: &Place) -> Syncs {
        Syncs::Done
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found>;

    /// Takes away what would be in the way of whatever is measured next.
    fn clear(&self, _fleet: &Fleet) -> Result<()> {
        Ok(())
    }
}

/// `10000 and 50000`.
fn listed<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(" and ")
}

/// All tests, in the order in which they are shown.
pub const ALL: [&dyn Test; 13] = [
    &oltp::Oltp,
    &jitter::Jitter,
    &failover::Failover,
    &secondary::Secondary,
    &rpo::Rpo,
    &replay::Replay,
    &scale::ScaleOut,
    &tpcc::Tpcc,
    &latency::Latency,
    &large::Large,
    &persistence::Persistence,
    &conflicts::Conflicts,
    &flow::Flow,
];

/// The test of this name.
pub fn named(name: &str) -> Result<&'static dyn Test> {
    match ALL.into_iter().find(|test| test.name() == name) {
        Some(test) => Ok(test),
        None => {
            let names: Vec<&str> = ALL.iter().map(|test| test.name()).collect();
            bail!("no test {name:?}; there are {}", names.join(", "))
        }
    }
}

/// What the command line says of all tests.
#[derive(Clone, Debug)]
pub struct Scale {
    pub grid: Grid,
    /// Of a steady load.
    pub time: Duration,
    /// In the place of a test's own numbers of clients.
    pub clients: Option<Vec<u32>>,
    pub tables: Tables,
    /// Where tests that can profile write what they found, if that is asked for.
    pub profiles: Option<PathBuf>,
}

impl Scale {
    /// The test's own numbers of clients by grid, unless others were asked for.
    fn clients(&self, quick: &[u32], usual: &[u32], full: &[u32]) -> Vec<u32> {
        self.clients.clone().unwrap_or_else(|| match self.grid {
            Grid::Quick => quick.to_vec(),
            Grid::Default => usual.to_vec(),
            Grid::Full => full.to_vec(),
        })
    }
}

/// Of what was published with sysbench.
const PUBLISHED_TABLES: Tables = Tables { count: 16, rows: 10_000_000 };

/// What is otherwise in a load of sysbench: its tables, and how long a cell takes.
fn differ_tables(scale: &Scale, time: Duration) -> Option<String> {
    let (tables, published) = (scale.tables, PUBLISHED_TABLES);
    (tables != published).then(|| {
        let seconds = time.as_secs();
        format!("{tables} rows, {seconds} s a cell; published with {published} rows")
    })
}

/// Each load with each number of clients, on three members.
fn grid(loads: impl IntoIterator<Item = impl Display>, clients: &[u32]) -> Vec<Point> {
    let of_load = |load: String| {
        clients.iter().map(move |clients| Point {
            members: 3,
            load: load.clone(),
            clients: *clients,
        })
    };
    loads.into_iter().flat_map(|load| of_load(load.to_string())).collect()
}

/// A test with its points, for the plan.
pub fn ask(test: &dyn Test, scale: &Scale) -> Asked {
    let timed = |point: Point| {
        let takes = test.each(scale, &point);
        (point, takes)
    };
    let points = test.points(scale).into_iter().map(timed);
    Asked {
        test: test.name(),
        points: points.collect(),
        harms: test.harms(),
        spends: test.spends(),
    }
}

/// Where a test is carried out: a system that runs.
pub struct Site<'a> {
    pub fleet: &'a Fleet,
    pub scale: &'a Scale,
    pub round: u32,
    /// Whether the fleet has the tables of sysbench.
    pub filled: &'a Once<bool>,
}

impl Site<'_> {
    /// The tables of sysbench, filled once in the life of a fleet.
    fn tables(&self) -> Result<Tables> {
        if !self.filled.replace(true) {
            sysbench::prepare(self.fleet, self.scale.tables)?;
        }
        Ok(self.scale.tables)
    }

    /// A load by sysbench, through the primary: figures, costs, and the curve of throughput.
    fn steady(&self, load: &str, clients: u32, time: Duration) -> Result<Found> {
        self.steady_at(&[self.fleet.primary()?], load, clients, time)
    }

    /// The same with the clients spread over these members.
    fn steady_at(
        &self,
        members: &[usize],
        load: &str,
        clients: u32,
        time: Duration,
    ) -> Result<Found> {
        let tables = self.tables()?;
        let script = format!("oltp_{load}");
        let load = Load { script: &script, clients, seconds: time.as_secs() as u32, members };
        let outcome = sysbench::run(self.fleet, &Meter::new(self.fleet), tables, &load)?;
        let mut found = Found::default();
        found.set_report(&outcome.report);
        found.set_behind(outcome.behind, CATCH_UP_LIMIT, &outcome.used, &outcome.report);
        Ok(found)
    }
}

/// What a measurement has found; the rest of a cell is known before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub figures: BTreeMap<String, f64>,
    pub curves: BTreeMap<String, Vec<(f64, f64)>>,
    pub events: Vec<(f64, String)>,
    pub facts: BTreeMap<String, String>,
}

impl Found {
    fn set<const N: usize>(&mut self, figures: [(&str, f64); N]) {
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
    fn set_report(&mut self, report: &Report) {
        self.set([("tps", report.tps), ("avg_ms", report.average_ms), ("p95_ms", report.p95_ms)]);
        self.set_conflicts(report.errors, report.transactions);
        self.curves.insert("tps".into(), report.curve.clone());
    }

    fn set_conflicts(&mut self, conflicts: f64, transactions: f64) {
        self.set([("conflicts_per_1000_trx", 1e3 * conflicts / transactions.max(1.0))]);
    }

    /// Of a member that was not back so soon.
    fn set_not_back(&mut self, limit: Duration) {
        let told = format!("not within {} s, while clients wrote", limit.as_secs());
        self.facts.insert("whole again".into(), told);
    }

    /// How long members needed for the rest of a load once it had ended, and what all of it cost. Where
    /// that took longer than `limit`, nobody knows what it costs.
    fn set_behind(
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
    fn set_costs(&mut self, used: &Used, transactions: f64) {
        let each = |sum: f64| sum / transactions.max(1.0);
        self.set([
            ("net_bytes_per_trx", each(used.bytes)),
            ("packets_per_trx", each(used.packets)),
            ("lab_us_per_trx", each(used.lab_cpu_s * 1e6)),
        ]);
        let cpu = used.cpu_s.clone().map(|seconds| seconds * 1e6);
        for (name, sum) in [("cpu_us_per_trx", cpu), ("syncs_per_trx", used.syncs.clone())] {
            match sum {
                Ok(sum) => drop(self.figures.insert(name.into(), each(sum))),
                Err(reason) => drop(self.facts.insert(name.into(), reason)),
            }
        }
    }

    /// The median, as `commit_us`, and what is slower.
    fn set_percentiles(&mut self, times: Vec<Duration>) {
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
    fn set_lag(&mut self, lag: Lag) {
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

/// Whether the system has as many members as the place asks for: one that is alone has nobody who could be
/// behind.
fn replicates(system: &dyn System, place: &Place) -> bool {
    place.members > 1 && system.members(place.members) == place.members
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
