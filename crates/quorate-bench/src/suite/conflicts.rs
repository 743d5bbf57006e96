//! Every member that takes writes updates the same few rows.
//!
//! What was committed is checked: all members have the same rows in the end, and in them every update that
//! was acknowledged, and no other. A system that fails in that has no figures.

use super::{grid, Found, Scale, Site, Test};
use crate::drive::clients::{self, Ended};
use crate::fleet::Fleet;
use crate::meter::Meter;
use crate::plan::Point;
use crate::record::Place;
use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_lab::random::Random;
use quorate_lab::server::sql::WsrepStatus;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

pub struct Conflicts;

const TABLE: &str = "hot.t";
const UPDATE: &str = "UPDATE hot.t SET v = v + 1 WHERE id = ?";
const ROWS: u64 = 8;
const UPDATES_EACH: u64 = 2;
const WARM_UP: Duration = Duration::from_millis(500);
const LEVEL_LIMIT: Duration = Duration::from_secs(120);
/// What members with certification count themselves.
const COUNTERS: [&str; 2] = ["wsrep_local_cert_failures", "wsrep_local_bf_aborts"];

impl Test for Conflicts {
    fn name(&self) -> &'static str {
        "conflicts"
    }

    fn about(&self) -> &'static str {
        "clients of all members that take writes update the same 8 rows, two in a transaction: what is \
         committed, what fails, and whether all members are equal in the end"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        grid(["hot rows"], &scale.clients(&[12], &[12, 48], &[12, 48, 192]))
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        scale.time
    }

    fn fills(&self) -> bool {
        false
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let fleet = site.fleet;
        let primary = fleet.primary()?;
        prepare(&mut fleet.connect(primary)?)?;
        fleet.wait_level(LEVEL_LIMIT)?;
        let members: Vec<usize> = match fleet.system().is_multi_primary() {
            true => fleet.members().collect(),
            false => vec![primary],
        };
        let meter = Meter::new(fleet);
        // Of the warm-up also: what is applied when the clients have ended cannot be told apart.
        let before = meter.read()?;
        let act = || {
            thread::sleep(WARM_UP);
            let counted = counters(fleet)?;
            let begin = Instant::now();
            thread::sleep(site.scale.time);
            let end = Instant::now();
            Ok((begin..end, grown(&counted, &counters(fleet)?)))
        };
        let ((window, counted), ended) =
            clients::during(fleet, (place.clients, &members), update, act)?;
        fleet.wait_level(LEVEL_LIMIT)?;
        let used = before.until(&meter.read()?);
        let committed = ended.iter().filter(|ended| ended.conflict.is_none()).count() as u64;
        check(fleet, committed)?;

        let inside = ended.iter().filter(|ended| window.contains(&ended.at));
        let mut found = tell(inside, (window.end - window.start).as_secs_f64());
        found.set_costs(&used, committed as f64);
        found.facts.extend(counted);
        if fleet.members().len() > 1 {
            found.facts.insert("equal".into(), "yes".into());
        }
        Ok(found)
    }
}

fn prepare(connection: &mut Conn) -> Result<()> {
    connection.query_drop("CREATE DATABASE IF NOT EXISTS hot")?;
    connection.query_drop(format!(
        "CREATE TABLE IF NOT EXISTS {TABLE} (id INT PRIMARY KEY, v BIGINT UNSIGNED NOT NULL)"
    ))?;
    let rows: Vec<String> = (0..ROWS).map(|row| format!("({row}, 0)")).collect();
    Ok(connection.query_drop(format!("REPLACE INTO {TABLE} VALUES {}", rows.join(", ")))?)
}

/// In the order of their numbers: clients of one member wait for each other, and do not deadlock.
fn update(connection: &mut Conn, random: &mut Random) -> mysql::Result<()> {
    let first = random.below(ROWS - 1);
    let second = first + 1 + random.below(ROWS - 1 - first);
    connection.query_drop("BEGIN")?;
    for row in [first, second] {
        connection.exec_drop(UPDATE, (row,))?;
    }
    connection.query_drop("COMMIT")
}

/// An error unless all members have the same rows, with all that was acknowledged.
fn check(fleet: &Fleet, committed: u64) -> Result<()> {
    let mut checksums = Vec::new();
    for member in fleet.members() {
        let mut connection = fleet.connect(member)?;
        let row: Option<(String, u64)> =
            connection.query_first(format!("CHECKSUM TABLE {TABLE}"))?;
        let sum: Option<u64> =
            connection.query_first(format!("SELECT CAST(SUM(v) AS UNSIGNED) FROM {TABLE}"))?;
        checksums.push((row.context("no checksum")?.1, sum.context("no sum")?));
    }
    let (first, updates) = (checksums[0], committed * UPDATES_EACH);
    ensure!(
        checksums.iter().all(|checksum| *checksum == first),
        "the members are not equal: checksums and sums are {checksums:?}"
    );
    ensure!(
        first.1 == updates,
        "{updates} updates were acknowledged, and the rows have {} of them",
        first.1
    );
    Ok(())
}

/// Of all members together. Without certification there is none, though the server may have some of them.
fn counters(fleet: &Fleet) -> Result<BTreeMap<&'static str, i64>> {
    let mut sums = BTreeMap::new();
    if !fleet.system().is_multi_primary() {
        return Ok(sums);
    }
    for member in fleet.members() {
        let status = WsrepStatus::ask(&mut fleet.connect(member)?)?;
        for name in COUNTERS {
            if let Some(number) = status.number(name) {
                *sums.entry(name).or_default() += number;
            }
        }
    }
    Ok(sums)
}

fn grown(
    before: &BTreeMap<&'static str, i64>,
    after: &BTreeMap<&'static str, i64>,
) -> BTreeMap<String, String> {
    let grown = |(name, number): (&&str, &i64)| {
        let more = number - before.get(name).copied().unwrap_or_default();
        ((*name).to_owned(), more.to_string())
    };
    after.iter().map(grown).collect()
}

/// What clients saw within so many seconds.
fn tell<'a>(ended: impl Iterator<Item = &'a Ended>, seconds: f64) -> Found {
    let (mut committed, mut waited) = (0u32, Duration::ZERO);
    let mut conflicts: BTreeMap<u16, u32> = BTreeMap::new();
    for ended in ended {
        match ended.conflict {
            None => (committed, waited) = (committed + 1, waited + ended.took),
            Some(code) => *conflicts.entry(code).or_default() += 1,
        }
    }
    let failures: u32 = conflicts.values().sum();
    let mut found = Found::default();
    found.set([
        ("goodput_tps", f64::from(committed) / seconds),
        ("transactions", committed.into()),
        ("cert_failures", failures.into()),
        ("avg_ms", waited.as_secs_f64() * 1e3 / f64::from(committed.max(1))),
    ]);
    let told = conflicts.iter().map(|(code, count)| (format!("error {code}"), count.to_string()));
    found.facts.extend(told);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_by_its_error_and_is_no_goodput() {
        let at = Instant::now();
        let ended =
            |ms, conflict| Ended { member: 0, at, took: Duration::from_millis(ms), conflict };
        let all = [
            ended(10, None),
            ended(30, None),
            ended(500, Some(1213)),
            ended(1, Some(1213)),
            ended(1, Some(1020)),
        ];
        let found = tell(all.iter(), 0.5);
        let figure = |name: &str| found.figures[name];
        assert_eq!((figure("goodput_tps"), figure("cert_failures")), (4.0, 3.0));
        assert_eq!((figure("transactions"), figure("avg_ms")), (2.0, 20.0));
        assert_eq!((&*found.facts["error 1213"], &*found.facts["error 1020"]), ("2", "1"));
    }

    #[test]
    fn counters_are_told_by_how_much_they_grew() {
        let before = BTreeMap::from([(COUNTERS[0], 5)]);
        let after = BTreeMap::from([(COUNTERS[0], 12)]);
        assert_eq!(grown(&before, &after)[COUNTERS[0]], "7");
        assert!(grown(&before, &BTreeMap::new()).is_empty());
    }
}
