//! The standard load of a shop: statements by primary key in a few tables, at several numbers of clients
//! and distances between the members.

use super::{differ_tables, grid, profiled, replicates, Found, Scale, Site, Test};
use crate::plan::{Grid, Point};
use crate::record::{Cell, Place};
use crate::system::System;
use anyhow::Result;
use quorate_lab::net::Topology;
use std::time::Duration;

pub struct Oltp;

impl Test for Oltp {
    fn name(&self) -> &'static str {
        "oltp"
    }

    fn about(&self) -> &'static str {
        "sysbench, clients beside the primary: throughput and response times by number of clients"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        let loads: &[&str] = match scale.grid {
            Grid::Full => &["read_only", "read_write", "write_only", "update_index"],
            Grid::Quick | Grid::Default => &["write_only", "read_write"],
        };
        let clients = scale.clients(&[1, 64], &[1, 16, 64, 256], &[1, 4, 16, 64, 256, 512]);
        let mut points = grid(loads, &clients);
        if scale.grid == Grid::Quick && scale.clients.is_none() {
            // What one client waits for is seen by its writes.
            points.retain(|point| point.load == "write_only" || point.clients > 1);
        }
        points
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        profiled::takes(scale)
    }

    fn is_everywhere(&self, _scale: &Scale) -> bool {
        true
    }

    /// That of a member that is far away is compared with it.
    fn further_networks(&self, grid: Grid) -> &'static [Topology] {
        match grid {
            Grid::Quick => &[],
            Grid::Default | Grid::Full => &[Topology::Region],
        }
    }

    /// Who is alone has no network: it is measured once.
    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        replicates(system, place) || place.network == Topology::Lan.to_string()
    }

    fn differs(&self, scale: &Scale) -> Option<String> {
        differ_tables(scale, scale.time)
    }

    fn has_all(&self, cell: &Cell, scale: &Scale) -> bool {
        profiled::is_whole(cell, scale)
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let mut found = site.steady(&place.load, place.clients, site.scale.time)?;
        found.curves.clear();
        site.profile(place, &mut found, || {
            let primary = [site.fleet.primary()?];
            let again = site.outcome_at(&primary, &place.load, place.clients, site.scale.time)?;
            // The threads are looked at in the warm-up, too.
            Ok((again.report.transactions + again.warm_up) as usize)
        })?;
        Ok(found)
    }
}
