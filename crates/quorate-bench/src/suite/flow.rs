//! A secondary that is slow, and what that costs the primary: how far ahead it may get is the threshold of
//! flow control, in systems that have one.

use super::{grid, replicates, Found, Scale, Site, Test};
use crate::drive::sysbench::{self, Load};
use crate::meter::{lag, Meter};
use crate::plan::{Grid, Point};
use crate::record::Place;
use crate::system::System;
use anyhow::{Context, Result};
use std::time::Duration;

pub struct Flow;

const THRESHOLD: &str = "threshold ";
/// The only one of the quick grid, and of systems that have none: theirs are all the same.
const USUAL: u32 = 1000;
/// Of a processor, for the slow one.
const SHARE: f64 = 0.1;
const CATCH_UP_LIMIT: Duration = Duration::from_secs(180);

impl Test for Flow {
    fn name(&self) -> &'static str {
        "flow"
    }

    fn about(&self) -> &'static str {
        "write_only, one secondary with a tenth of a processor, thresholds of flow control: the \
         primary's throughput, and how far the secondary is behind"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        let thresholds: &[u32] = match scale.grid {
            Grid::Quick => &[USUAL],
            Grid::Default | Grid::Full => &[100, USUAL, 10_000],
        };
        let loads = thresholds.iter().map(|threshold| format!("{THRESHOLD}{threshold}"));
        grid(loads, &scale.clients(&[32], &[32], &[32]))
    }

    /// With what the slow one has to apply afterwards.
    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        2 * scale.time
    }

    fn harms(&self) -> bool {
        true
    }

    fn is_everywhere(&self, _scale: &Scale) -> bool {
        false
    }

    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        let is_usual = threshold(&place.load).is_ok_and(|threshold| threshold == USUAL);
        let has_thresholds = !system.flow_control(Some(USUAL)).is_empty();
        replicates(system, place) && (has_thresholds || is_usual)
    }

    fn differs(&self, _scale: &Scale) -> Option<String> {
        Some("sysbench, and a secondary that is slow; published with TPC-C on equal servers".into())
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let fleet = site.fleet;
        let threshold = threshold(&place.load)?;
        let tables = site.tables()?;
        let primary = fleet.primary()?;
        let slow = fleet.others(primary).next_back().context("there is no secondary")?;

        let load = Load {
            script: "oltp_write_only",
            clients: place.clients,
            seconds: site.scale.time.as_secs() as u32,
            members: &[primary],
        };
        sysbench::warm_up(fleet, tables, &load)?;
        let limit = fleet.system().flow_control(Some(threshold));
        fleet.tell_all(&limit)?;
        fleet.starve(slow, Some(SHARE))?;
        let meter = Meter::new(fleet);
        let before = meter.read()?;
        let written = || sysbench::run_plainly(fleet, tables, &load);
        let (report, lag) = lag::during(fleet, written)?;
        // What the slow one has not applied yet it applies with a processor of its own.
        fleet.starve(slow, None)?;
        let behind = fleet.catch_up(CATCH_UP_LIMIT)?;
        let used = before.until(&meter.read()?);
        fleet.tell_all(&fleet.system().flow_control(None))?;

        let mut found = Found::default();
        found.set_report(&report);
        found.set_behind(behind, CATCH_UP_LIMIT, &used, &report);
        found.set_lag(lag);
        let rates = report.curve.iter().map(|(_, rate)| *rate);
        let worst = rates.reduce(f64::min).context("sysbench told no second")?;
        found.set([("worst_tps", worst)]);
        found.curves.clear();
        found.facts.insert("slow".into(), format!("node{}", slow + 1));
        let how =
            if limit.is_empty() { "none: it runs without".to_owned() } else { limit.join("; ") };
        found.facts.insert("flow control".into(), how);
        Ok(found)
    }
}

fn threshold(load: &str) -> Result<u32> {
    let number = load.strip_prefix(THRESHOLD).and_then(|number| number.parse().ok());
    number.with_context(|| format!("{load:?} names no threshold"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_thresholds_is_measured_once() {
        let place = |load: &str| Place { members: 3, load: load.into(), ..Place::default() };
        let is_for = |name: &str, load: &str| {
            let system = crate::system::named(name, &Default::default()).unwrap();
            Flow.is_for(&*system, &place(load))
        };
        for load in ["threshold 100", "threshold 1000", "threshold 10000"] {
            assert!(is_for("quorate", load) && is_for("galera", load), "{load}");
            assert_eq!(is_for("async", load), load == "threshold 1000", "{load}");
        }
    }
}
