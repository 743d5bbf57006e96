//! How long replicas need to apply what the primary has written: beside it, and after they were held back.

use super::{grid, listed, replicates, Found, Scale, Site, Test};
use crate::drive::sysbench::{self, Load};
use crate::fleet::Fleet;
use crate::meter::{lag, Meter};
use crate::plan::{Grid, Point};
use crate::record::Place;
use crate::system::{System, PEERS};
use anyhow::{ensure, Context, Result};
use std::time::{Duration, Instant};

pub struct Replay;

const HELD: &str = ", held back";
const EVENTS: &str = " events";
/// What a transaction takes until it is everywhere, about.
const EACH: Duration = Duration::from_micros(800);
/// For the writes, and then for the last replica: this, and several times what they take about.
const LIMIT_MIN: Duration = Duration::from_secs(300);

impl Test for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn about(&self) -> &'static str {
        "write_only, 100 clients, a number of events: until the last replica has everything, applying all \
         the time, and held back until all is written"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        let loads = amounts(scale.grid)
            .iter()
            .flat_map(|events| ["", HELD].map(|held| format!("{events}{EVENTS}{held}")));
        grid(loads, &scale.clients(&[100], &[100], &[100]))
    }

    fn each(&self, _scale: &Scale, point: &Point) -> Duration {
        EACH * events(&point.load).map_or(0, |events| events as u32)
    }

    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        let is_held = place.load.ends_with(HELD);
        replicates(system, place) && (!is_held || system.hold().is_some())
    }

    fn usual_systems(&self) -> Option<&'static [&'static str]> {
        Some(&PEERS)
    }

    fn differs(&self, scale: &Scale) -> Option<String> {
        let here = amounts(scale.grid);
        (here != amounts(Grid::Full))
            .then(|| format!("{} transactions; published with up to millions", listed(here)))
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let (fleet, tables) = (site.fleet, site.tables()?);
        let primary = fleet.primary()?;
        let events = events(&place.load)?;
        let limit = LIMIT_MIN + 4 * EACH * events as u32;
        let load = Load {
            script: "oltp_write_only",
            clients: place.clients,
            seconds: limit.as_secs() as u32,
            members: &[primary],
        };
        let write = || Ok((sysbench::run_events(fleet, tables, &load, events)?, Instant::now()));
        let meter = Meter::new(fleet);
        let before = meter.read()?;
        let mut found = Found::default();
        let (report, applying) = if place.load.ends_with(HELD) {
            let held = fleet.hold_others(primary)?;
            let (report, ended) = write()?;
            check_held(fleet, primary, events)?;
            held.release()?;
            fleet.wait_caught_up(primary, limit)?;
            (report, ended.elapsed())
        } else {
            let ((report, ended), lag) = lag::during(fleet, write)?;
            found.set_lag(lag);
            fleet.wait_caught_up(primary, limit)?;
            let applying = report.seconds() + ended.elapsed().as_secs_f64();
            (report, Duration::from_secs_f64(applying))
        };
        let used = before.until(&meter.read()?);
        found.set_costs(&used, report.transactions);
        found.set_conflicts(report.errors, report.transactions);
        found.set([
            ("replay_s", applying.as_secs_f64()),
            ("apply_over_write", report.seconds() / applying.as_secs_f64()),
            ("tps", report.tps),
            ("transactions", report.transactions),
        ]);
        Ok(found)
    }
}

/// Of transactions.
fn amounts(grid: Grid) -> &'static [u64] {
    match grid {
        Grid::Quick => &[2_000],
        Grid::Default => &[10_000, 50_000],
        Grid::Full => &[100_000, 1_000_000, 10_000_000],
    }
}

/// Of a place's load.
fn events(load: &str) -> Result<u64> {
    let number = load.split_once(EVENTS).and_then(|(number, _)| number.parse().ok());
    number.with_context(|| format!("{load:?} names no number of events"))
}

/// An error if somebody has applied what it was to be kept from.
fn check_held(fleet: &Fleet, primary: usize, events: u64) -> Result<()> {
    let written = fleet.applied(primary)?;
    for member in fleet.others(primary) {
        let missing = written.saturating_sub(fleet.applied(member)?);
        let name = member + 1;
        ensure!(missing >= events, "node{name} was held back, and misses {missing} of {events}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_names_its_events() {
        assert_eq!(events("4000 events").unwrap(), 4000);
        assert_eq!(events("10000 events, held back").unwrap(), 10_000);
        assert!(events("held back").is_err());
    }
}
