//! What it costs that the group's log is on disk before a commit is told of: with its syncs, and without.
//!
//! The servers are the same with the same settings. Without syncs they are started so that the kernel
//! answers each of them with success, and does nothing.

use super::{grid, replicates, Found, Scale, Site, Test};
use crate::plan::Point;
use crate::record::Place;
use crate::system::System;
use anyhow::Result;
use quorate_lab::process::Syncs;
use std::time::Duration;

pub struct Persistence;

const SYNCED: &str = "log synced";
const UNSYNCED: &str = "log unsynced";

impl Test for Persistence {
    fn name(&self) -> &'static str {
        "persistence"
    }

    fn about(&self) -> &'static str {
        "write_only, systems with a log of the group: as they are, and with all syncs taken away from \
         outside"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        let clients = scale.clients(&[50], &[50, 100, 200], &[50, 100, 200, 400]);
        grid([SYNCED, UNSYNCED], &clients)
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        scale.time
    }

    fn is_everywhere(&self, _scale: &Scale) -> bool {
        false
    }

    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        replicates(system, place) && system.has_group_log()
    }

    fn syncs(&self, place: &Place) -> Syncs {
        match place.load.as_str() {
            UNSYNCED => Syncs::TakenAway,
            _ => Syncs::Done,
        }
    }

    fn differs(&self, _scale: &Scale) -> Option<String> {
        Some(
            "Group Replication of MySQL, which has no log of the group on disk; published of a redesigned one, with \
             one"
                .into(),
        )
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let mut found = site.steady("write_only", place.clients, site.scale.time)?;
        found.curves.clear();
        let syncs = match self.syncs(place) {
            Syncs::Done => "done",
            Syncs::TakenAway => "taken away: each call returns at once",
        };
        found.facts.insert("syncs".into(), syncs.into());
        Ok(found)
    }
}
