//! `quorate sql`, `quorate logs`: other programs, pointed at a node.

use super::require_running;
use crate::args::{Logs, Sql};
use crate::cluster::Cluster;
use crate::server::{find_program, missing};
use anyhow::{Context, Result};
use std::os::unix::process::CommandExt;
use std::process::Command;

pub fn sql(cluster: &Cluster, args: &Sql) -> Result<u8> {
    let node = cluster.find_server(&args.node)?;
    require_running(cluster, &node)?;
    let client = find_program("mariadb").ok_or_else(|| missing("mariadb", &["mariadb-client"]))?;
    let error = Command::new(client)
        .arg(format!("--defaults-file={}", node.config().display()))
        .arg(format!("--user={}", cluster.account.database_user()))
        .args(&args.arguments)
        .exec();
    Err(error).context("running the client mariadb")
}

pub fn logs(cluster: &Cluster, args: &Logs) -> Result<u8> {
    let node = cluster.find(&args.node)?;
    let lines = if args.lines == 0 { "+1".to_owned() } else { args.lines.to_string() };
    let mut command = Command::new("tail");
    command.arg("-n").arg(lines).args(args.follow.then_some("-F")).arg(node.error_log());
    Err(command.exec()).context("running tail")
}
