//! What one client waits for a commit, by where it is connected; and where that time goes.

use super::{grid, profiled, Found, Scale, Site, Test};
use crate::drive::commits::{self, Commits};
use crate::meter::{Meter, Parts};
use crate::plan::{Grid, Point};
use crate::record::{Cell, Place};
use crate::system::System;
use anyhow::{Context, Result};
use quorate_lab::net::Topology;
use std::time::Duration;

pub struct Latency;

const PRIMARY: &str = "primary";
const NEAR: &str = "near member";
const FAR: &str = "far member";
const LEVEL_LIMIT: Duration = Duration::from_secs(60);
/// What is traced makes a commit slower, so it is a run of its own: so many commits, or as long.
const TRACED: usize = 200;
const TRACED_TIME: Duration = Duration::from_secs(3);

impl Test for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn about(&self) -> &'static str {
        "one client commits one row after the other: from the primary, from the member nearest to it, \
         and from the farthest; where the time of a commit goes in Quorate"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        match scale.grid {
            Grid::Quick => grid([PRIMARY, FAR], &[1]),
            Grid::Default | Grid::Full => grid([PRIMARY, NEAR, FAR], &[1]),
        }
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        profiled::takes(scale)
    }

    fn is_everywhere(&self, _scale: &Scale) -> bool {
        true
    }

    fn fills(&self) -> bool {
        false
    }

    /// Where the time of a commit has a goal.
    fn further_networks(&self, grid: Grid) -> &'static [Topology] {
        match grid {
            Grid::Quick => &[],
            Grid::Default | Grid::Full => &[Topology::Region],
        }
    }

    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        place.load == PRIMARY || system.is_multi_primary()
    }

    fn has_all(&self, cell: &Cell, scale: &Scale) -> bool {
        profiled::is_whole(cell, scale)
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let fleet = site.fleet;
        let primary = fleet.primary()?;
        commits::prepare(&mut fleet.connect(primary)?)?;
        fleet.wait_level(LEVEL_LIMIT)?;
        let member = member(site, primary, &place.load)?;
        let mut found = Found::default();
        found.facts.insert("member".into(), format!("node{}", member + 1));
        let mut commits = Commits::begin(fleet.connect(member)?)?;

        let meter = Meter::new(fleet);
        let before = meter.read()?;
        let times = commits.run(site.scale.time, usize::MAX)?;
        fleet.wait_level(LEVEL_LIMIT)?;
        found.set_costs(&before.until(&meter.read()?), times.len() as f64);
        found.set_percentiles(times);
        drop(meter);

        let server = fleet.pid(member).with_context(|| format!("node{} is gone", member + 1))?;
        if let Err(error) = tell_parts(&mut found, server, &mut commits) {
            found.facts.insert("parts".into(), format!("not told: {error:#}"));
        }
        site.profile(place, &mut found, || Ok(commits.run(site.scale.time, usize::MAX)?.len()))?;
        Ok(found)
    }
}

/// Where the client is connected.
fn member(site: &Site, primary: usize, load: &str) -> Result<usize> {
    let fleet = site.fleet;
    let delay = |member: &usize| fleet.network().quality(primary, *member).delay;
    let others = fleet.others(primary);
    // Of equals, near is the first and far the last.
    let chosen = match load {
        PRIMARY => Some(primary),
        NEAR => others.min_by_key(delay),
        _ => others.max_by_key(delay),
    };
    chosen.context("there is no other member")
}

/// Of Quorate; nothing of any other.
fn tell_parts(found: &mut Found, server: i32, commits: &mut Commits) -> Result<()> {
    let Some(parts) = Parts::watch(server)? else { return Ok(()) };
    let mut times = commits.run(TRACED_TIME, TRACED)?;
    for (name, time) in parts.medians()? {
        found.figures.insert(name.into(), time);
    }
    times.sort_unstable();
    let traced = times[times.len() / 2].as_micros();
    found.facts.insert("while its parts were told, a commit took".into(), format!("{traced} µs"));
    Ok(())
}
