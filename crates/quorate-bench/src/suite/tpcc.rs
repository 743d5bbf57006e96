//! TPC-C through the primary, until the last replica has everything.
//!
//! As it was published: the warm-up counts, and a replica's time runs from the begin of the load.

use super::{grid, Found, Scale, Site, Test};
use crate::drive::tpcc;
use crate::fleet::Fleet;
use crate::meter::Meter;
use crate::plan::{Grid, Point};
use crate::record::Place;
use crate::system::System;
use anyhow::Result;
use quorate_lab::net::Topology;
use std::thread;
use std::time::{Duration, Instant};

pub struct Tpcc;

/// Warehouses, and the time with the warm-up.
const PUBLISHED: (u32, Duration) = (10, Duration::from_secs(360));
/// What a warehouse takes until all members have it, about.
const FILL_EACH: Duration = Duration::from_secs(8);
const LEVEL_LIMIT: Duration = Duration::from_secs(900);
const POOL: &str = "innodb_buffer_pool_size";
const POOL_BYTES: &str = "2147483648";
/// That of all other tests.
const USUAL_POOL_BYTES: &str = "134217728";

fn warehouses(scale: &Scale) -> u32 {
    match scale.grid {
        Grid::Quick => 1,
        Grid::Default | Grid::Full => 10,
    }
}

/// The first sixth is the warm-up: of 360 seconds in the full grid.
fn time(scale: &Scale) -> Duration {
    match scale.grid {
        Grid::Quick => scale.time,
        Grid::Default | Grid::Full => 6 * scale.time,
    }
}

impl Test for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn about(&self) -> &'static str {
        "TPC-C by go-tpc, 10 warehouses, 32 clients: what the primary makes, and until when each replica \
         has everything"
    }

    fn check(&self) -> Result<()> {
        tpcc::find().map(drop)
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        grid(["tpcc"], &scale.clients(&[32], &[32], &[32]))
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        time(scale) + FILL_EACH * warehouses(scale)
    }

    fn fills(&self) -> bool {
        false
    }

    fn differs(&self, scale: &Scale) -> Option<String> {
        let words = |(count, time): (u32, Duration)| {
            let s = if count == 1 { "" } else { "s" };
            format!("{count} warehouse{s} for {} s", time.as_secs())
        };
        Some(format!(
            "{}, a buffer pool of 2 GiB, 4 appliers, all members on one machine; MariaDB with innodb_snapshot_isolation=ON, \
             under which transactions conflict that its default lets pass, and go-tpc does not try them again \
             (conflicts_per_1000_trx says how many); published with {}, 4 GB, 8 appliers, 2 processors for each member",
            words((warehouses(scale), time(scale))),
            words(PUBLISHED)
        ))
    }

    fn is_everywhere(&self, _scale: &Scale) -> bool {
        true
    }

    /// Published for one network; to fill the tables takes longer than all else.
    fn is_for(&self, _system: &dyn System, place: &Place) -> bool {
        place.network == Topology::Lan.to_string()
    }

    /// The published ones; Group Replication at its best, too.
    fn usual_systems(&self) -> Option<&'static [&'static str]> {
        Some(&["quorate", "galera", "async", "semisync", "gr-eventual", "gr-tuned"])
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let (fleet, time) = (site.fleet, time(site.scale));
        let warehouses = warehouses(site.scale);
        // All warehouses are to fit.
        fleet.set_variables(&[(POOL, POOL_BYTES)])?;
        tpcc::prepare(fleet, warehouses)?;
        fleet.wait_level(LEVEL_LIMIT)?;
        let primary = fleet.primary()?;
        let meter = Meter::new(fleet);
        let before = meter.read()?;
        let begin = Instant::now();
        let report = tpcc::run(fleet, warehouses, place.clients, time)?;
        let replicas = catch_up(fleet, primary, begin)?;
        let used = before.until(&meter.read()?);

        let mut found = Found::default();
        let (transactions, seconds) = (report.all(), time.as_secs_f64());
        found.set([
            ("transactions", transactions),
            ("tps", transactions / seconds),
            ("tpm", report.new_orders() * 60.0 / seconds),
            ("avg_ms", report.waited_ms / transactions.max(1.0)),
        ]);
        for (member, elapsed) in &replicas {
            let elapsed = elapsed.as_secs_f64();
            let told = format!("{elapsed:.1} s, {:.0} transactions/s", transactions / elapsed);
            found.facts.insert(format!("node{} done after", member + 1), told);
        }
        let elapsed = || replicas.iter().map(|(_, elapsed)| elapsed.as_secs_f64());
        if let (Some(first), Some(last)) = (elapsed().reduce(f64::min), elapsed().reduce(f64::max))
        {
            found.set([
                ("first_replica_s", first),
                ("replica_elapsed_s", last),
                ("replica_tps", transactions / last),
            ]);
        }
        found.facts.insert("warehouses".into(), warehouses.to_string());
        found.set_conflicts(report.conflicts, transactions);
        found.set_costs(&used, transactions);
        found.curves.insert("tps".into(), report.curve);
        Ok(found)
    }

    fn clear(&self, fleet: &Fleet) -> Result<()> {
        tpcc::clear(fleet)?;
        fleet.set_variables(&[(POOL, USUAL_POOL_BYTES)])
    }
}

/// When each of the others has all that the primary has now, counted from `begin`.
fn catch_up(fleet: &Fleet, primary: usize, begin: Instant) -> Result<Vec<(usize, Duration)>> {
    let goal = fleet.applied(primary)?;
    // Several times as long as all of it was written.
    let end = Instant::now() + 5 * begin.elapsed();
    thread::scope(|scope| {
        let replicas = fleet.others(primary);
        let waits: Vec<_> = replicas
            .map(|member| {
                scope.spawn(move || {
                    fleet.wait_applied(member, goal, end)?;
                    Ok((member, begin.elapsed()))
                })
            })
            .collect();
        waits
            .into_iter()
            .map(|wait| wait.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
