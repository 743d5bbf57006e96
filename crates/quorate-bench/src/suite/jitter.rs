//! How even the throughput is, second by second, under more clients than the machine has processors for.

use super::{grid, Found, Scale, Site, Test};
use crate::plan::{Grid, Point};
use crate::record::{Place, Spread};
use anyhow::{Context, Result};
use std::time::Duration;

pub struct Jitter;

/// A collection of garbage once a minute is to be seen.
const TIME_MIN: Duration = Duration::from_secs(61);

impl Test for Jitter {
    fn name(&self) -> &'static str {
        "jitter"
    }

    fn about(&self) -> &'static str {
        "read_write, 256 clients: how far the throughput of a second is from that of others"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        grid(["read_write"], &scale.clients(&[64], &[256], &[256]))
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        time(scale)
    }

    fn is_everywhere(&self, scale: &Scale) -> bool {
        scale.grid != Grid::Quick
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let mut found = site.steady(&place.load, place.clients, time(site.scale))?;
        let curve = found.curves.get("tps").context("sysbench told no second")?;
        let rates: Vec<f64> = curve.iter().map(|(_, rate)| *rate).collect();
        let spread = Spread::of(rates.iter().copied()).context("not one second")?;
        found.set([
            ("cv_percent", variation_percent(&rates)),
            ("worst_over_median", spread.low / spread.median.max(1.0)),
        ]);
        Ok(found)
    }
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
    fn an_even_rate_does_not_vary_and_an_uneven_one_does() {
        assert_eq!(variation_percent(&[100.0; 5]), 0.0);
        assert!((variation_percent(&[50.0, 150.0]) - 50.0).abs() < 1e-9);
    }
}
