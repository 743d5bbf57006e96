//! A logger that the command runs: how it is started, and what it answers.

use crate::cluster::{Cluster, Node};
use crate::setup::provider::ProviderOptions;
use anyhow::Result;
use quorate_lab::server::{logger_arguments, runnable_program, secret_in};
use quorate_live::{parse_bool, query_status, Security};
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
    command.args(logger_arguments(&security(cluster)?));
    if let Some(key) = log_key(&cluster.state.provider_options) {
        command.arg("--encrypt-key-file").arg(key.file);
        command.args(key.only.then_some("--encrypt-only"));
    }
    cluster.account.run_as(command);
    Ok(())
}

/// What a running logger says of itself.
#[derive(Debug)]
pub struct LoggerStatus(HashMap<String, String>);

impl LoggerStatus {
    /// `None`: it does not answer, or is told what no logger starts with.
    pub fn ask(cluster: &Cluster, node: &Node) -> Option<LoggerStatus> {
        let lines = query_status(&node.group_address(), &security(cluster).ok()?).ok()?;
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

/// By what the members of the cluster know each other.
fn security(cluster: &Cluster) -> Result<Security> {
    let secret = secret_in(&cluster.dir);
    Ok(quorate_lab::server::security(&cluster.state.provider_options, secret.as_deref())?)
}

/// With what a log is encrypted.
#[derive(Debug, PartialEq, Eq)]
pub struct LogKey {
    file: PathBuf,
    /// Files in the clear are not read.
    only: bool,
}

/// What a server's provider options say of that; loggers of the cluster do as its servers do.
pub fn log_key(provider_options: &str) -> Option<LogKey> {
    let options = ProviderOptions::parse(provider_options);
    let file = PathBuf::from(options.get("quorate.encrypt_key_file")?);
    let encrypt = options.get("quorate.encrypt");
    let is_off = encrypt.and_then(parse_bool) == Some(false);
    (!is_off).then(|| LogKey { file, only: encrypt == Some("only") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logger_encrypts_as_the_servers_do() {
        let with = |only| Some(LogKey { file: "/k".into(), only });
        assert_eq!(log_key("quorate.encrypt_key_file=/k; base_port=1"), with(false));
        assert_eq!(log_key("quorate.encrypt=only;quorate.encrypt_key_file=/k"), with(true));
        assert_eq!(log_key("quorate.encrypt=no;quorate.encrypt_key_file=/k"), None);
        assert_eq!(log_key("quorate.encrypt_key_file="), None);
    }

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
}
