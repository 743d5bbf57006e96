//! What must be in place before a cluster's nodes can start.

use super::launch::prepare;
use crate::cluster::{Cluster, Node};
use anyhow::Result;
use quorate_lab::server;

/// Makes the datadirs of the nodes that have no data. Complete datadirs are kept: an interrupted
/// command may have begun a group on them.
pub fn make_datadirs(cluster: &Cluster) -> Result<()> {
    let nodes = cluster.servers().into_iter();
    let lacking: Vec<Node> = nodes.filter(|node| !server::has_data(node)).collect();
    for node in &lacking {
        prepare(cluster, node)?;
    }
    if lacking.is_empty() {
        return Ok(());
    }
    server::make_datadirs(&lacking, &cluster.dir.join("template"), &cluster.account)
}

/// Sets where the servers load the provider from.
pub fn place_provider(cluster: &mut Cluster) -> Result<()> {
    let folder = cluster.dir.join("lib");
    cluster.state.provider_loaded =
        server::readable_provider(&cluster.state.provider, &folder, &cluster.account)?;
    Ok(())
}
