//! How much a group makes that keeps up: the best rate at which no member falls further and further behind.
//!
//! First as fast as it goes. If all members have everything as soon as that ends, that is the rate. Else
//! rates below it are tried, by halves of what is left between one that was kept up with and one that was
//! not.

use super::{listed, replicates, Found, Scale, Site, Test};
use crate::drive::sysbench::{self, Load};
use crate::fleet::Fleet;
use crate::meter::Meter;
use crate::plan::{Grid, Point};
use crate::record::Place;
use crate::system::System;
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

pub struct ScaleOut;

const LOADS: [&str; 4] =
    ["read_write durable", "read_write relaxed", "update_index durable", "update_index relaxed"];
const RELAXED: &str = "relaxed";
/// Members whose lag does not grow have everything within this share of a trial's time after its end ...
const SLACK: f64 = 0.05;
/// ... or within what a group needs that nothing is asked of.
const SLACK_SECONDS_MIN: f64 = 0.1;
/// Of what the members applied when they could not keep up.
const FIRST_SHARE: f64 = 0.95;
/// Where even that was too much.
const STEP_DOWN: f64 = 0.7;
const CATCH_UP_LIMIT: Duration = Duration::from_secs(600);

impl Test for ScaleOut {
    fn name(&self) -> &'static str {
        "scale"
    }

    fn about(&self) -> &'static str {
        "3 to 9 members, durable and not: the best rate at which no member's lag grows, and what a \
         second of processor time makes"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        let (sizes, loads): (&[usize], &[&str]) = match scale.grid {
            Grid::Quick => (&[3], &LOADS[..1]),
            Grid::Default | Grid::Full => (&[3, 5, 7, 9], &LOADS),
        };
        let mut points = Vec::new();
        for clients in clients(scale) {
            for members in sizes {
                points.extend(loads.iter().map(|load| Point {
                    members: *members,
                    load: (*load).to_owned(),
                    clients,
                }));
            }
        }
        points
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        trial_time(scale) * (1 + attempts(scale))
    }

    fn is_everywhere(&self, _scale: &Scale) -> bool {
        false
    }

    /// A system that is relaxed already is another one, relaxed for this test.
    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        let relaxed = system.relaxed();
        let gives_up = relaxed.iter().any(|variable| !system.durability().contains(variable));
        replicates(system, place) && (relaxed.is_empty() || gives_up)
    }

    /// The published ones; Group Replication at its best, too.
    fn usual_systems(&self) -> Option<&'static [&'static str]> {
        Some(&["quorate", "galera", "async", "gr-eventual", "gr-tuned"])
    }

    fn differs(&self, scale: &Scale) -> Option<String> {
        let here = match scale.grid {
            Grid::Full => String::new(),
            _ => format!(
                "{} clients, {} rows, trials of {} s, published with up to 256 clients, 8x1000000 rows, \
                 4 minutes; ",
                listed(&clients(scale)),
                scale.tables,
                trial_time(scale).as_secs()
            ),
        };
        Some(format!(
            "{here}relaxed is innodb_flush_log_at_trx_commit=0 here, 2 where it was published"
        ))
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let (script, kind) = place.load.split_once(' ').context("a load, and how durable")?;
        let tables = site.tables()?;
        let fleet = site.fleet;
        let primary = fleet.primary()?;
        let script = format!("oltp_{script}");
        let load = Load {
            script: &script,
            clients: place.clients,
            seconds: trial_time(site.scale).as_secs() as u32,
            members: &[primary],
        };
        let relaxed = if kind == RELAXED { fleet.system().relaxed() } else { Vec::new() };
        fleet.set_variables(&relaxed)?;
        sysbench::warm_up(fleet, tables, &load)?;

        let meter = Meter::new(fleet);
        let mut tried = Vec::new();
        let mut attempt = |rate: Option<f64>| {
            let before = meter.read()?;
            let report = match rate {
                None => sysbench::run_plainly(fleet, tables, &load)?,
                Some(rate) => sysbench::run_at_rate(fleet, tables, &load, rate)?,
            };
            let ended = Instant::now();
            fleet.wait_caught_up(primary, CATCH_UP_LIMIT)?;
            let behind = ended.elapsed().as_secs_f64();
            let used = before.until(&meter.read()?);
            let mut found = Found::default();
            found.set_costs(&used, report.transactions);
            found.set_conflicts(report.errors, report.transactions);
            found.set([("best_tps", report.tps), ("avg_ms", report.average_ms)]);
            if let Ok(seconds) = used.cpu_s {
                found.set([("trx_per_cpu_s", report.transactions / seconds)]);
            }
            let trial = Trial { tps: report.tps, seconds: report.seconds(), behind, found };
            tried.push(trial.words());
            Ok(trial)
        };
        let first = attempt(None)?;
        let best = search(first, attempts(site.scale), |rate| attempt(Some(rate)))?;
        let mut found = best
            .with_context(|| {
                format!("members fall behind at every rate that was tried: {}", tried.join(", "))
            })?
            .found;
        found.facts.insert("tried".into(), tried.join(", "));
        durable_again(fleet, &relaxed)?;
        if kind == RELAXED && relaxed.is_empty() {
            let nothing = "nothing to give up: what is told as committed is in the group's log";
            found.facts.insert("relaxed".into(), nothing.into());
        }
        Ok(found)
    }
}

fn clients(scale: &Scale) -> Vec<u32> {
    scale.clients(&[64], &[64], &[256])
}

/// Whole seconds, as sysbench takes them.
fn trial_time(scale: &Scale) -> Duration {
    match scale.grid {
        Grid::Quick | Grid::Default => Duration::from_secs(scale.time.as_secs().div_ceil(2)),
        Grid::Full => scale.time,
    }
}

/// After the first.
fn attempts(scale: &Scale) -> u32 {
    match scale.grid {
        Grid::Quick => 3,
        Grid::Default => 4,
        Grid::Full => 6,
    }
}

fn durable_again(fleet: &Fleet, relaxed: &[(&'static str, &'static str)]) -> Result<()> {
    let is_relaxed = |name: &str| relaxed.iter().any(|(relaxed, _)| *relaxed == name);
    let mut before = fleet.system().durability();
    before.retain(|(name, _)| is_relaxed(name));
    fleet.set_variables(&before)
}

/// A load at one rate.
struct Trial {
    tps: f64,
    seconds: f64,
    /// How long the last member needed for the rest, once the load had ended.
    behind: f64,
    found: Found,
}

impl Trial {
    /// Whether all members kept up. A lag that grows by a share of the time is as long at the end.
    fn holds(&self) -> bool {
        self.behind <= (self.seconds * SLACK).max(SLACK_SECONDS_MIN)
    }

    /// By the slowest member.
    fn applied_tps(&self) -> f64 {
        self.tps * self.seconds / (self.seconds + self.behind)
    }

    fn words(&self) -> String {
        format!("{:.0}/s ({:.2} s behind)", self.tps, self.behind)
    }
}

/// The trial of the highest rate that held.
fn search(
    first: Trial,
    attempts: u32,
    mut attempt: impl FnMut(f64) -> Result<Trial>,
) -> Result<Option<Trial>> {
    if first.holds() {
        return Ok(Some(first));
    }
    let mut too_high = first.tps;
    let mut rate = first.applied_tps() * FIRST_SHARE;
    let mut best: Option<(f64, Trial)> = None;
    for _ in 0..attempts {
        let trial = attempt(rate)?;
        match trial.holds() {
            true => best = Some((rate, trial)),
            false => too_high = rate,
        }
        rate = match &best {
            Some((held, _)) => (held + too_high) / 2.0,
            None => rate * STEP_DOWN,
        };
    }
    Ok(best.map(|(_, trial)| trial))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::sysbench::Tables;

    /// Of a group that applies `most` a second.
    fn trial(tps: f64, most: f64) -> Trial {
        let behind = (tps / most - 1.0).max(0.0) * 10.0;
        Trial { tps, seconds: 10.0, behind, found: Found::default() }
    }

    fn best(full: f64, most: f64) -> Option<f64> {
        let found = search(trial(full, most), 5, |rate| Ok(trial(rate, most))).unwrap();
        found.map(|trial| trial.tps)
    }

    #[test]
    fn a_trial_has_whole_seconds() {
        let of = |seconds| {
            let (tables, time) = (Tables { count: 1, rows: 1 }, Duration::from_secs(seconds));
            let (clients, profiles) = (None, None);
            trial_time(&Scale { grid: Grid::Quick, time, clients, tables, profiles }).as_secs_f64()
        };
        assert_eq!((of(3), of(4), of(5)), (2.0, 2.0, 3.0));
    }

    #[test]
    fn who_keeps_up_is_not_asked_for_less() {
        let first = trial(1000.0, 2000.0);
        let found = search(first, 5, |_| panic!("it held")).unwrap();
        assert_eq!(found.map(|trial| trial.tps), Some(1000.0));
    }

    #[test]
    fn the_rate_that_is_applied_is_found() {
        for most in [100.0, 400.0, 900.0] {
            let found = best(1000.0, most).unwrap();
            assert!((most * 0.95..most * 1.06).contains(&found), "{found} of {most}");
        }
    }

    #[test]
    fn who_never_keeps_up_has_no_rate() {
        let late = |tps| Trial { tps, seconds: 10.0, behind: 5.0, found: Found::default() };
        let mut rates = Vec::new();
        let found = search(late(1000.0), 3, |rate| {
            rates.push(rate);
            Ok(late(rate))
        });
        assert!(found.unwrap().is_none());
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
    }
}
