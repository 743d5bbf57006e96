//! The state of a cluster, as a table and as JSON.

use super::table::{human_bytes, or_dash, table};
use crate::cluster::{Cluster, Node};
use crate::failure::{FAILED, NO_PRIMARY, OK};
use crate::server::{Activity, LoggerStatus};
use crate::sql::{self, WsrepStatus};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::thread;

const LOGGER: &str = "Logger";
const NO_ANSWER: &str = "No answer";
/// Below the table, where that is so.
pub const PAUSED: &str =
    "The group is paused: no member is expelled, and leadership stays where it is (quorate resume).";

#[derive(Debug, Serialize)]
pub struct Report {
    pub cluster: String,
    pub dir: String,
    pub health: Health,
    /// Nothing moves leadership, or expels a member, without an order.
    pub paused: bool,
    pub nodes: Vec<NodeReport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Every node is Synced, loggers among them.
    Synced,
    /// Some node is not, but some node accepts writes.
    Degraded,
    /// No node accepts writes.
    NoPrimary,
}

impl Health {
    /// Of `status`.
    pub fn exit_code(self) -> u8 {
        match self {
            Health::Synced => OK,
            Health::Degraded => FAILED,
            Health::NoPrimary => NO_PRIMARY,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct NodeReport {
    pub name: String,
    /// Where clients connect; none for a logger.
    pub address: Option<String>,
    pub socket: Option<String>,
    pub pid: Option<i32>,
    /// `Leader`, `Follower`, `Learner`; none if the server is down or its provider has no roles.
    /// `Logger`, also while it is down.
    pub role: Option<String>,
    /// wsrep's words, or `Down`, `Paused`, `No answer`, `No permission` (to ask it).
    pub state: String,
    /// It takes reads and writes, which a logger never does.
    pub ready: bool,
    /// Last committed.
    pub seqno: Option<i64>,
    pub term: Option<i64>,
    pub log_bytes: Option<u64>,
    /// As this node knows it; in the report of the whole cluster.
    #[serde(skip)]
    pub paused: bool,
}

impl Report {
    pub fn collect(cluster: &Cluster) -> Report {
        let user = cluster.account.database_user();
        let nodes: Vec<NodeReport> = thread::scope(|scope| {
            let workers: Vec<_> = cluster
                .state
                .nodes
                .iter()
                .map(|state| {
                    let node = cluster.node(state.number);
                    let process = state.process;
                    scope.spawn(move || {
                        let activity = process.map_or(Activity::Gone, |p| p.activity());
                        let pid = process.map(|p| p.pid).filter(|_| activity != Activity::Gone);
                        match state.logger {
                            true => NodeReport::of_logger(cluster, &node, activity, pid),
                            false => NodeReport::of(&node, activity, pid, user),
                        }
                    })
                })
                .collect();
            workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
        });
        let health = match () {
            () if nodes.iter().all(NodeReport::is_well) => Health::Synced,
            () if nodes.iter().any(|node| node.ready) => Health::Degraded,
            () => Health::NoPrimary,
        };
        let dir = cluster.dir.display().to_string();
        let paused = nodes.iter().any(|node| node.paused);
        Report { cluster: cluster.state.name.clone(), dir, health, paused, nodes }
    }
}

impl NodeReport {
    fn of(node: &Node, activity: Activity, pid: Option<i32>, user: &str) -> NodeReport {
        let status = ask(activity, || {
            sql::wsrep_status(&node.socket(), user).map_err(|error| match sql::is_denied(&error) {
                true => "No permission",
                false => NO_ANSWER,
            })
        });
        let state = status.as_ref().map_or_else(|why| *why, WsrepStatus::state).to_owned();
        let status = status.unwrap_or_default();
        let number = |name| status.number(name).filter(|value| *value >= 0);
        let log_bytes = number("wsrep_quorate_log_bytes").map(|bytes| bytes as u64);
        NodeReport {
            name: node.name.clone(),
            address: Some(node.address()),
            socket: Some(node.socket().display().to_string()),
            pid,
            role: status.get("wsrep_quorate_role").map(str::to_owned),
            state,
            ready: status.is_ready(),
            seqno: number("wsrep_last_committed"),
            term: number("wsrep_quorate_term"),
            log_bytes: log_bytes.or_else(|| folder_bytes(&node.log())),
            paused: status
                .get("wsrep_quorate_rules")
                .is_some_and(|rules| rules.split(' ').any(|rule| rule == "paused=yes")),
        }
    }

    fn of_logger(
        cluster: &Cluster,
        node: &Node,
        activity: Activity,
        pid: Option<i32>,
    ) -> NodeReport {
        let status = ask(activity, || LoggerStatus::ask(cluster, node).ok_or(NO_ANSWER));
        let state = status.as_ref().map_or_else(|why| *why, LoggerStatus::state).to_owned();
        let status = status.ok();
        let log_bytes = status.as_ref().and_then(|status| status.number("log_bytes"));
        NodeReport {
            name: node.name.clone(),
            address: None,
            socket: None,
            pid,
            role: Some(LOGGER.to_owned()),
            state,
            ready: false,
            seqno: None,
            term: status.and_then(|status| status.number("term")),
            log_bytes: log_bytes.or_else(|| folder_bytes(&node.log())),
            paused: false,
        }
    }

    fn is_well(&self) -> bool {
        self.state == "Synced" && (self.ready || self.role.as_deref() == Some(LOGGER))
    }
}

/// A node's own status, or in a word why there is none.
fn ask<S>(
    activity: Activity,
    status: impl FnOnce() -> Result<S, &'static str>,
) -> Result<S, &'static str> {
    match activity {
        Activity::Gone => Err("Down"),
        Activity::Paused => Err("Paused"),
        Activity::Running => status(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![["NODE", "ADDRESS", "ROLE", "STATE", "SEQNO", "LOG"].map(String::from)];
        rows.extend(self.nodes.iter().map(|node| {
            [
                node.name.clone(),
                or_dash(node.address.clone()),
                or_dash(node.role.clone()),
                node.state.clone(),
                or_dash(node.seqno.map(|seqno| seqno.to_string())),
                or_dash(node.log_bytes.map(human_bytes)),
            ]
        }));
        f.write_str(&table(&rows))?;
        if self.paused {
            writeln!(f, "{PAUSED}")?;
        }
        Ok(())
    }
}

/// Space that the files of a folder take on disk; `None` if there is no such folder.
fn folder_bytes(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    const BLOCK_BYTES: u64 = 512;
    let entries = folder.read_dir().ok()?;
    Some(
        entries.flatten().filter_map(|e| e.metadata().ok()).map(|m| m.blocks() * BLOCK_BYTES).sum(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lines_up() {
        let node = |name: &str, state: &str| NodeReport {
            name: name.into(),
            address: Some("127.0.0.1:3410".into()),
            socket: None,
            pid: None,
            role: None,
            state: state.into(),
            ready: false,
            seqno: None,
            term: None,
            log_bytes: None,
            paused: false,
        };
        let mut report = Report {
            cluster: "c".into(),
            dir: "/d".into(),
            health: Health::NoPrimary,
            paused: false,
            nodes: vec![node("node1", "Down"), node("node2", "Non-primary")],
        };
        assert_eq!(
            report.to_string(),
            "NODE   ADDRESS         ROLE  STATE        SEQNO  LOG\n\
             node1  127.0.0.1:3410  -     Down         -      -\n\
             node2  127.0.0.1:3410  -     Non-primary  -      -\n"
        );
        report.paused = true;
        assert!(report.to_string().ends_with(&format!("-      -\n{PAUSED}\n")));
    }
}
