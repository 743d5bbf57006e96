//! `quorate switchover`

use super::{appointed, nobody_says, say};
use crate::args::Switchover;
use crate::cluster::{Cluster, Node};
use crate::sql;
use anyhow::Result;
use serde_json::json;
use std::time::Instant;

pub fn switchover(cluster: &Cluster, args: &Switchover) -> Result<u8> {
    let target = args.to.as_deref().map(|name| cluster.find_server(name)).transpose()?;
    appointed::wait(&args.when, "Switchover", || leader(cluster).map(drop))?;
    let leader = leader(cluster)?;
    if let Some(target) = target.as_ref().filter(|target| target.number == leader.number) {
        return say(args.json, json!({ "leader": target.name }), || {
            format!("{} leads already\n", target.name)
        });
    }
    let to = target.as_ref().map_or("any", |node| &node.name);
    let began = Instant::now();
    let user = cluster.account.database_user();
    sql::command(&leader.socket(), user, "quorate.switchover", to)?;
    let took_ms = began.elapsed().as_millis() as u64;
    let now = self::leader(cluster).map_or_else(|_| to.to_owned(), |node| node.name);
    let value = json!({ "leader": now, "former": leader.name, "took_ms": took_ms });
    say(args.json, value, || {
        format!("{now} leads now ({} did); it took {took_ms} ms\n", leader.name)
    })
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
