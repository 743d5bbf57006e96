//! A node's `my.cnf`.

use super::{Cluster, Node};
use anyhow::{Context, Result};
use std::fs;
use std::io::Write;
use std::path::Path;

pub const EXTRA: &str = "extra.cnf";
const EXTRA_TEXT: &str = "\
# Your own server options, for every node; read last, so they win. Never overwritten.
[mariadbd]
";

/// Writes `my.cnf` of `node`, and `extra.cnf` of the cluster if there is none yet.
pub fn write_config(cluster: &Cluster, node: &Node) -> Result<()> {
    let extra = cluster.dir.join(EXTRA);
    match fs::File::create_new(&extra) {
        Ok(mut file) => file.write_all(EXTRA_TEXT.as_bytes()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
    .with_context(|| format!("writing {}", extra.display()))?;
    cluster.account.admit(&extra, 0o640)?;

    let path = node.config();
    fs::write(&path, render(cluster, node))
        .with_context(|| format!("writing {}", path.display()))?;
    cluster.account.own(&path, 0o640)
}

fn render(cluster: &Cluster, node: &Node) -> String {
    let state = &cluster.state;
    let group: Vec<String> =
        state.nodes.iter().map(|n| format!("127.0.0.1:{}", n.ports.group)).collect();
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
bind-address = 127.0.0.1
port = {client}
skip-name-resolve
max_connections = 500
innodb_buffer_pool_size = 128M

# The group's log is durable on a majority before a commit is acknowledged, so the server
# need not flush its own at each commit: what a crash takes from it, the log gives back.
innodb_flush_log_at_trx_commit = 0
sync_binlog = 0

# What replication by write sets needs.
binlog_format = ROW
default_storage_engine = InnoDB
innodb_autoinc_lock_mode = 2

wsrep_on = ON
wsrep_provider = {provider}
wsrep_cluster_name = {name}
wsrep_cluster_address = gcomm://{group}
wsrep_node_name = {node_name}
wsrep_node_address = 127.0.0.1:{group_port}
wsrep_node_incoming_address = 127.0.0.1:{client}
wsrep_provider_options = \"{options}\"
wsrep_slave_threads = 4
wsrep_sst_method = mariabackup
wsrep_sst_receive_address = 127.0.0.1:{sst}
wsrep_sst_auth = {account}:

!include {extra}
",
        extra = show(&cluster.dir.join(EXTRA)),
        socket = show(&node.socket()),
        database_user = cluster.account.database_user(),
        data = show(&node.data()),
        pid_file = show(&node.pid_file()),
        error_log = show(&node.error_log()),
        tmp = show(&node.tmp()),
        transfer_logs = show(&node.dir.join("transfer-logs")),
        client = node.ports.client,
        provider = show(&state.provider_loaded),
        name = state.name,
        group = group.join(","),
        node_name = node.name,
        group_port = node.ports.group,
        options = provider_options(cluster, node),
        sst = node.ports.sst,
        account = cluster.account.name,
    )
}

fn provider_options(cluster: &Cluster, node: &Node) -> String {
    let mut options = vec![
        "base_host=127.0.0.1".to_owned(),
        format!("base_port={}", node.ports.group),
        format!("gmcast.listen_addr=tcp://127.0.0.1:{}", node.ports.group),
        format!("ist.recv_addr=127.0.0.1:{}", node.ports.ist),
    ];
    // Galera refuses options that it does not know.
    let file = cluster.state.provider.file_name().unwrap_or_default();
    if file.to_string_lossy().starts_with("libquorate") {
        options.push(format!("quorate.dir={}", node.log().display()));
    }
    let own = cluster.state.provider_options.trim_matches([';', ' ']);
    if !own.is_empty() {
        options.push(own.to_owned());
    }
    options.join(";")
}
