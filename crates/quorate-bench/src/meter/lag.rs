//! How far members are behind: one row is written over and over, and each member is asked for it.
//!
//! That is the same for all systems, and what a client sees, whatever a system says of itself. The row is a
//! transaction of its own, twenty times a second, beside the load that is measured.
//!
//! Invariant: a lag that was not measured is told as such. A row that a member does not show when the load
//! has ended has the lag that it had reached by then, and is counted as cut.

use crate::fleet::Fleet;
use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

const TABLE: &str = "heartbeat.beat";
const BEAT: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(5);
/// What was committed last is still on its way when the load ends.
const ON_ITS_WAY: Duration = Duration::from_millis(200);
/// For the table to be everywhere.
const LEVEL_LIMIT: Duration = Duration::from_secs(120);

/// From a row's commit until the last member shows it, by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lag {
    pub times: Vec<Duration>,
    /// Rows that were not everywhere at the end.
    pub cut: usize,
}

/// What a member has shown: the latest row, and when that was first seen.
type Seen = Vec<(Duration, u64)>;

/// Does something, and measures how far the other members are behind the primary meanwhile.
pub fn during<T>(fleet: &Fleet, act: impl FnOnce() -> Result<T>) -> Result<(T, Lag)> {
    let primary = fleet.primary()?;
    let mut writer = fleet.connect(primary)?;
    writer.query_drop("CREATE DATABASE IF NOT EXISTS heartbeat")?;
    writer.query_drop(format!(
        "CREATE TABLE IF NOT EXISTS {TABLE} (id INT PRIMARY KEY, number BIGINT UNSIGNED NOT NULL)"
    ))?;
    writer.query_drop(format!("REPLACE INTO {TABLE} VALUES (1, 0)"))?;
    fleet.wait_caught_up(primary, LEVEL_LIMIT)?;
    let others = fleet.others(primary);
    let readers: Vec<Conn> = others.map(|member| fleet.connect(member)).collect::<Result<_>>()?;
    ensure!(!readers.is_empty(), "there is no member that could be behind");

    let begin = Instant::now();
    thread::scope(|scope| {
        let (mut goals, mut looking) = (Vec::new(), Vec::new());
        for mut reader in readers {
            let (goal, last) = channel();
            goals.push(goal);
            looking.push(scope.spawn(move || look(&mut reader, begin, &last)));
        }
        let (stop, stopped) = channel();
        let beating = scope.spawn(move || beat(&mut writer, begin, &stopped));
        let done = act();
        let end = begin.elapsed();
        drop(stop);
        let committed = joined(beating).context("writing the row that tells of lag")?;
        for goal in &goals {
            // One whose reader has failed is nobody's; the reader tells.
            let _ = goal.send(committed.len() as u64);
        }
        let seen = looking.into_iter().map(joined).collect::<Result<Vec<Seen>>>();
        let seen = seen.context("reading the row that tells of lag")?;
        Ok((done?, lag(&committed, &seen, end)))
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Writes numbers from 1 on; when each was committed.
fn beat(writer: &mut Conn, begin: Instant, stopped: &Receiver<()>) -> Result<Vec<Duration>> {
    let update = writer.prep(format!("UPDATE {TABLE} SET number = ? WHERE id = 1"))?;
    let mut committed = Vec::new();
    while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
        writer.exec_drop(&update, (committed.len() as u64 + 1,))?;
        committed.push(begin.elapsed());
    }
    Ok(committed)
}

/// Looks until `last` tells of the last number, and a moment longer if that is not there yet.
fn look(reader: &mut Conn, begin: Instant, last: &Receiver<u64>) -> Result<Seen> {
    let select = reader.prep(format!("SELECT number FROM {TABLE} WHERE id = 1"))?;
    let mut seen: Seen = Vec::new();
    let mut goal: Option<(u64, Instant)> = None;
    loop {
        match last.recv_timeout(LOOK) {
            Ok(number) => goal = Some((number, Instant::now() + ON_ITS_WAY)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(seen),
        }
        let number: Option<u64> = reader.exec_first(&select, ())?;
        let number = number.context("the row is gone")?;
        if number > seen.last().map_or(0, |(_, number)| *number) {
            seen.push((begin.elapsed(), number));
        }
        if goal.is_some_and(|(goal, end)| number >= goal || Instant::now() >= end) {
            return Ok(seen);
        }
    }
}

/// `committed`: by number, from 1 on. What was committed after the end is left out.
fn lag(committed: &[Duration], seen: &[Seen], end: Duration) -> Lag {
    let mut lag = Lag::default();
    let in_time = committed.iter().take_while(|committed| **committed <= end);
    for (number, committed) in (1..).zip(in_time) {
        let shown = |seen: &Seen| {
            let first = seen.partition_point(|(_, latest)| *latest < number);
            seen.get(first).map(|(when, _)| *when)
        };
        let everywhere: Option<Vec<Duration>> = seen.iter().map(shown).collect();
        lag.cut += usize::from(everywhere.is_none());
        let last = everywhere.and_then(|times| times.into_iter().max()).unwrap_or(end);
        // One that is not first told of its commit may see it elsewhere before.
        lag.times.push(last.saturating_sub(*committed));
    }
    lag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(times: &[u64]) -> Vec<Duration> {
        times.iter().copied().map(Duration::from_millis).collect()
    }

    fn seen(rows: &[(u64, u64)]) -> Seen {
        rows.iter().map(|(time, number)| (Duration::from_millis(*time), *number)).collect()
    }

    #[test]
    fn the_last_member_counts() {
        let near = seen(&[(12, 1), (21, 2), (31, 3)]);
        let far = seen(&[(15, 1), (39, 3)]);
        let lag = lag(&ms(&[10, 22, 30]), &[near, far], Duration::from_millis(50));
        // The second was passed over, not missed.
        assert_eq!(lag, Lag { times: ms(&[5, 17, 9]), cut: 0 });
    }

    #[test]
    fn what_is_not_there_at_the_end_has_lagged_as_long() {
        let (one, other) = (seen(&[(11, 1), (21, 2)]), seen(&[(11, 1)]));
        let lag = lag(&ms(&[10, 20, 60]), &[one, other], Duration::from_millis(50));
        assert_eq!(lag, Lag { times: ms(&[1, 30]), cut: 1 });
    }

    #[test]
    fn who_sees_a_row_before_its_writer_does_is_not_behind() {
        let lag = lag(&ms(&[10]), &[seen(&[(8, 1)])], Duration::from_millis(50));
        assert_eq!(lag, Lag { times: ms(&[0]), cut: 0 });
    }
}
