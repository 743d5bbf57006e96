//! A node's `my.cnf`.

use super::{Account, Node};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// What every server of a group is to have: `quorate up`, all tests and measurements run with it, and
/// README.md tells users to. (What a test changes, its extra options say.)
pub const SERVER_OPTIONS: [(&str, &str); 8] = [
    // What replication by write sets needs.
    ("wsrep_on", "ON"),
    ("binlog_format", "ROW"),
    ("default_storage_engine", "InnoDB"),
    ("innodb_autoinc_lock_mode", "2"),
    // Write sets that do not touch the same rows are applied at the same time.
    ("wsrep_slave_threads", "4"),
    // Without it, REPEATABLE READ loses updates, on a single server too.
    ("innodb_snapshot_isolation", "ON"),
    // The group's log is durable on a majority before a commit is acknowledged, so the server need
    // not flush its own at each commit: what a crash takes from it, the log gives back.
    ("innodb_flush_log_at_trx_commit", "0"),
    ("sync_binlog", "0"),
];

/// What is the same for all nodes of a cluster.
pub struct Settings<'a> {
    /// `wsrep_cluster_name`.
    pub cluster: &'a str,
    /// Addresses of all nodes, `host:port`.
    pub group: &'a [String],
    /// Where the servers load the provider from.
    pub provider: &'a Path,
    /// What is added to `wsrep_provider_options`.
    pub provider_options: &'a str,
    pub account: &'a Account,
    /// A file of server options that is read last.
    pub extra: &'a Path,
}

impl Settings<'_> {
    /// Writes the `my.cnf` of `node`.
    pub fn write(&self, node: &Node) -> Result<()> {
        let path = node.config();
        fs::write(&path, self.render(node))
            .with_context(|| format!("writing {}", path.display()))?;
        self.account.own(&path, 0o640)
    }

    fn render(&self, node: &Node) -> String {
        let show = |path: &Path| path.display().to_string();
        format!(
            "\
# Written by `quorate` at each start. Your own options belong in {extra}.
[client]
socket = {socket}
user = {database_user}

[sst]
sst-log-archive-dir = {transfer_logs}

[mariadbd]
datadir = {data}
socket = {socket}
pid-file = {pid_file}
log-error = {error_log}
tmpdir = {tmp}
bind-address = {host}
port = {client}
skip-name-resolve
max_connections = 500
innodb_buffer_pool_size = 128M

{server_options}
wsrep_provider = {provider}
wsrep_cluster_name = {name}
wsrep_cluster_address = gcomm://{group}
wsrep_node_name = {node_name}
wsrep_node_address = {host}:{group_port}
wsrep_node_incoming_address = {host}:{client}
wsrep_provider_options = \"{options}\"
wsrep_sst_method = mariabackup
wsrep_sst_receive_address = {host}:{sst}
wsrep_sst_auth = {account}:

!include {extra}
",
            extra = show(self.extra),
            host = node.host,
            socket = show(&node.socket()),
            database_user = self.account.database_user(),
            data = show(&node.data()),
            pid_file = show(&node.pid_file()),
            error_log = show(&node.error_log()),
            tmp = show(&node.tmp()),
            transfer_logs = show(&node.dir.join("transfer-logs")),
            client = node.ports.client,
            provider = show(self.provider),
            server_options = lines(&SERVER_OPTIONS),
            name = self.cluster,
            group = self.group.join(","),
            node_name = node.name,
            group_port = node.ports.group,
            options = self.provider_options(node),
            sst = node.ports.sst,
            account = self.account.name,
        )
    }

    fn provider_options(&self, node: &Node) -> String {
        let mut options = vec![
            format!("base_host={}", node.host),
            format!("base_port={}", node.ports.group),
            format!("gmcast.listen_addr=tcp://{}", node.group_address()),
            format!("ist.recv_addr={}:{}", node.host, node.ports.ist),
        ];
        // Galera refuses options that it does not know.
        let file = self.provider.file_name().unwrap_or_default();
        if file.to_string_lossy().starts_with("libquorate") {
            options.push(format!("quorate.dir={}", node.log().display()));
        }
        let own = self.provider_options.trim_matches([';', ' ']);
        if !own.is_empty() {
            options.push(own.to_owned());
        }
        options.join(";")
    }
}

fn lines(options: &[(&str, &str)]) -> String {
    options.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Options of README.md's my.cnf that are a node's or a site's own.
    const OWN: [&str; 8] = [
        "wsrep_provider",
        "wsrep_cluster_name",
        "wsrep_cluster_address",
        "wsrep_node_address",
        "wsrep_provider_options",
        "wsrep_sst_method",
        "wsrep_sst_auth",
        "bind-address",
    ];

    /// The options of the my.cnf that a document shows.
    fn shown(document: &str) -> BTreeMap<&str, &str> {
        let (_, rest) = document.split_once("```ini\n[mariadbd]\n").expect("a my.cnf");
        let (block, _) = rest.split_once("```").expect("its end");
        let uncommented = |line| str::split(line, '#').next().unwrap_or_default();
        let lines = block.lines().map(uncommented).filter(|line| !line.trim().is_empty());
        let options = lines.map(|line| line.split_once('=').expect("name = value"));
        options.map(|(name, value)| (name.trim(), value.trim())).collect()
    }

    #[test]
    fn users_are_told_the_options_that_are_tested() {
        let readme = include_str!("../../../../README.md");
        let mut told = shown(readme);
        for own in OWN {
            assert!(told.remove(own).is_some(), "README.md has no {own}");
        }
        assert_eq!(told, BTreeMap::from(SERVER_OPTIONS));
        let others = [
            ("operations.md", include_str!("../../../../docs/operations.md")),
            ("from-galera.md", include_str!("../../../../docs/from-galera.md")),
        ];
        for (name, document) in others {
            for (option, value) in shown(document) {
                let tested = SERVER_OPTIONS.iter().find(|(name, _)| *name == option);
                assert_eq!(tested, Some(&(option, value)), "{name}");
            }
        }
    }
}
