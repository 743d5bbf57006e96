//! What the tools around a cluster ask a node, word for word, and what they conclude from the
//! answers: load balancers, health checks, exporters. The conclusions follow the tools' sources.

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use std::collections::BTreeMap;

/// `lib/MySQL_Monitor.cpp`, for servers that are no MySQL of version 5.7 or later.
const PROXYSQL: &str = "SELECT (SELECT VARIABLE_VALUE FROM INFORMATION_SCHEMA.GLOBAL_STATUS WHERE VARIABLE_NAME='WSREP_LOCAL_STATE') wsrep_local_state, @@read_only read_only, (SELECT VARIABLE_VALUE FROM INFORMATION_SCHEMA.GLOBAL_STATUS WHERE VARIABLE_NAME='WSREP_LOCAL_RECV_QUEUE') wsrep_local_recv_queue , @@wsrep_desync wsrep_desync, @@wsrep_reject_queries wsrep_reject_queries, @@wsrep_sst_donor_rejects_queries wsrep_sst_donor_rejects_queries, (SELECT VARIABLE_VALUE FROM INFORMATION_SCHEMA.GLOBAL_STATUS WHERE VARIABLE_NAME='WSREP_CLUSTER_STATUS') wsrep_cluster_status, (SELECT 'DISABLED') pxc_maint_mode";

/// `galeramon.cc`
const MAXSCALE: &str = "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_state_uuid', 'wsrep_cluster_size', 'wsrep_local_index', 'wsrep_local_state', 'wsrep_local_state_comment', 'wsrep_desync', 'wsrep_ready', 'wsrep_sst_donor_rejects_queries', 'wsrep_reject_queries')";

/// The conclusions, in the order of [`Verdicts::row`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// Why ProxySQL sets the node offline; empty: it is online.
    pub proxysql: String,
    /// MaxScale counts it to the cluster.
    pub maxscale: bool,
    /// clustercheck (HAProxy) answers 200, with its defaults, ...
    pub clustercheck: bool,
    /// ... and with AVAILABLE_WHEN_DONOR=1.
    pub clustercheck_donor: bool,
    /// Readiness and liveness probes of operators: Synced, Primary.
    pub ready: bool,
    pub alive: bool,
    /// What MySQLTuner finds wrong.
    pub tuner: Vec<String>,
}

impl Verdicts {
    /// ProxySQL, MaxScale, clustercheck without and with donors, ready, alive, MySQLTuner content.
    pub fn row(&self) -> [bool; 7] {
        [
            self.proxysql.is_empty(),
            self.maxscale,
            self.clustercheck,
            self.clustercheck_donor,
            self.ready,
            self.alive,
            self.tuner.is_empty(),
        ]
    }
}

pub fn ask(conn: &mut Conn) -> Result<Verdicts> {
    Ok(Verdicts {
        proxysql: proxysql(conn)?,
        maxscale: maxscale(conn)?,
        clustercheck: clustercheck(conn, false)?,
        clustercheck_donor: clustercheck(conn, true)?,
        ready: status_like(conn, "wsrep_local_state_comment")? == "Synced",
        alive: status_like(conn, "wsrep_cluster_status")? == "Primary",
        tuner: tuner(conn)?,
    })
}

/// Whether a tool takes the node for the one to write to: ProxySQL by `read_only`, MaxScale by the
/// lowest index, clustercheck by its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    pub proxysql: bool,
    pub maxscale: bool,
    pub clustercheck: bool,
}

pub fn writer(conn: &mut Conn) -> Result<Writer> {
    let fields = proxysql_fields(conn)?;
    let read_only = fields.get(1).context("ProxySQL expects read_only")?;
    let index = status_like(conn, "wsrep_local_index")?;
    Ok(Writer {
        proxysql: proxysql(conn)?.is_empty() && !truth(read_only),
        maxscale: maxscale(conn)? && index == "0",
        clustercheck: clustercheck(conn, false)?,
    })
}

fn proxysql_fields(conn: &mut Conn) -> Result<Vec<String>> {
    let row: Row = conn.query_first(PROXYSQL)?.context("ProxySQL's query has no answer")?;
    Ok(row.unwrap().iter().map(text).collect())
}

fn truth(field: &str) -> bool {
    ["1", "ON", "YES", "TRUE"].contains(&field.to_uppercase().as_str())
}

fn proxysql(conn: &mut Conn) -> Result<String> {
    let fields = proxysql_fields(conn)?;
    let [state, _, queue, desync, rejects, _, status, _] = &fields[..] else {
        anyhow::bail!("ProxySQL expects other columns than {fields:?}");
    };
    let behind: i64 = queue.parse().with_context(|| format!("recv queue {queue:?}"))?;
    Ok(match () {
        () if status != "Primary" => "primary_partition=NO".into(),
        () if truth(desync) => "wsrep_desync=YES".into(),
        () if state != "4" => format!("wsrep_local_state={state}"),
        () if rejects != "NONE" => "wsrep_reject_queries=true".into(),
        () if behind > 100 => format!("{behind} transactions behind"),
        () => String::new(),
    })
}

fn maxscale(conn: &mut Conn) -> Result<bool> {
    let answers: BTreeMap<String, String> =
        conn.query::<(String, String), _>(MAXSCALE)?.into_iter().collect();
    let answer = |name: &str| answers.get(name).with_context(|| format!("MaxScale misses {name}"));
    let index = answer("wsrep_local_index")?;
    // Undefined is the largest unsigned number, which it takes for out of range.
    index.parse::<u64>().with_context(|| format!("wsrep_local_index {index:?}"))?;
    answer("wsrep_cluster_size")?.parse::<u32>()?;
    answer("wsrep_cluster_state_uuid")?;
    answer("wsrep_local_state_comment")?;
    Ok(answer("wsrep_local_state")? == "4" && answer("wsrep_ready")? == "ON")
}

fn clustercheck(conn: &mut Conn, available_when_donor: bool) -> Result<bool> {
    let state = status_like(conn, "wsrep_local_state")?;
    let query = "SHOW GLOBAL VARIABLES WHERE Variable_name = 'read_only'";
    let read_only: Option<(String, String)> = conn.query_first(query)?;
    let writable = read_only.is_some_and(|(_, value)| value == "OFF");
    Ok((state == "4" || (state == "2" && available_when_donor)) && writable)
}

fn status_like(conn: &mut Conn, name: &str) -> Result<String> {
    let found: Option<(String, String)> = conn.query_first(format!("SHOW STATUS LIKE '{name}'"))?;
    found.map(|(_, value)| value).with_context(|| format!("no status variable {name}"))
}

fn tuner(conn: &mut Conn) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let expected = [
        ("wsrep_connected", "ON"),
        ("wsrep_ready", "ON"),
        ("wsrep_cluster_status", "Primary"),
        ("wsrep_local_state_comment", "Synced"),
    ];
    for (name, wanted) in expected {
        let value = status_like(conn, name)?;
        if value != wanted {
            found.push(format!("{name} is {value}"));
        }
    }
    let (own, cluster) = (
        status_like(conn, "wsrep_local_state_uuid")?,
        status_like(conn, "wsrep_cluster_state_uuid")?,
    );
    if own != cluster {
        found.push(format!("state uuids {own} and {cluster} differ"));
    }
    let options: String =
        conn.query_first("SELECT @@wsrep_provider_options")?.context("no options")?;
    for name in ["gcs.fc_limit", "gcs.fc_factor", "gcache.size", "gcache.mem_size"] {
        if !options.split(';').any(|o| o.trim_start().starts_with(&format!("{name} ="))) {
            found.push(format!("no {name} in wsrep_provider_options"));
        }
    }
    Ok(found)
}

/// What mysqld_exporter makes of a scrape: each status variable that it can read as a number, and
/// the ones that it takes apart.
pub fn exporter(conn: &mut Conn) -> Result<BTreeMap<String, f64>> {
    let mut metrics = BTreeMap::new();
    for (name, value) in conn.query::<(String, String), _>("SHOW GLOBAL STATUS")? {
        if let Some(number) = number(&value) {
            metrics.insert(name.to_lowercase(), number);
        }
        if name == "wsrep_evs_repl_latency" {
            let parts: Vec<f64> = value.split('/').filter_map(|part| part.parse().ok()).collect();
            metrics.insert("evs_repl_latency_parts".into(), parts.len() as f64);
        }
    }
    let options: Vec<(String, String)> = conn.query("SHOW GLOBAL VARIABLES")?;
    let options = options.into_iter().find(|(name, _)| name == "wsrep_provider_options");
    let (_, options) = options.context("no wsrep_provider_options")?;
    let size = options.split_once("gcache.size = ").and_then(|(_, rest)| rest.split_once(';'));
    let size = size.map(|(size, _)| size.trim_end_matches(['M', 'G']).parse::<f64>());
    metrics.insert("galera_gcache_size".into(), size.context("no gcache.size")??);
    Ok(metrics)
}

fn number(value: &str) -> Option<f64> {
    match value.to_lowercase().as_str() {
        "yes" | "on" | "primary" => Some(1.0),
        "no" | "off" | "disabled" | "non-primary" | "disconnected" => Some(0.0),
        other => other.parse().ok(),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        _ => String::new(),
    }
}
