//! TPC-C by go-tpc: the orders of a wholesaler, five kinds of transactions in nine tables.
//!
//! It speaks TCP only, so it runs on the primary's host. Its table `history` has no key, and systems that
//! replicate rows need one: that table is there before go-tpc makes the others.

use super::clients::CONFLICTS;
use super::sysbench::said;
use crate::fleet::Fleet;
use anyhow::{bail, ensure, Context, Result};
use mysql::prelude::Queryable;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const PROGRAM: &str = "go-tpc";
/// `make go-tpc` leaves it there.
const FOLDERS_ABOVE: usize = 4;
const DATABASE: &str = "tpcc";
const ACCOUNT: &str = "tpcc@'%'";
/// Threads that fill the tables.
const FILLERS: u32 = 4;
/// For a warehouse; it takes a tenth of that.
const FILL_LIMIT: Duration = Duration::from_secs(90);
/// After the time of a load, for answers that do not come.
const SHUTDOWN: Duration = Duration::from_secs(60);
/// What it says of a transaction that it gives up.
const FAILED: &str = "failed, err ";
const SUMMARY: &str = "[Summary] ";
const CURRENT: &str = "[Current] ";
const NEW_ORDER: &str = "NEW_ORDER";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Those that succeeded, by kind: `PAYMENT`.
    pub transactions: BTreeMap<String, f64>,
    /// Of all their response times.
    pub waited_ms: f64,
    /// Given up after a conflict.
    pub conflicts: f64,
    /// Transactions per second, by the second.
    pub curve: Vec<(f64, f64)>,
}

/// Where it is, or an error that says how to get it.
pub fn find() -> Result<PathBuf> {
    let own = std::env::current_exe().context("finding this program's own path")?;
    let above = own.ancestors().skip(1).take(FOLDERS_ABOVE).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = above.chain(std::env::split_paths(&path)).map(|place| place.join(PROGRAM));
    places.find(|place| place.is_file()).with_context(|| {
        format!("{PROGRAM} is neither above this program nor in $PATH; to build it: make {PROGRAM}")
    })
}

/// Fills new tables through the primary.
pub fn prepare(fleet: &Fleet, warehouses: u32) -> Result<()> {
    let primary = fleet.primary()?;
    let mut connection = fleet.connect(primary)?;
    for statement in [
        format!("DROP DATABASE IF EXISTS {DATABASE}"),
        format!("CREATE DATABASE {DATABASE}"),
        format!(
            "CREATE TABLE {DATABASE}.history (h_id BIGINT AUTO_INCREMENT PRIMARY KEY, \
             h_c_id INT NOT NULL, h_c_d_id INT NOT NULL, h_c_w_id INT NOT NULL, h_d_id INT NOT NULL, \
             h_w_id INT NOT NULL, h_date DATETIME, h_amount DECIMAL(6, 2), h_data VARCHAR(24), \
             INDEX idx_h_w_id (h_w_id), INDEX idx_h_c_w_id (h_c_w_id))"
        ),
        format!("CREATE USER IF NOT EXISTS {ACCOUNT}"),
        format!("GRANT ALL ON {DATABASE}.* TO {ACCOUNT}"),
    ] {
        connection.query_drop(&statement).with_context(|| statement)?;
    }
    let mut command = command(fleet, primary, "prepare", warehouses)?;
    command.args([&format!("--threads={FILLERS}"), "--no-check"]);
    let limit = FILL_LIMIT * warehouses;
    let text = fleet.network().hosts()[primary].run(|| said(&command, limit))??;
    ensure!(text.contains("Finished"), "{PROGRAM} did not fill its tables: {text}");
    Ok(())
}

/// Drops the tables.
pub fn clear(fleet: &Fleet) -> Result<()> {
    let mut connection = fleet.connect(fleet.primary()?)?;
    connection.query_drop(format!("DROP DATABASE {DATABASE}")).context("dropping TPC-C's tables")
}

/// Runs its usual mix for so long, through the primary. A transaction that met a conflict is not done
/// again; any other error is one here.
pub fn run(fleet: &Fleet, warehouses: u32, clients: u32, time: Duration) -> Result<Report> {
    let primary = fleet.primary()?;
    let mut command = command(fleet, primary, "run", warehouses)?;
    command
        .arg(format!("--threads={clients}"))
        .arg(format!("--time={}ms", time.as_millis()))
        .args(["--interval=1s", "--output=json", "--ignore-error"]);
    Report::parse(&fleet.network().hosts()[primary].run(|| said(&command, time + SHUTDOWN))??)
}

fn command(fleet: &Fleet, member: usize, what: &str, warehouses: u32) -> Result<Command> {
    let (node, account) = (fleet.node(member), ACCOUNT.split('@').next().unwrap_or_default());
    let mut command = Command::new(find()?);
    command.args([
        "tpcc".to_owned(),
        what.to_owned(),
        format!("--host={}", node.host),
        format!("--port={}", node.ports.client),
        format!("--user={account}"),
        format!("--db={DATABASE}"),
        format!("--warehouses={warehouses}"),
    ]);
    Ok(command)
}

/// Of its tables in JSON, what is read here.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "Prefix")]
    prefix: String,
    #[serde(rename = "Operation")]
    operation: String,
    #[serde(rename = "Count")]
    count: String,
    #[serde(rename = "Sum(ms)")]
    sum_ms: String,
}

impl Report {
    pub fn parse(text: &str) -> Result<Report> {
        let mut report = Report::default();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if line.contains(FAILED) {
                // It names the statement, which may have several lines, and the error after it.
                let begins = |next: &str| {
                    [FAILED, "Finished"].iter().any(|word| next.contains(word))
                        || next.starts_with('[')
                };
                let mut error = line.to_owned();
                while let Some(next) = lines.next_if(|next| !begins(next)) {
                    error = error + " " + next;
                }
                ensure!(is_conflict(&error), "{PROGRAM}: {error}");
                report.conflicts += 1.0;
            } else if let Ok(lines) = serde_json::from_str::<Vec<Line>>(line) {
                report.add(&lines).with_context(|| line.to_owned())?;
            }
        }
        if report.transactions.is_empty() {
            bail!("{PROGRAM} told of no transaction: {text}");
        }
        Ok(report)
    }

    /// A table: of one second, or of all at the end.
    fn add(&mut self, lines: &[Line]) -> Result<()> {
        let done = lines.iter().filter(|line| !line.operation.ends_with("_ERR"));
        let mut second = None;
        for line in done {
            let count: f64 = line.count.parse()?;
            match line.prefix.as_str() {
                SUMMARY => {
                    self.waited_ms += line.sum_ms.parse::<f64>()?;
                    self.transactions.insert(line.operation.clone(), count);
                }
                CURRENT => *second.get_or_insert(0.0) += count,
                _ => {}
            }
        }
        self.curve.extend(second.map(|count| (self.curve.len() as f64 + 1.0, count)));
        Ok(())
    }

    pub fn all(&self) -> f64 {
        self.transactions.values().sum()
    }

    /// What the standard counts.
    pub fn new_orders(&self) -> f64 {
        self.transactions.get(NEW_ORDER).copied().unwrap_or_default()
    }
}

fn is_conflict(error: &str) -> bool {
    // It does not look at the error that cuts a list of rows short. What it looks for is always there:
    // nobody deletes items, stock or customers.
    error.ends_with("not found")
        || error.ends_with("not found in stock")
        || CONFLICTS.iter().any(|code| error.contains(&format!("Error {code} ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUT_SHORT: &str = "execute run failed, err item (1, 71540) not found in stock";
    const CONFLICT: &str =
        "[2026-01-02 03:04:05] execute run failed, err exec UPDATE stock failed \
                            Error 1213 (40001): Deadlock found when trying to get lock";

    const LONG: &str =
        "[2026-01-02 03:04:05] execute run failed, err exec SELECT c_first, c_phone,\n\
                        c_credit FROM customer WHERE c_w_id = ? \nAND c_id = ? FOR UPDATE failed \
                        Error 1213 (40001): Deadlock found when trying to get lock";

    fn table(prefix: &str, counts: &[(&str, u32)]) -> String {
        let lines = counts.iter().map(|(kind, count)| {
            format!(
                r#"{{"Prefix":"{prefix}","Operation":"{kind}","Count":"{count}","Sum(ms)":"50.5","TPM":"1.0"}}"#
            )
        });
        format!("[{}]", lines.collect::<Vec<_>>().join(","))
    }

    #[test]
    fn a_report_is_read() {
        let text = [
            table(CURRENT, &[("NEW_ORDER", 20), ("NEW_ORDER_ERR", 1), ("PAYMENT", 21)]),
            CONFLICT.to_owned(),
            LONG.to_owned(),
            table(CURRENT, &[("PAYMENT", 19)]),
            CUT_SHORT.to_owned(),
            "Finished".to_owned(),
            table(SUMMARY, &[("NEW_ORDER", 25), ("NEW_ORDER_ERR", 1), ("PAYMENT", 41)]),
            r#"[{"tpmC":"600.0","tpmTotal":"1584.0","efficiency":"46.7%"}]"#.to_owned(),
        ];
        let report = Report::parse(&text.join("\n")).unwrap();
        assert_eq!((report.all(), report.new_orders(), report.conflicts), (66.0, 25.0, 3.0));
        assert_eq!((report.waited_ms, report.curve), (101.0, vec![(1.0, 41.0), (2.0, 19.0)]));
    }

    #[test]
    fn what_is_no_conflict_is_an_error() {
        let lost = "execute run failed, err dial tcp 10.77.0.1:3306: connect: connection refused";
        let text = format!("{lost}\n{}", table(SUMMARY, &[("PAYMENT", 1)]));
        assert!(Report::parse(&text).unwrap_err().to_string().contains("refused"));
        let text = format!("{}\n{}", LONG.replace("1213", "1105"), table(SUMMARY, &[]));
        let error = Report::parse(&text).unwrap_err().to_string();
        assert!(error.contains("FOR UPDATE failed Error 1105"), "{error}");
        assert!(Report::parse("Finished").is_err());
    }
}
