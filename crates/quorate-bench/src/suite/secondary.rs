//! A secondary is lost, comes back, leaves, or joins with nothing, while clients write to the primary: what
//! the throughput does meanwhile.

use super::dip::{dip, is_back};
use super::{differ_tables, grid, replicates, Found, Scale, Site, Test};
use crate::drive::steady::Steady;
use crate::drive::sysbench::Load;
use crate::drive::writers::{door, table, Client, Writers};
use crate::fleet::Fleet;
use crate::plan::{Grid, Point};
use crate::record::Place;
use crate::system::{System, PEERS};
use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use std::thread;
use std::time::{Duration, Instant};

pub struct Secondary;

const KILL: &str = "kill";
/// Of one that was killed before the load began.
const RESTART: &str = "restart";
/// SIGTERM.
const STOP: &str = "stop";
/// Of one that has lost everything.
const JOIN: &str = "join";
const SCRIPT: &str = "oltp_read_write";
/// A throughput that does not come back is not waited for.
const WATCH_LIMIT: Duration = Duration::from_secs(90);
/// Beyond all that is waited for: sysbench is ended before.
const LOAD_SECONDS: u32 = 7200;
const STOP_LIMIT: Duration = Duration::from_secs(60);
const LEVEL_LIMIT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(50);
/// Of the client that looks for gaps.
const PROBE_PAUSE: Duration = Duration::from_millis(10);
const PROBE_TIMEOUT: Duration = Duration::from_secs(120);
const RUN: u64 = 1;
/// Beneath all rows of the run.
const FIRST_ROW: u64 = 1;

impl Test for Secondary {
    fn name(&self) -> &'static str {
        "secondary"
    }

    fn about(&self) -> &'static str {
        "read_write, 16 clients at the primary: a secondary is killed, comes back, is stopped, or joins \
         without data"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        let loads: &[&str] = match scale.grid {
            Grid::Quick => &[KILL],
            Grid::Default | Grid::Full => &[KILL, RESTART, STOP, JOIN],
        };
        grid(loads, &scale.clients(&[16], &[16], &[16]))
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        let (before, after) = around(scale.grid);
        before + after
    }

    fn harms(&self) -> bool {
        true
    }

    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        replicates(system, place)
    }

    fn usual_systems(&self) -> Option<&'static [&'static str]> {
        Some(&PEERS)
    }

    fn differs(&self, scale: &Scale) -> Option<String> {
        differ_tables(scale, around(scale.grid).1)
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let (fleet, tables) = (site.fleet, site.tables()?);
        let primary = fleet.primary()?;
        let victim = fleet.others(primary).next_back().context("it is alone")?;
        let mut connection = fleet.connect(primary)?;
        table::make_empty(&mut connection)?;
        fleet.wait_level(LEVEL_LIMIT)?;
        let happens = &*place.load;
        match happens {
            RESTART => fleet.kill(victim)?,
            JOIN => {
                fleet.stop(victim, STOP_LIMIT)?;
                fleet.wipe(victim)?;
                fleet.make_joiner(victim)?;
            }
            _ => {}
        }
        // If the others stop for a while without it, that is over before the load begins.
        connection.query_drop(table::insert(FIRST_ROW)).context("committing a row")?;

        let load = Load {
            script: SCRIPT,
            clients: place.clients,
            seconds: LOAD_SECONDS,
            members: &[primary],
        };
        let (before, after) = around(site.scale.grid);
        let mut steady = Steady::start(fleet, tables, &load)?;
        let probe = Client {
            timeout: PROBE_TIMEOUT,
            pause: PROBE_PAUSE,
            ..Client::of(door(&fleet.socket(primary)))
        };
        let probe = Writers::start(vec![probe], RUN);
        while steady.begin().elapsed() < before {
            steady.check()?;
            thread::sleep(POLL);
        }
        let event = Instant::now();
        happen(fleet, happens, victim)?;
        let returns = matches!(happens, RESTART | JOIN);
        let limit = back_limit(site.scale.grid);
        let back = returns && fleet.rejoin(&[victim], limit)?;
        let done = Instant::now();
        let at = |time: Instant| (time - steady.begin()).as_secs_f64();
        let (event_s, done_s) = (at(event), at(done));
        while done.elapsed() < after
            || done.elapsed() < WATCH_LIMIT && !is_back(&steady.curve(), event_s)
        {
            steady.check()?;
            thread::sleep(POLL);
        }
        let end = Instant::now();
        let curve = steady.stop()?;
        let acks = probe.stop();

        let mut found = Found::default();
        let node = &fleet.node(victim).name;
        let dip = dip(&curve, event_s).context("sysbench told no seconds around the event")?;
        ensure!(dip.before > 0.0, "nothing was committed before the event");
        found.set([
            ("dip_s", dip.seconds),
            ("dip_depth_percent", dip.depth_percent),
            ("gap_s", acks.longest_gap_in(event, end).as_secs_f64()),
            ("tps", dip.before),
        ]);
        found.curves.insert("tps".into(), curve);
        found.events.push((event_s, format!("{happens} of {node}")));
        if returns {
            found.set_back(back.then(|| done - event), limit);
        } else {
            fleet.start_again(victim)?;
            fleet.wait_up(&[victim])?;
        }
        if back {
            found.events.push((done_s, format!("{node} is back")));
        }
        fleet.wait_level(LEVEL_LIMIT)?;
        let missing = table::missing(&mut fleet.connect(victim)?, &acks.ids(), RUN)?;
        ensure!(missing.is_empty(), "{node} lacks {} acknowledged rows", missing.len());
        Ok(found)
    }
}

/// How long is watched before the event, and at least after it.
fn around(grid: Grid) -> (Duration, Duration) {
    let (before, after) = match grid {
        Grid::Quick => (3, 5),
        Grid::Default => (10, 20),
        Grid::Full => (10, 60),
    };
    (Duration::from_secs(before), Duration::from_secs(after))
}

/// For the member to be back while clients write.
fn back_limit(grid: Grid) -> Duration {
    Duration::from_secs(match grid {
        Grid::Quick | Grid::Default => 120,
        // The tables may have the published size, and all of it is to be transferred.
        Grid::Full => 3600,
    })
}

fn happen(fleet: &Fleet, what: &str, victim: usize) -> Result<()> {
    match what {
        KILL => fleet.kill(victim),
        STOP => fleet.stop(victim, STOP_LIMIT),
        JOIN => fleet.join(victim),
        _ => fleet.start_again(victim),
    }
}
