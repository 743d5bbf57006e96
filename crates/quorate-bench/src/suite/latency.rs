//! What one client waits for a commit, by where it is connected.

use super::{Found, Scale, Site, Test};
use crate::drive::commits;
use crate::plan::Point;
use crate::record::Place;
use crate::system::System;
use anyhow::{Context, Result};
use std::time::Duration;

pub struct Latency;

const LOADS: [&str; 3] = [PRIMARY, "near member", "far member"];
const PRIMARY: &str = "primary";
const LEVEL_LIMIT: Duration = Duration::from_secs(60);

impl Test for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn about(&self) -> &'static str {
        "one client commits one row after the other: from the primary, from the member nearest to it, \
         and from the farthest"
    }

    fn points(&self, _scale: &Scale) -> Vec<Point> {
        LOADS.map(|load| Point { members: 3, load: load.into(), clients: 1 }).into()
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        scale.time
    }

    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        place.load == PRIMARY || system.is_multi_primary()
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let fleet = site.fleet;
        let primary = fleet.primary().context("no member is the primary")?;
        commits::prepare(&mut fleet.connect(primary)?)?;
        fleet.wait_level(LEVEL_LIMIT)?;
        let member = match place.load.as_str() {
            PRIMARY => primary,
            load => {
                let delay = |member: &usize| fleet.network().quality(primary, *member).delay;
                let others = fleet.members().filter(|member| *member != primary);
                // Of equals, near is the first and far the last.
                let chosen = match load == LOADS[1] {
                    true => others.rev().min_by_key(delay),
                    false => others.max_by_key(delay),
                };
                chosen.context("there is no other member")?
            }
        };
        let times = commits::run(&mut fleet.connect(member)?, site.scale.time)?;
        let mut found = Found::default();
        found.facts.insert("member".into(), format!("node{}", member + 1));
        found.set_percentiles(times);
        Ok(found)
    }
}
