//! One large transaction, and what it does to small ones beside it.
//!
//! Invariant: what is told of the small ones is of the time from the large one's begin until all members
//! have it, and of all that were under way in that time.

use super::{grid, Found, Scale, Site, Test};
use crate::drive::clients::{self, Ended};
use crate::drive::commits;
use crate::fleet::Fleet;
use crate::meter::{Meter, PeakMemory, Used};
use crate::plan::{Grid, Point};
use crate::record::{size_bytes, Place};
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Value};
use quorate_lab::random::Random;
use std::thread;
use std::time::{Duration, Instant};

pub struct Large;

const TABLE: &str = "large.t";
/// Of a load that is a size, and of one [`OF_SHORT_ROWS`].
const LONG: usize = 1_000_000;
const SHORT: usize = 200;
const OF_SHORT_ROWS: &str = " of short rows";
/// In one statement.
const BYTES_AT_ONCE: usize = 1_000_000;
/// A guess, for the time that is left.
const BYTES_PER_SECOND: usize = 10_000_000;
/// Small ones alone, before.
const CALM: Duration = Duration::from_secs(1);
const LEVEL_LIMIT: Duration = Duration::from_secs(120);
/// For the large one.
const LIMIT: Duration = Duration::from_secs(900);

impl Test for Large {
    fn name(&self) -> &'static str {
        "large"
    }

    fn about(&self) -> &'static str {
        "one transaction of 10 MB to 1 GB on the primary, of long rows or of short ones; small ones on all \
         members that take writes: their longest gap and response times until all members have the large one"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        let loads: &[&str] = match scale.grid {
            Grid::Quick => &["10 MB"],
            Grid::Default => &["10 MB", "100 MB", "100 MB of short rows"],
            Grid::Full => {
                &["10 MB", "100 MB", "100 MB of short rows", "1 GB", "1 GB of short rows"]
            }
        };
        grid(loads, &scale.clients(&[4], &[4], &[4]))
    }

    fn each(&self, _scale: &Scale, point: &Point) -> Duration {
        CALM + shape(&point.load)
            .map_or(CALM, |(bytes, _)| CALM * (bytes / BYTES_PER_SECOND) as u32)
    }

    fn fills(&self) -> bool {
        false
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let fleet = site.fleet;
        let shape = shape(&place.load)?;
        let primary = fleet.primary()?;
        let mut origin = fleet.connect_for(primary, LIMIT)?;
        prepare(&mut origin)?;
        fleet.wait_level(LEVEL_LIMIT)?;
        let mut members = vec![primary];
        if fleet.system().is_multi_primary() {
            members.extend(fleet.others(primary));
        }
        let memory = PeakMemory::watch(fleet)?;
        let meter = Meter::new(fleet);
        let act = || {
            thread::sleep(CALM);
            let before = meter.read()?;
            let begin = Instant::now();
            write(&mut origin, shape)
                .with_context(|| format!("a transaction of {}", place.load))?;
            let took = begin.elapsed();
            fleet.wait_caught_up(primary, LIMIT)?;
            let everywhere = Instant::now();
            Ok((begin, took, everywhere, before.until(&meter.read()?)))
        };
        let small = |connection: &mut Conn, _: &mut Random| commits::insert(connection);
        let ((begin, took, everywhere, used), ended) =
            clients::during(fleet, (place.clients, &members), small, act)?;

        let mut found = Found::default();
        let beside: Vec<Ended> = ended
            .into_iter()
            .filter(|ended| ended.at >= begin && ended.at - ended.took <= everywhere)
            .collect();
        let failed = beside.iter().filter(|ended| ended.conflict.is_some()).count();
        let gap = |member: &usize| longest_gap((begin, everywhere), *member, &beside);
        let longest = members.iter().map(gap).max().context("no member has small ones")?;
        let memory = memory.bytes()?;
        let largest = memory.iter().max().context("no member")?;
        found.set_percentiles(committed(&beside).map(|ended| ended.took).collect());
        found.set([
            ("large_s", took.as_secs_f64()),
            ("gap_s", longest.as_secs_f64()),
            ("primary_gap_s", gap(&primary).as_secs_f64()),
            ("small_failed", failed as f64),
            ("memory_mb", *largest as f64 / 1e6),
            ("primary_memory_mb", memory[primary] as f64 / 1e6),
        ]);
        set_costs(&mut found, &used, committed(&beside).count());
        let everywhere = (everywhere - begin).as_secs_f64();
        found.facts.insert("on all members after".into(), format!("{everywhere:.1} s"));
        Ok(found)
    }

    fn clear(&self, fleet: &Fleet) -> Result<()> {
        let mut connection = fleet.connect_for(fleet.primary()?, LIMIT)?;
        connection.query_drop("DROP DATABASE large").context("dropping the large rows")
    }
}

/// What all of it took together. Not for each transaction: who goes on with small ones has more to do meanwhile.
fn set_costs(found: &mut Found, used: &Used, small: usize) {
    found.set([("large_net_mb", used.bytes / 1e6), ("small_commits", small as f64)]);
    found.set_counted("large_cpu_s", used.cpu_s.clone());
    found.set_counted("large_syncs", used.syncs.clone());
}

/// Bytes of `10 MB`, or of `1 GB of short rows`, and of one row.
fn shape(load: &str) -> Result<(usize, usize)> {
    let row = if load.ends_with(OF_SHORT_ROWS) { SHORT } else { LONG };
    Ok((size_bytes(load).with_context(|| format!("{load:?} is no size"))?, row))
}

/// Without the rows of an earlier measurement.
fn prepare(connection: &mut Conn) -> Result<()> {
    commits::prepare(connection)?;
    connection.query_drop("DROP DATABASE IF EXISTS large")?;
    connection.query_drop("CREATE DATABASE large")?;
    Ok(connection.query_drop(format!(
        "CREATE TABLE {TABLE} (id INT PRIMARY KEY, filler LONGBLOB NOT NULL)"
    ))?)
}

fn write(connection: &mut Conn, (bytes, row_bytes): (usize, usize)) -> Result<()> {
    // Nobody is to compress it.
    let mut random = Random::seeded(1);
    let filler: Vec<u8> = (0..2 * BYTES_AT_ONCE).map(|_| random.below(256) as u8).collect();
    let at_once = BYTES_AT_ONCE / row_bytes;
    let values = vec!["(?, ?)"; at_once].join(", ");
    let insert = connection.prep(format!("INSERT INTO {TABLE} VALUES {values}"))?;
    connection.query_drop("BEGIN")?;
    for statement in 0..bytes / BYTES_AT_ONCE {
        let rows = (0..at_once).map(|row| {
            let from = (statement + row) * row_bytes % BYTES_AT_ONCE;
            let id = statement * at_once + row;
            [Value::from(id), Value::from(&filler[from..from + row_bytes])]
        });
        let parameters: Vec<Value> = rows.flatten().collect();
        connection.exec_drop(&insert, Params::Positional(parameters))?;
    }
    Ok(connection.query_drop("COMMIT")?)
}

fn committed(ended: &[Ended]) -> impl Iterator<Item = &Ended> {
    ended.iter().filter(|ended| ended.conflict.is_none())
}

/// The longest time without a commit of any client at a member. `ended` has what was under way at the end, too.
fn longest_gap((begin, end): (Instant, Instant), member: usize, ended: &[Ended]) -> Duration {
    let own = committed(ended).filter(|ended| ended.member == member);
    let mut times: Vec<Instant> = own.map(|ended| ended.at).chain([end]).collect();
    times.sort_unstable();
    let before = std::iter::once(begin).chain(times.iter().copied());
    before.zip(&times).map(|(from, to)| *to - from).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_sizes() {
        assert_eq!(shape("10 MB").unwrap(), (10_000_000, LONG));
        assert_eq!(shape("1 GB of short rows").unwrap(), (1_000_000_000, SHORT));
        assert!(shape("hot rows").is_err());
    }

    #[test]
    fn a_gap_is_between_commits_of_one_member() {
        let begin = Instant::now();
        let ended = |member, ms, conflict| Ended {
            member,
            at: begin + Duration::from_millis(ms),
            took: Duration::from_millis(1),
            conflict,
        };
        let all = [
            ended(0, 900, None),
            ended(0, 100, None),
            ended(0, 500, Some(1213)),
            ended(1, 200, None),
            ended(1, 700, None),
        ];
        let end = begin + Duration::from_millis(900);
        let gap = |member| longest_gap((begin, end), member, &all).as_millis();
        assert_eq!(
            (gap(0), gap(1), gap(2)),
            (800, 500, 900),
            "without a commit, it is all the time"
        );
    }
}
