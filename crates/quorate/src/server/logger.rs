//! A logger that the command runs: how it is started, and what it answers.

use crate::cluster::{Cluster, Node};
use anyhow::Result;
use quorate_lab::server::runnable_program;
use quorate_live::{query_status, TlsOptions};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;

/// Adds program, arguments and account of the node's logger.
pub fn describe(command: &mut Command, cluster: &Cluster, node: &Node) -> Result<()> {
    let address = node.group_address();
    command
        .arg(runnable_program(&cluster.dir.join("lib"), &cluster.account)?)
        .args(["logger", "--name", &node.name, "--cluster-name", &cluster.state.name])
        .args(["--address", &address, "--listen", &address])
        .args(["--join", &cluster.group_addresses().join(",")])
        .arg("--log-dir")
        .arg(node.log());
    if let Some(tls) = encryption(&cluster.state.provider_options) {
        command.arg("--ssl-cert").arg(tls.cert).arg("--ssl-key").arg(tls.key);
        if let Some(ca) = tls.ca {
            command.arg("--ssl-ca").arg(ca);
        }
    }
    cluster.account.run_as(command);
    Ok(())
}

/// What a running logger says of itself.
#[derive(Debug)]
pub struct LoggerStatus(HashMap<String, String>);

impl LoggerStatus {
    /// `None`: it does not answer.
    pub fn ask(cluster: &Cluster, node: &Node) -> Option<LoggerStatus> {
        let tls = encryption(&cluster.state.provider_options);
        let lines = query_status(&node.group_address(), tls.as_ref()).ok()?;
        Some(LoggerStatus(lines.into_iter().collect()))
    }

    /// In the words that servers have for it.
    pub fn state(&self) -> &'static str {
        match (self.has_vote(), self.get("primary") == Some("true")) {
            (true, true) => "Synced",
            (true, false) => "Non-primary",
            (false, _) => "Joining",
        }
    }

    /// It counts for majorities, and is connected to one.
    pub fn is_synced(&self) -> bool {
        self.state() == "Synced"
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }

    fn has_vote(&self) -> bool {
        let (Some(own), Some(voters)) = (self.get("member"), self.get("voters")) else {
            return false;
        };
        voters.split(',').any(|voter| voter == own)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// The files that encrypt the group's connections, if the servers' provider options name any.
fn encryption(provider_options: &str) -> Option<TlsOptions> {
    let pairs = provider_options.split(';').filter_map(|pair| pair.split_once('='));
    let options: HashMap<&str, &str> =
        pairs.map(|(key, value)| (key.trim(), value.trim())).collect();
    let off = ["no", "off", "false", "0"];
    if options.get("socket.ssl").is_some_and(|on| off.contains(&on.to_lowercase().as_str())) {
        return None;
    }
    let path = |name| options.get(name).map(PathBuf::from);
    let (cert, key) = (path("socket.ssl_cert")?, path("socket.ssl_key")?);
    Some(TlsOptions { cert, key, ca: path("socket.ssl_ca"), dynamic: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logger_is_synced_when_it_has_a_vote_in_a_majority() {
        let status = |voters: &str, primary: &str| {
            let lines = [("member", "3"), ("voters", voters), ("primary", primary)];
            LoggerStatus(lines.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
        };
        assert_eq!(status("1,2,3", "true").state(), "Synced");
        assert_eq!(status("1,2,3", "false").state(), "Non-primary");
        assert_eq!(status("1,2,33", "true").state(), "Joining");
        assert_eq!(status("", "false").state(), "Joining");
    }

    #[test]
    fn a_logger_has_the_servers_certificates() {
        assert!(encryption("").is_none());
        assert!(encryption("socket.ssl=NO; socket.ssl_cert=/c; socket.ssl_key=/k").is_none());
        let tls = encryption("a=b; socket.ssl_cert=/c;socket.ssl_key = /k").unwrap();
        assert_eq!((tls.cert, tls.key, tls.ca), ("/c".into(), "/k".into(), None));
    }
}
