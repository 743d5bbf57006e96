//! `quorate switchover`

use super::nobody_says;
use crate::args::Switchover;
use crate::cluster::{Cluster, Node};
use crate::failure::OK;
use crate::sql;
use anyhow::Result;
use std::time::Instant;

pub fn switchover(cluster: &Cluster, args: &Switchover) -> Result<u8> {
    let target = args.to.as_deref().map(|name| cluster.find_server(name)).transpose()?;
    let leader = leader(cluster)?;
    if let Some(target) = target.as_ref().filter(|target| target.number == leader.number) {
        println!("{} leads already", target.name);
        return Ok(OK);
    }
    let to = target.as_ref().map_or("any", |node| &node.name);
    let began = Instant::now();
    let user = cluster.account.database_user();
    sql::command(&leader.socket(), user, "quorate.switchover", to)?;
    let took = began.elapsed().as_millis();
    let now = self::leader(cluster).map_or_else(|_| to.to_owned(), |node| node.name);
    println!("{now} leads now ({} did); it took {took} ms", leader.name);
    Ok(OK)
}

/// The node that says it leads.
pub fn leader(cluster: &Cluster) -> Result<Node> {
    let user = cluster.account.database_user();
    let leads =
        |node: &Node| sql::wsrep_status(&node.socket(), user).is_ok_and(|status| status.leads());
    cluster.servers().into_iter().find(leads).ok_or_else(|| {
        let message = "no node leads: fewer than a majority run, or an election is under way. See \
            `quorate status`; no data is affected";
        nobody_says(cluster, message)
    })
}
