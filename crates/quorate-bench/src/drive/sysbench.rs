//! The load of sysbench, and what it reports.

use super::clients::CONFLICTS;
use crate::fleet::{Fleet, USER};
use crate::meter::{Meter, Used};
use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Of its tables.
pub const DATABASE: &str = "sbtest";
/// What fills them.
const PREPARE: [&str; 2] = ["oltp_common", "prepare"];
const WARM_UP_SECONDS: u32 = 1;
/// After its time, for answers that do not come: then it fails.
const SHUTDOWN_SECONDS: u32 = 60;
/// Threads that fill the tables, each one at a time.
const FILLERS: u32 = 4;
/// The slowest that tables are filled at, in rows.
const FILLED_A_SECOND: u64 = 500;
/// For what ends by itself, if not everything stands still.
const END_LIMIT: Duration = Duration::from_secs(120);
/// For members that apply what was written by a load, once it has ended.
pub const CATCH_UP_LIMIT: Duration = Duration::from_secs(120);
/// For members that apply what the primary has loaded.
const LEVEL_LIMIT: Duration = Duration::from_secs(3600);

/// Scripts whose transactions are measured.
pub const SCRIPTS: [&str; 4] =
    ["oltp_read_only", "oltp_read_write", "oltp_write_only", "oltp_update_index"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    pub count: u32,
    pub rows: u32,
}

/// `4x50000`, as the command takes it.
impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}x{}", self.count, self.rows)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// One of [`SCRIPTS`].
    pub script: &'a str,
    pub clients: u32,
    pub seconds: u32,
    /// Clients are spread over these.
    pub members: &'a [usize],
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub report: Report,
    /// From its begin until all members had everything: who applies later pays later.
    pub used: Used,
    /// How long that took after its end. None: longer than was waited for, and `used` lacks the rest.
    pub behind: Option<Duration>,
    /// Transactions of the second that does not count.
    pub warm_up: f64,
}

/// What sysbench says at its end, and each second.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub transactions: f64,
    pub tps: f64,
    pub average_ms: f64,
    pub p95_ms: f64,
    /// Conflicts.
    pub errors: f64,
    /// Transactions per second, by the second.
    pub curve: Vec<(f64, f64)>,
}

/// Fills the tables through the primary, and waits until all members have them.
pub fn prepare(fleet: &Fleet, tables: Tables) -> Result<()> {
    let primary = fleet.primary()?;
    fleet.connect(primary)?.query_drop(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
    let mut command = of_fleet(fleet, tables, &[primary]);
    command.arg(format!("--threads={}", tables.count.min(FILLERS)));
    fill(&mut command, tables)?;
    fleet.wait_level(LEVEL_LIMIT)
}

/// Runs the load, after a second of it that does not count, on members that all have everything, and until
/// they have everything again. Any error but a conflict is an error here. Others run what they say, and
/// nothing before it.
pub fn run(fleet: &Fleet, meter: &Meter, tables: Tables, load: &Load) -> Result<Outcome> {
    let warm_up = warm_up(fleet, tables, load)?;
    let before = meter.read()?;
    let report = run_plainly(fleet, tables, load)?;
    let behind = fleet.catch_up(CATCH_UP_LIMIT)?;
    let used = before.until(&meter.read()?);
    Ok(Outcome { report, used, behind, warm_up })
}

/// A second of the load, until all members have it: what is measured next does not pay for it. Its
/// transactions.
pub fn warm_up(fleet: &Fleet, tables: Tables, load: &Load) -> Result<f64> {
    let short = Load { seconds: WARM_UP_SECONDS, ..*load };
    let transactions = run_plainly(fleet, tables, &short)?.transactions;
    let caught_up = fleet.catch_up(CATCH_UP_LIMIT)?.is_some();
    ensure!(caught_up, "{CATCH_UP_LIMIT:?} after the warm-up of a second, not all members have it");
    Ok(transactions)
}

/// As fast as it goes.
pub fn run_plainly(fleet: &Fleet, tables: Tables, load: &Load) -> Result<Report> {
    run_with(fleet, tables, load, None)
}

/// Transactions begin at `rate` a second, or as fast as they can where that is slower.
pub fn run_at_rate(fleet: &Fleet, tables: Tables, load: &Load, rate: f64) -> Result<Report> {
    run_with(fleet, tables, load, Some(format!("--rate={rate:.0}")))
}

/// So many transactions; an error if they take longer than the time of the load.
pub fn run_events(fleet: &Fleet, tables: Tables, load: &Load, events: u64) -> Result<Report> {
    let report = run_with(fleet, tables, load, Some(format!("--events={events}")))?;
    let seconds = load.seconds;
    ensure!(
        report.seconds() < seconds.into(),
        "{} of {events} transactions in {seconds} s",
        report.transactions
    );
    Ok(report)
}

fn run_with(fleet: &Fleet, tables: Tables, load: &Load, option: Option<String>) -> Result<Report> {
    let mut command = of_fleet(fleet, tables, load.members);
    command.arg("--report-interval=1").args(option);
    let mut report = report(&mut command, load.script, load.clients, load.seconds)?;
    // Clients that still wait when the time is over are waited for, and nobody begins anything then.
    report.curve.retain(|(second, _)| *second <= load.seconds.into());
    Ok(report)
}

pub(super) fn of_fleet(fleet: &Fleet, tables: Tables, members: &[usize]) -> Command {
    let sockets: Vec<PathBuf> = members.iter().map(|member| fleet.socket(*member)).collect();
    let mut command = command(&sockets, tables);
    // A group with several primaries gives each its own share of the numbers: of rows numbered by
    // the server, most statements would find none.
    command.arg("--auto-inc=off");
    // Its usual distribution has three quarters of all accesses in a hundredth of the rows. In tables that are
    // hundreds of times smaller than those of the published tests, clients would mostly wait for each other.
    command.arg("--rand-type=uniform");
    command
}

/// A sysbench of these tables, through the servers behind these sockets.
pub fn command(sockets: &[PathBuf], tables: Tables) -> Command {
    let sockets: Vec<String> = sockets.iter().map(|socket| socket.display().to_string()).collect();
    let mut command = Command::new("sysbench");
    command
        .args(["--db-driver=mysql", "--mysql-password="])
        .arg(format!("--mysql-user={USER}"))
        .arg(format!("--mysql-socket={}", sockets.join(",")))
        .arg(format!("--mysql-db={DATABASE}"))
        .arg(format!("--tables={}", tables.count))
        .arg(format!("--table-size={}", tables.rows));
    command
}

/// Fills these tables.
pub fn fill(command: &mut Command, tables: Tables) -> Result<()> {
    let rows = u64::from(tables.count) * u64::from(tables.rows);
    let limit = END_LIMIT + Duration::from_secs(rows / FILLED_A_SECOND);
    said(command.args(PREPARE), limit).map(drop)
}

/// Runs a load, and reads what it says.
pub fn report(command: &mut Command, script: &str, clients: u32, seconds: u32) -> Result<Report> {
    with_load(command, script, clients, seconds);
    Report::parse(&said(command, Duration::from_secs(seconds.into()) + END_LIMIT)?)
}

/// After a conflict it tries again, and counts that; any other error is to end it.
pub(super) fn with_load<'a>(
    command: &'a mut Command,
    script: &str,
    clients: u32,
    seconds: u32,
) -> &'a mut Command {
    let conflicts = CONFLICTS.map(|code| code.to_string()).join(",");
    command
        .arg(format!("--threads={clients}"))
        .arg(format!("--time={seconds}"))
        .arg(format!("--forced-shutdown={SHUTDOWN_SECONDS}"))
        .arg("--percentile=95")
        .arg(format!("--mysql-ignore-errors={conflicts}"))
        .args([script, "run"])
}

/// Runs a program with its arguments for so long at most, and gives back what it says: a group that stands still
/// answers nobody, and no run is to wait for that for ever.
pub(super) fn said(command: &Command, limit: Duration) -> Result<String> {
    let mut limited = Command::new("timeout");
    limited.arg("--kill-after=10").arg(limit.as_secs_f64().to_string());
    limited.arg(command.get_program()).args(command.get_args());
    let began = Instant::now();
    let output = limited.output().with_context(|| format!("running {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    // By the clock: a `timeout` that has had to kill its program ends as one whose program was killed by
    // others.
    let late = began.elapsed() >= limit && !output.status.success();
    ensure!(!late, "{command:?}: ended after {} s, its limit: {said}{error}", limit.as_secs_f64());
    ensure!(output.status.success(), "{command:?}: {said}{error}");
    Ok(said)
}

impl Report {
    /// How long it ran.
    pub fn seconds(&self) -> f64 {
        self.transactions / self.tps.max(f64::MIN_POSITIVE)
    }

    pub fn parse(text: &str) -> Result<Report> {
        Ok(Report {
            // `    transactions:      12345  (1234.50 per sec.)`
            transactions: after(text, "transactions:", 0)?,
            tps: after(text, "transactions:", 1)?,
            average_ms: after(text, "avg:", 0)?,
            p95_ms: after(text, "95th percentile:", 0)?,
            errors: after(text, "ignored errors:", 0)?,
            curve: text.lines().filter_map(second).collect(),
        })
    }
}

/// Of `[ 3s ] thds: 4 tps: 345.99 qps: ...`: the time and the rate.
pub(super) fn second(line: &str) -> Option<(f64, f64)> {
    let (time, rest) = line.strip_prefix('[')?.split_once("s ]")?;
    let rate = rest.split_once("tps:")?.1.split_whitespace().next()?;
    Some((time.trim().parse().ok()?, rate.parse().ok()?))
}

/// The `field`-th number after `label`.
fn after(text: &str, label: &str, field: usize) -> Result<f64> {
    let rest = text.split_once(label).with_context(|| format!("no {label:?} in: {text}"))?.1;
    rest.split_whitespace()
        .nth(field)
        .and_then(|word| word.trim_start_matches('(').parse().ok())
        .with_context(|| format!("no number after {label:?} in: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Initializing worker threads...

Threads started!

[ 1s ] thds: 4 tps: 345.99 qps: 6983.75 (r/w/o: 4901.82/1385.95/695.98) lat (ms,95%): 15.83 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 4 tps: 361.01 qps: 7213.29 (r/w/o: 5049.20/1442.06/722.03) lat (ms,95%): 14.73 err/s: 1.00 reconn/s: 0.00
SQL statistics:
    queries performed:
        read:                            9954
        write:                           2843
        other:                           1422
        total:                           14219
    transactions:                        711    (355.01 per sec.)
    queries:                             14219  (7099.89 per sec.)
    ignored errors:                      1      (0.50 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          2.0015s
    total number of events:              711

Latency (ms):
         min:                                    5.02
         avg:                                   11.25
         max:                                   44.81
         95th percentile:                       15.55
         sum:                                 7999.49

Threads fairness:
    events (avg/stddev):           177.7500/1.48
";

    #[test]
    fn a_program_that_stands_still_is_ended_and_its_limit_named() {
        let mut still = Command::new("sleep");
        let error = said(still.arg("100"), Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("ended after 1 s, its limit"), "{error}");
    }

    #[test]
    fn a_program_that_is_killed_has_not_met_its_limit() {
        let mut killed = Command::new("sh");
        let error = said(killed.args(["-c", "kill -9 $$"]), Duration::from_secs(60)).unwrap_err();
        assert!(!error.to_string().contains("its limit"), "{error}");
    }

    #[test]
    fn a_report_is_read() {
        let report = Report {
            transactions: 711.0,
            tps: 355.01,
            average_ms: 11.25,
            p95_ms: 15.55,
            errors: 1.0,
            curve: vec![(1.0, 345.99), (2.0, 361.01)],
        };
        assert_eq!(Report::parse(SAID).unwrap(), report);
        let error = Report::parse("FATAL: nothing").unwrap_err().to_string();
        assert!(error.contains("FATAL"), "{error}");
    }
}
