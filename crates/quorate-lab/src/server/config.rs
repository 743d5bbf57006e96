//! A node's `my.cnf`.

use super::{security, transfer_options, Account, Node};
use anyhow::{Context, Result};
use quorate_live::Security;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// What every server of a group is to have: `quorate up`, all tests and measurements run with it, and
/// README.md tells users to. (What a test changes, its extra options say.)
pub const SERVER_OPTIONS: [(&str, &str); 9] = [
    // What replication by write sets needs.
    ("wsrep_on", "ON"),
    ("binlog_format", "ROW"),
    ("default_storage_engine", "InnoDB"),
    ("innodb_autoinc_lock_mode", "2"),
    // Write sets that do not touch the same rows are applied at the same time.
    ("wsrep_slave_threads", "4"),
    // DDL that fails is voted on: with the default of 7 a server whose disk is full goes on without the
    // table. What is left: what is to be dropped or deleted, and is not there, need not be.
    ("wsrep_ignore_apply_errors", "3"),
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
    /// By what the nodes know each other, unless those options say it.
    pub secret: Option<&'a Path>,
    pub account: &'a Account,
}

impl Settings<'_> {
    /// Writes the `my.cnf` of `node`. `extra`: a file of server options that is read last.
    pub fn write(&self, node: &Node, extra: &Path) -> Result<()> {
        let extra = extra.display();
        let head =
            format!("# Written by `quorate` at each start. Your own options belong in {extra}.\n");
        let security = self.security()?;
        let options = [common_options(node), self.own_options(node, security.as_ref())].concat();
        let transfers = security.map(|security| transfer_options(&security, &node.log()));
        let transfers = transfers.unwrap_or_default().into_iter();
        let transfers: String =
            transfers.map(|(name, value)| format!("{name} = {value}\n")).collect();
        let tail = format!("[sst]\n{transfers}\n!include {extra}\n");
        write_config(node, self.account, &head, &options, &tail)
    }

    /// What the node gets beside [`common_options`].
    pub fn options(&self, node: &Node) -> Result<Vec<(String, String)>> {
        Ok(self.own_options(node, self.security()?.as_ref()))
    }

    /// By what the nodes know each other. Galera's have other rules.
    fn security(&self) -> Result<Option<Security>> {
        let file = self.provider.file_name().unwrap_or_default();
        let ours = file.to_string_lossy().starts_with("libquorate");
        Ok(ours.then(|| security(self.provider_options, self.secret)).transpose()?)
    }

    fn own_options(&self, node: &Node, security: Option<&Security>) -> Vec<(String, String)> {
        let (host, ports) = (node.host, node.ports);
        let own = [
            ("wsrep_provider", self.provider.display().to_string()),
            ("wsrep_cluster_name", self.cluster.to_owned()),
            ("wsrep_cluster_address", format!("gcomm://{}", self.group.join(","))),
            ("wsrep_node_name", node.name.clone()),
            ("wsrep_node_address", format!("{host}:{}", ports.group)),
            ("wsrep_node_incoming_address", format!("{host}:{}", ports.client)),
            ("wsrep_provider_options", format!("\"{}\"", self.provider_options(node, security))),
            ("wsrep_sst_method", "mariabackup".to_owned()),
            ("wsrep_sst_receive_address", format!("{host}:{}", ports.sst)),
            ("wsrep_sst_auth", format!("{}:", self.account.name)),
        ];
        let of_all = SERVER_OPTIONS.map(|(name, value)| (name, value.to_owned()));
        let named = of_all.into_iter().chain(own);
        named.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn provider_options(&self, node: &Node, security: Option<&Security>) -> String {
        let mut options = vec![
            format!("base_host={}", node.host),
            format!("base_port={}", node.ports.group),
            format!("gmcast.listen_addr=tcp://{}", node.group_address()),
            format!("ist.recv_addr={}:{}", node.host, node.ports.ist),
        ];
        // Galera refuses options that it does not know.
        if let Some(security) = security {
            options.push(format!("quorate.dir={}", node.log().display()));
            // Said once: the nodes' own options come below.
            match (security, self.secret) {
                (Security::Secret(used), Some(file)) if used.file == file => {
                    options.push(format!("quorate.secret_file={}", file.display()));
                }
                _ => {}
            }
        }
        let own = self.provider_options.trim_matches([';', ' ']);
        if !own.is_empty() {
            options.push(own.to_owned());
        }
        options.join(";")
    }
}

/// What every server gets, whatever replicates: its places, its address, and the size of its caches.
pub fn common_options(node: &Node) -> Vec<(String, String)> {
    let show = |path: &Path| path.display().to_string();
    let options = [
        ("datadir", show(&node.data())),
        ("socket", show(&node.socket())),
        ("pid-file", show(&node.pid_file())),
        ("log-error", show(&node.error_log())),
        ("tmpdir", show(&node.tmp())),
        ("bind-address", node.host.to_string()),
        ("port", node.ports.client.to_string()),
        ("skip-name-resolve", "ON".to_owned()),
        // The 512 clients of published measurements, and who looks on.
        ("max_connections", "600".to_owned()),
        ("innodb_buffer_pool_size", "128M".to_owned()),
    ];
    options.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Writes a `my.cnf`: `head`, where scripts of state transfers keep their logs (in `/tmp`, if they are
/// not told), how clients find the server, the server's options, `tail`.
pub fn write_config(
    node: &Node,
    account: &Account,
    head: &str,
    options: &[(String, String)],
    tail: &str,
) -> Result<()> {
    let lines: String = options.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    let (socket, user) = (node.socket(), account.database_user());
    let text = format!(
        "{head}[sst]\nsst-log-archive-dir = {}\n\n[client]\nsocket = {}\nuser = {user}\n\n\
         [mysqld]\n{lines}\n{tail}",
        node.dir.join("transfer-logs").display(),
        socket.display()
    );
    let path = node.config();
    replace(&path, &text, account).with_context(|| format!("writing {}", path.display()))
}

/// The folder is the account's: what lies under either name there may be a link to another file.
fn replace(path: &Path, text: &str, account: &Account) -> Result<()> {
    let new = path.with_extension("cnf.new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut file = File::create_new(&new)?;
    account.own_file(&file, &new, 0o640)?;
    file.write_all(text.as_bytes())?;
    Ok(fs::rename(new, path)?)
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
        let block = block.split_once("[sst]").map_or(block, |(server, _)| server);
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
            ("install.md", include_str!("../../../../docs/run/install.md")),
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
