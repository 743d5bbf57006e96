//! How even the throughput is, second by second, under more clients than the machine has processors for.

use super::{differ_tables, grid, replicates, Found, Scale, Site, Test};
use crate::plan::{Grid, Point};
use crate::record::{Place, Spread};
use crate::system::System;
use anyhow::{Context, Result};
use quorate_lab::net::Topology;
use std::time::Duration;

pub struct Jitter;

/// Clients at the primary, as it was published ...
const PRIMARY: &str = "read_write";
/// ... and spread over all members, where these take writes.
const ALL_MEMBERS: &str = "read_write, all members";
const SCRIPT: &str = "read_write";

/// A collection of garbage once a minute is to be seen.
const TIME_MIN: Duration = Duration::from_secs(61);

impl Test for Jitter {
    fn name(&self) -> &'static str {
        "jitter"
    }

    fn about(&self) -> &'static str {
        "read_write, 256 clients at the primary, and spread over all members that take writes: how far \
         the throughput of a second is from that of others"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        grid([PRIMARY, ALL_MEMBERS], &scale.clients(&[64], &[256], &[256]))
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        time(scale)
    }

    fn is_everywhere(&self, scale: &Scale) -> bool {
        scale.grid != Grid::Quick
    }

    /// The four that it was published for.
    fn further_networks(&self, grid: Grid) -> &'static [Topology] {
        match grid {
            Grid::Quick => &[],
            Grid::Default | Grid::Full => &[Topology::Region, Topology::ThreeRegions],
        }
    }

    /// Who is alone has no network: it is measured beside those that are near.
    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        let is_near = [Topology::Lan, Topology::Region]
            .iter()
            .any(|network| network.to_string() == place.network);
        match place.load.as_str() {
            PRIMARY => is_near || replicates(system, place),
            _ => system.is_multi_primary() && replicates(system, place),
        }
    }

    /// The published ones, and who has nobody to wait for; Group Replication at its best, too.
    fn usual_systems(&self) -> Option<&'static [&'static str]> {
        Some(&["quorate", "galera", "standalone", "gr-eventual", "gr-tuned"])
    }

    fn differs(&self, scale: &Scale) -> Option<String> {
        differ_tables(scale, time(scale))
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let members = match place.load.as_str() {
            ALL_MEMBERS => site.fleet.members().collect(),
            _ => vec![site.fleet.primary()?],
        };
        let mut found = site.steady_at(&members, SCRIPT, place.clients, time(site.scale))?;
        let curve = found.curves.get("tps").context("sysbench told no second")?;
        let (variation, worst) = unevenness(curve).context("sysbench told a single second")?;
        found.set([("cv_percent", variation), ("worst_over_median", worst)]);
        Ok(found)
    }
}

/// Variation in percent, and the worst second over the median one. Of the first second nothing is said:
/// connections, plans and caches are made in it.
fn unevenness(curve: &[(f64, f64)]) -> Option<(f64, f64)> {
    let rates: Vec<f64> = curve.iter().skip(1).map(|(_, rate)| *rate).collect();
    let spread = Spread::of(rates.iter().copied())?;
    Some((variation_percent(&rates), spread.low / spread.median.max(1.0)))
}

fn time(scale: &Scale) -> Duration {
    match scale.grid {
        Grid::Quick => 2 * scale.time,
        Grid::Default | Grid::Full => scale.time.max(TIME_MIN),
    }
}

/// Standard deviation over mean.
fn variation_percent(rates: &[f64]) -> f64 {
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count;
    100.0 * variance.sqrt() / mean.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_second_is_left_out() {
        let curve = [(1.0, 10.0), (2.0, 100.0), (3.0, 50.0), (4.0, 100.0)];
        let (variation, worst) = unevenness(&curve).unwrap();
        assert_eq!(worst, 0.5);
        assert!((variation - variation_percent(&[100.0, 50.0, 100.0])).abs() < 1e-9);
        assert_eq!(unevenness(&curve[..1]), None);
    }

    #[test]
    fn all_members_are_written_to_where_they_take_writes() {
        let place = |load: &str| Place {
            members: 3,
            network: "lan".into(),
            load: load.into(),
            ..Place::default()
        };
        let is_for = |name: &str, load: &str| {
            let system = crate::system::named(name, &Default::default()).unwrap();
            Jitter.is_for(&*system, &place(load))
        };
        assert!(is_for("galera", ALL_MEMBERS) && is_for("quorate", ALL_MEMBERS));
        assert!(is_for("async", PRIMARY) && !is_for("async", ALL_MEMBERS));
        assert!(is_for("standalone", PRIMARY) && !is_for("standalone", ALL_MEMBERS));
    }

    #[test]
    fn an_even_rate_does_not_vary_and_an_uneven_one_does() {
        assert_eq!(variation_percent(&[100.0; 5]), 0.0);
        assert!((variation_percent(&[50.0, 150.0]) - 50.0).abs() < 1e-9);
    }
}
