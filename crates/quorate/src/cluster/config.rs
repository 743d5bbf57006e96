//! A node's `my.cnf`.

use super::{Cluster, Node};
use anyhow::{Context, Result};
use quorate_lab::server::{secret_in, Settings};
use std::fs;
use std::io::Write;

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

    let state = &cluster.state;
    let learns = state.nodes[usize::from(node.number) - 1].learner;
    let role = if learns { "quorate.role=learner;" } else { "" };
    Settings {
        cluster: &state.name,
        group: &cluster.group_addresses(),
        provider: &state.provider_loaded,
        provider_options: &format!("{role}{}", state.provider_options),
        secret: secret_in(&cluster.dir).as_deref(),
        account: &cluster.account,
    }
    .write(node, &extra)
}
