//! A logger that the command runs: how it is started, and what it answers.

use crate::cluster::{Cluster, Node};
use anyhow::Result;
use quorate_lab::server::{names_security, runnable_program, secret_in};
use quorate_live::{query_status, SecretOptions, Security, TlsOptions};
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
    match security(cluster) {
        Security::ThisHost => {}
        Security::Insecure => _ = command.arg("--insecure"),
        Security::Secret(options) => _ = command.arg("--secret-file").arg(options.file),
        Security::Certificates(tls) => {
            command.arg("--ssl-cert").arg(tls.cert).arg("--ssl-key").arg(tls.key);
            if let Some(ca) = tls.ca {
                command.arg("--ssl-ca").arg(ca);
            }
            if let Some(crl) = tls.crl {
                command.arg("--ssl-crl").arg(crl);
            }
            if !tls.names.is_empty() {
                command.arg("--ssl-names").arg(tls.names.join(","));
            }
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
        let lines = query_status(&node.group_address(), &security(cluster)).ok()?;
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

/// By what the members of the cluster know each other.
fn security(cluster: &Cluster) -> Security {
    named_security(&cluster.state.provider_options).unwrap_or_else(|| {
        secret_in(&cluster.dir).map_or(Security::ThisHost, |file| {
            Security::Secret(SecretOptions { file, dynamic: false })
        })
    })
}

/// What the servers' provider options say of it.
fn named_security(provider_options: &str) -> Option<Security> {
    let pairs = provider_options.split(';').filter_map(|pair| pair.split_once('='));
    let options: HashMap<&str, &str> =
        pairs.map(|(key, value)| (key.trim(), value.trim())).collect();
    let is_off = |name: &str| {
        let off = ["no", "off", "false", "0"];
        options.get(name).is_some_and(|value| off.contains(&value.to_lowercase().as_str()))
    };
    let path = |name| options.get(name).map(PathBuf::from);
    if let Some(file) = path("quorate.secret_file") {
        return Some(Security::Secret(SecretOptions { file, dynamic: false }));
    }
    let names = options.get("quorate.ssl_names").map(|names| names.split(',').map(str::trim));
    let names: Vec<String> = names.into_iter().flatten().map(str::to_owned).collect();
    let pair = (path("socket.ssl_cert"), path("socket.ssl_key"));
    if let ((Some(cert), Some(key)), false) = (pair, is_off("socket.ssl")) {
        let tls = TlsOptions {
            cert,
            key,
            ca: path("socket.ssl_ca"),
            names,
            crl: path("socket.ssl_crl"),
            ciphers: String::new(),
            dynamic: false,
        };
        return Some(Security::Certificates(tls));
    }
    match options.contains_key("quorate.insecure") && !is_off("quorate.insecure") {
        true => Some(Security::Insecure),
        false => names_security(provider_options).then_some(Security::ThisHost),
    }
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
    fn a_logger_is_secured_like_the_servers() {
        assert_eq!(named_security("evs.suspect_timeout=PT1S"), None, "by the cluster's secret");
        let off = "socket.ssl=NO; socket.ssl_cert=/c; socket.ssl_key=/k";
        assert_eq!(named_security(off), Some(Security::ThisHost));
        let on = named_security("a=b; socket.ssl_cert=/c;socket.ssl_key = /k");
        let (cert, key) = ("/c".into(), "/k".into());
        let tls = TlsOptions {
            cert,
            key,
            ca: None,
            names: Vec::new(),
            crl: None,
            ciphers: String::new(),
            dynamic: false,
        };
        assert_eq!(on, Some(Security::Certificates(tls)));
        let secret = SecretOptions { file: "/s".into(), dynamic: false };
        assert_eq!(named_security("quorate.secret_file=/s"), Some(Security::Secret(secret)));
        assert_eq!(named_security("quorate.insecure=yes"), Some(Security::Insecure));
    }
}
