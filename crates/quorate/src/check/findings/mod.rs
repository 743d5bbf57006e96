//! What the facts mean: what is wrong, where, what it leads to, and what to do.

mod between;
mod group;
mod members;
mod settings;
mod votes;
mod way;

pub use between::{across, even};
pub use group::{of_group, unreached};
pub use members::of_member;
pub use way::of_way;

use super::facts::{Facts, Table};
use crate::server::log_key;
use quorate_live::page;
use serde::Serialize;
use settings::settings;
use std::fmt;
use std::time::Duration;

/// Releases of MariaDB that the tests run on.
const TESTED: [&str; 2] = ["10.11.", "11.8."];
/// A clock further off than this is wrong; the time of the question is known less well.
const CLOCK_MS_MAX: f64 = 500.0;
/// A sync that takes longer is felt in each commit.
const SYNC_MAX: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Good to know.
    Note,
    /// It works, but slower, or not as one expects.
    Warning,
    /// It would not work, or not replicate everything.
    Error,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    pub weight: Weight,
    pub what: String,
    /// What to do.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.weight {
            Weight::Error => "✗",
            Weight::Warning => "!",
            Weight::Note => "·",
        };
        writeln!(f, "  {sign} {}", self.what)?;
        writeln!(f, "      {}", self.advice)
    }
}

fn finding(weight: Weight, what: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { weight, what: what.into(), advice: advice.into() }
}

/// Of one server.
pub fn of_server(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    version(facts, &mut found);
    tables(facts, &mut found);
    settings(facts, &mut found);
    encryption(facts, &mut found);
    replication(facts, &mut found);
    if facts.clock_ahead_ms.abs() > CLOCK_MS_MAX {
        let (seconds, side) = (facts.clock_ahead_ms.abs() / 1000.0, facts.clock_ahead_ms);
        let side = if side > 0.0 { "ahead of" } else { "behind" };
        found.push(finding(
            Weight::Warning,
            format!("its clock is {seconds:.1} s {side} this host's"),
            "run an NTP client on all hosts. Nothing is decided by clocks, but NOW(), logs and lag in seconds \
             are by them",
        ));
    }
    found
}

fn version(facts: &Facts, found: &mut Vec<Finding>) {
    let version = &facts.version;
    if !version.contains("MariaDB") {
        found.push(finding(
            Weight::Error,
            format!("it is {version}, not MariaDB"),
            "Quorate is loaded by MariaDB 10.11 and 11.8; bring the data there first",
        ));
    } else if !TESTED.iter().any(|tested| version.starts_with(tested)) {
        found.push(finding(
            Weight::Warning,
            format!("MariaDB {version} is none of the releases that are tested (10.11, 11.8)"),
            "use one of them; others may work",
        ));
    }
    if facts.variable("have_ssl") == "DISABLED" {
        found.push(finding(
            Weight::Note,
            "clients reach it in the clear only",
            "ssl_cert and ssl_key encrypt clients' connections; those of the group are encrypted by its secret",
        ));
    }
}

fn tables(facts: &Facts, found: &mut Vec<Finding>) {
    if facts.other_engines.1 > 0 {
        found.push(finding(
            Weight::Error,
            format!(
                "tables that are not InnoDB's, and would not be replicated ({}): {}",
                facts.other_engines.1,
                listed(&facts.other_engines, |table| format!("{} ({})", table.name, table.engine))
            ),
            "ALTER TABLE ... ENGINE = InnoDB",
        ));
    }
    if facts.unreadable.1 > 0 {
        found.push(finding(
            Weight::Error,
            format!(
                "tables that the server cannot open, so nobody can say whether they would be replicated ({}): {}",
                facts.unreadable.1,
                listed(&facts.unreadable, |table| format!("{} ({})", table.name, table.engine))
            ),
            "install the storage engine that is missing (INSTALL SONAME), restore them, or drop them",
        ));
    }
    if facts.without_key.1 > 0 {
        found.push(finding(
            Weight::Warning,
            format!(
                "tables without a primary key ({}): {}",
                facts.without_key.1,
                named(&facts.without_key)
            ),
            "add one. Without it each change looks through the whole table on the other servers, conflicts are \
             found by the row's content, and DELETE or UPDATE of equal rows may be refused",
        ));
    }
    if facts.prepared > 0 {
        found.push(finding(
            Weight::Error,
            format!("prepared XA transactions that wait: {}", facts.prepared),
            "XA COMMIT or XA ROLLBACK them (XA RECOVER lists them): XA is not replicated by write sets",
        ));
    }
}

fn named(tables: &(Vec<Table>, u64)) -> String {
    listed(tables, |table| table.name.clone())
}

fn listed((tables, count): &(Vec<Table>, u64), name: impl Fn(&Table) -> String) -> String {
    let names: Vec<String> = tables.iter().map(name).collect();
    let more = if *count > tables.len() as u64 { ", ..." } else { "" };
    format!("{}{more}", names.join(", "))
}

/// What a server encrypts on its disk is in the group's log, too.
fn encryption(facts: &Facts, found: &mut Vec<Finding>) {
    const ON_DISK: [&str; 4] =
        ["innodb_encrypt_tables", "innodb_encrypt_log", "aria_encrypt_tables", "encrypt_binlog"];
    let is_on = |name: &&str| !["", "OFF", "0"].contains(&facts.variable(name));
    let set = ON_DISK.iter().filter(|name| is_on(name));
    let mut what: Vec<String> =
        set.map(|name| format!("{name} is {}", facts.variable(name))).collect();
    if facts.encrypted.1 > 0 {
        what.push(format!("encrypted tables ({}): {}", facts.encrypted.1, named(&facts.encrypted)));
    }
    if what.is_empty() || log_key(facts.variable("wsrep_provider_options")).is_some() {
        return;
    }
    found.push(finding(
        Weight::Warning,
        format!("the group's log has in the clear what is encrypted here: {}", what.join(", ")),
        concat!(
            "quorate key new FILE, then quorate.encrypt_key_file=FILE in wsrep_provider_options, on each server; see ",
            page!("docs/security.md")
        ),
    ));
}

/// What a server replicates with, if it is in a cluster.
fn provider(facts: &Facts) -> Option<&str> {
    let name = facts.status.get("wsrep_provider_name").map(String::as_str);
    name.filter(|name| !["", "none"].contains(name))
}

/// Of a server in a cluster.
fn replication(facts: &Facts, found: &mut Vec<Finding>) {
    let status = |name: &str| facts.status.get(name).map_or("", String::as_str);
    let Some(provider) = provider(facts) else { return };
    if status("wsrep_ready") != "ON" || status("wsrep_local_state_comment") != "Synced" {
        let (state, view) = (status("wsrep_local_state_comment"), status("wsrep_cluster_status"));
        found.push(finding(
            Weight::Error,
            format!("it is {state}, its view {view}"),
            "see its error log; a cluster is changed when all servers are Synced",
        ));
    }
    let other = provider.eq_ignore_ascii_case("Galera");
    if other && facts.variable("wsrep_osu_method") == "RSU" {
        found.push(finding(
            Weight::Warning,
            "wsrep_OSU_method is RSU: schema changes go to this server alone",
            "set it to TOI before the cluster goes over",
        ));
    }
    if other {
        found.push(finding(
            Weight::Note,
            format!("it runs {provider} {}", status("wsrep_provider_version")),
            concat!(
                page!("docs/from-galera.md"),
                " says how it goes over, without a dump, and back"
            ),
        ));
    }
    let sync: f64 = status("wsrep_quorate_fsync_seconds").parse().unwrap_or(0.0);
    if sync > SYNC_MAX.as_secs_f64() {
        found.push(slow_disk(Duration::from_secs_f64(sync)));
    }
    if status("wsrep_flow_control_paused").parse().is_ok_and(|share: f64| share > 0.01) {
        let share = status("wsrep_flow_control_paused");
        found.push(match other {
            true => finding(
                Weight::Note,
                format!("flow control stopped it for a share of {share} of the time"),
                "Quorate stops nobody: a slow server falls behind. If that is not wanted, quorate.flow_control \
                 slows writers down by a quota",
            ),
            false => finding(
                Weight::Note,
                format!("flow control held its clients back for a share of {share} of the time"),
                concat!(
                    "some server is too slow for the load: quorate status shows which one lags; see ",
                    page!("docs/run/troubles.md")
                ),
            ),
        });
    }
}

fn slow_disk(sync: Duration) -> Finding {
    finding(
        Weight::Warning,
        format!("a sync of the log's disk takes {:.1} ms", sync.as_secs_f64() * 1000.0),
        "each commit waits for one on a majority: put quorate.dir on a disk with a write cache that survives a power \
         cut (or one of its own)",
    )
}

/// Of this host's disk, where the log is to be.
pub fn of_disk(sync: Duration) -> Finding {
    match sync > SYNC_MAX {
        true => slow_disk(sync),
        false => finding(
            Weight::Note,
            format!("a sync of this host's disk takes {:.2} ms", sync.as_secs_f64() * 1000.0),
            "each commit waits for one on a majority of the hosts",
        ),
    }
}

#[cfg(test)]
mod tests;
