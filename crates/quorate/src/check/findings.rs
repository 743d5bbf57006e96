//! What the facts mean: what is wrong, where, what it leads to, and what to do.

use super::facts::{Facts, Table};
use quorate_lab::server::SERVER_OPTIONS;
use quorate_live::page;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Releases of MariaDB that the tests run on.
const TESTED: [&str; 2] = ["10.11.", "11.8."];
/// A clock further off than this is wrong; the time of the question is known less well.
const CLOCK_MS_MAX: f64 = 500.0;
/// A sync that takes longer is felt in each commit.
const SYNC_MAX: Duration = Duration::from_millis(5);
/// The bit of `wsrep_ignore_apply_errors` that stands for all errors of DDL.
const IGNORES_DDL: i64 = 4;
/// Beyond it a group is spread over regions.
const ROUND_TRIP_MS_MAX: f64 = 5.0;

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
    let named = |(tables, count): &(Vec<Table>, u64), with_engine: bool| {
        let name = |table: &Table| match with_engine {
            true => format!("{} ({})", table.name, table.engine),
            false => table.name.clone(),
        };
        let names: Vec<String> = tables.iter().map(name).collect();
        let more = if *count > tables.len() as u64 { ", ..." } else { "" };
        format!("{}{more}", names.join(", "))
    };
    if facts.other_engines.1 > 0 {
        found.push(finding(
            Weight::Error,
            format!(
                "tables that are not InnoDB's, and would not be replicated ({}): {}",
                facts.other_engines.1,
                named(&facts.other_engines, true)
            ),
            "ALTER TABLE ... ENGINE = InnoDB",
        ));
    }
    if facts.without_key.1 > 0 {
        found.push(finding(
            Weight::Warning,
            format!(
                "tables without a primary key ({}): {}",
                facts.without_key.1,
                named(&facts.without_key, false)
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

fn settings(facts: &Facts, found: &mut Vec<Finding>) {
    for (name, wanted) in SERVER_OPTIONS {
        let (has, advice) = (facts.variable(name), format!("set {name} = {wanted}"));
        let is = |value: &str| has.eq_ignore_ascii_case(value);
        let number: i64 = has.parse().unwrap_or(0);
        let weight_and_why = match name {
            "binlog_format" if !is("ROW") => (Weight::Error, "write sets are made of row events"),
            "innodb_autoinc_lock_mode" if number != 2 => {
                (Weight::Error, "appliers that insert into one table would wait for each other's locks for ever")
            }
            "default_storage_engine" if !is("InnoDB") => {
                (Weight::Warning, "new tables would not be replicated unless they name InnoDB")
            }
            "innodb_snapshot_isolation" if !is("ON") => {
                (Weight::Warning, "REPEATABLE READ loses updates, on a single server too")
            }
            "wsrep_ignore_apply_errors" if number & IGNORES_DDL != 0 => (
                Weight::Warning,
                "a server on which a DDL statement fails, because its disk is full, say, goes on without it, and differs \
                 from the others without a word",
            ),
            "innodb_flush_log_at_trx_commit" if number != 0 => (
                Weight::Note,
                "each commit waits for a sync of InnoDB's log, too; the group's log on a majority of disks is what \
                 makes it durable",
            ),
            "sync_binlog" if number != 0 => {
                (Weight::Note, "each commit waits for a sync of the binary log, too, where there is one")
            }
            "wsrep_slave_threads" if number < 2 => {
                (Weight::Warning, "write sets that do not touch the same rows are applied one after the other")
            }
            _ => continue,
        };
        let (weight, why) = weight_and_why;
        found.push(finding(weight, format!("{name} is {has}: {why}"), advice));
    }
    if facts.variable("tx_isolation") == "SERIALIZABLE" {
        found.push(finding(
            Weight::Warning,
            "transactions are SERIALIZABLE on their own server only",
            "read what is to be serialized with FOR UPDATE, or write on one server (quorate.primary_mode=single)",
        ));
    }
    if facts.variable("lower_case_table_names") == "2" {
        found.push(finding(
            Weight::Warning,
            "lower_case_table_names is 2",
            "0 or 1, the same on all servers",
        ));
    }
}

/// Of a server in a cluster.
fn replication(facts: &Facts, found: &mut Vec<Finding>) {
    let status = |name: &str| facts.status.get(name).map_or("", String::as_str);
    let provider = status("wsrep_provider_name");
    if provider.is_empty() || provider == "none" {
        return;
    }
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
        found.push(finding(
            Weight::Note,
            format!(
                "flow control stopped it for a share of {} of the time",
                status("wsrep_flow_control_paused")
            ),
            "Quorate has none: a slow server falls behind, and delays nobody",
        ));
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

/// Between several servers.
pub fn across(all: &[Facts]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut differ = |weight, what: &str, value: &dyn Fn(&Facts) -> String, advice: &str| {
        let mut by_value: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        all.iter().for_each(|facts| by_value.entry(value(facts)).or_default().push(&facts.address));
        if by_value.len() > 1 {
            let each = by_value.iter().map(|(value, at)| format!("{value:?} at {}", at.join(", ")));
            let each: Vec<String> = each.collect();
            found.push(finding(weight, format!("{what} differ: {}", each.join("; ")), advice));
        }
    };
    let variable = |name: &'static str| move |facts: &Facts| facts.variable(name).to_owned();
    let release = |facts: &Facts| {
        facts
            .version
            .split('-')
            .next()
            .unwrap_or_default()
            .rsplit_once('.')
            .map_or(String::new(), |(release, _)| release.to_owned())
    };
    differ(Weight::Error, "releases of MariaDB", &release, "install the same on all, then begin");
    for name in ["lower_case_table_names", "innodb_page_size"] {
        differ(
            Weight::Error,
            name,
            &variable(name),
            "they are chosen when a data directory is made: the servers cannot hold each other's state",
        );
    }
    for name in
        ["character_set_server", "collation_server", "sql_mode", "time_zone", "innodb_strict_mode"]
    {
        differ(
            Weight::Warning,
            name,
            &variable(name),
            "what a statement does would depend on the server that it runs on; set the same on all",
        );
    }
    let (mut ids, mut twice) = (BTreeMap::new(), Vec::new());
    for facts in all {
        if let Some(other) = ids.insert(facts.variable("server_id"), &facts.address) {
            twice.push(format!("{other} and {}", facts.address));
        }
    }
    if !twice.is_empty() {
        found.push(finding(
            Weight::Note,
            format!("server_id is the same at {}", twice.join(", ")),
            "give each its own, where servers have binary logs that replicas read",
        ));
    }
    let clocks = || all.iter().map(|facts| facts.clock_ahead_ms);
    let apart = clocks().fold(f64::MIN, f64::max) - clocks().fold(f64::MAX, f64::min);
    if all.len() > 1 && apart > CLOCK_MS_MAX {
        found.push(finding(
            Weight::Warning,
            format!("their clocks are {:.1} s apart", apart / 1000.0),
            "run an NTP client on all hosts",
        ));
    }
    if all.iter().any(|facts| facts.round_trip_ms > ROUND_TRIP_MS_MAX) {
        found.push(finding(
            Weight::Note,
            "some are more than 5 ms away from here",
            concat!(
                "a commit takes one round trip to the leader and its nearest majority: place the members, and \
                 priorities, by that; see ",
                page!("docs/run/plan.md")
            ),
        ));
    }
    if !all.is_empty() && all.len() % 2 == 0 {
        found.push(finding(
            Weight::Note,
            format!("{} servers survive the loss of as many as {} do", all.len(), all.len() - 1),
            "an odd number of votes is best; a logger (quorate logger) has a vote and no data",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(address: &str, server_id: &str) -> Facts {
        let variables = SERVER_OPTIONS
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .chain([("server_id".to_owned(), server_id.to_owned())]);
        Facts {
            address: address.into(),
            version: "10.11.14-MariaDB-0+deb12u2".into(),
            variables: variables.collect(),
            round_trip_ms: 0.3,
            ..Facts::default()
        }
    }

    fn whats(found: &[Finding], weight: Weight) -> Vec<&str> {
        found.iter().filter(|f| f.weight == weight).map(|f| f.what.as_str()).collect()
    }

    #[test]
    fn nothing_is_found_at_servers_with_the_options_that_setup_writes() {
        let all = [good("a:1", "1"), good("b:1", "2"), good("c:1", "3")];
        assert_eq!(all.iter().flat_map(of_server).collect::<Vec<_>>(), []);
        assert_eq!(across(&all), []);
    }

    #[test]
    fn what_would_not_be_replicated_is_an_error_with_names() {
        let mut facts = good("a:1", "1");
        let table = |name: &str, engine: &str| Table { name: name.into(), engine: engine.into() };
        facts.other_engines = (vec![table("shop.log", "MyISAM"), table("shop.x", "Aria")], 7);
        facts.without_key = (vec![table("shop.events", "InnoDB")], 1);
        facts.variables.insert("binlog_format".into(), "MIXED".into());
        facts.variables.insert("wsrep_slave_threads".into(), "1".into());
        facts.variables.insert("wsrep_ignore_apply_errors".into(), "7".into());
        let found = of_server(&facts);
        let errors = whats(&found, Weight::Error);
        assert!(errors[0].contains("shop.log (MyISAM), shop.x (Aria), ..."), "{errors:?}");
        assert!(errors[1].starts_with("binlog_format is MIXED"), "{errors:?}");
        let warnings = whats(&found, Weight::Warning);
        assert!(
            warnings[0].starts_with("tables without a primary key (1): shop.events"),
            "{warnings:?}"
        );
        assert!(warnings[1].starts_with("wsrep_slave_threads is 1"), "{warnings:?}");
        assert!(warnings[2].starts_with("wsrep_ignore_apply_errors is 7"), "{warnings:?}");
    }

    #[test]
    fn a_server_of_another_kind_or_state_is_told() {
        let mut facts = good("a:1", "1");
        facts.version = "8.0.40".into();
        facts.clock_ahead_ms = -7200.0;
        let status = [
            ("wsrep_provider_name", "Galera"),
            ("wsrep_ready", "ON"),
            ("wsrep_local_state_comment", "Joined"),
        ];
        facts.status = status.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let found = of_server(&facts);
        assert_eq!(
            whats(&found, Weight::Error),
            ["it is 8.0.40, not MariaDB", "it is Joined, its view "]
        );
        assert_eq!(whats(&found, Weight::Warning), ["its clock is 7.2 s behind this host's"]);
        assert!(whats(&found, Weight::Note)[0].starts_with("it runs Galera"), "{found:?}");
    }

    #[test]
    fn what_differs_between_servers_names_them() {
        let (mut one, two) = (good("a:1", "1"), good("b:1", "1"));
        one.version = "11.8.3-MariaDB".into();
        one.variables.insert("sql_mode".into(), "ANSI".into());
        one.clock_ahead_ms = 900.0;
        let found = across(&[one, two]);
        let errors = whats(&found, Weight::Error);
        assert_eq!(errors, ["releases of MariaDB differ: \"10.11\" at b:1; \"11.8\" at a:1"]);
        let warnings = whats(&found, Weight::Warning);
        assert_eq!(
            warnings,
            ["sql_mode differ: \"\" at b:1; \"ANSI\" at a:1", "their clocks are 0.9 s apart"]
        );
        let notes = whats(&found, Weight::Note);
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn a_slow_disk_is_a_warning() {
        assert_eq!(of_disk(Duration::from_micros(300)).weight, Weight::Note);
        assert_eq!(of_disk(Duration::from_millis(12)).weight, Weight::Warning);
    }
}
