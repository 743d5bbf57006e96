//! `quorate member`: who belongs to the group, with which role and priority.

use super::remote::cut_off;
use super::switchover::leader;
use super::{down, lock, nobody_says, say, up};
use crate::args::{Force, Limit, Member, MemberRole, MemberSet};
use crate::cluster::{Cluster, Node};
use crate::failure::{Failure, FAILED, OK, USAGE};
use crate::view;
use anyhow::{Context, Result};
use quorate_lab::server::sql;
use serde_json::json;
use std::collections::BTreeMap;
use std::{fs, io};

const COLUMNS: [(&str, &str); 6] = [
    ("NAME", "name"),
    ("ROLE", "role"),
    ("PRIORITY", "priority"),
    ("VOTES", "votes"),
    ("ZONE", "zone"),
    ("ADDRESS", "addr"),
];

pub fn member(cluster: &Cluster, what: &Member, json: bool) -> Result<u8> {
    match what {
        Member::List => list(cluster, None, json),
        Member::Add { role, limit } => match up::add(&cluster.dir, *role, *limit)? {
            OK => list(&Cluster::open(&cluster.dir)?, None, json),
            code => Ok(code),
        },
        Member::SetRole { name, role } => {
            let (name, role) = (name.clone(), Some(*role));
            set(cluster, &MemberSet { name, role, priority: None, zone: None }, json)
        }
        Member::Set(args) => set(cluster, args, json),
        Member::Remove { name } => {
            let leader = leader(cluster)?;
            order(cluster, &leader, "quorate.member_remove", name)?;
            list(cluster, Some(leader), json)
        }
        Member::Reinit { name, limit } => reinit(cluster, name, *limit),
        Member::Isolate { name, end } => {
            let node = cluster.find_server(name)?;
            order(cluster, &node, "gmcast.isolate", if *end { "0" } else { "1" })?;
            say(json, json!({ "member": node.name }), || cut_off(&node.name, *end))
        }
        Member::Rules {
            zones,
            priorities,
            primary_mode,
            primary_failover,
            leader_follows_writes,
            consistency,
        } => {
            let zones = zones.map(|zones| zones.to_string());
            let given = [
                ("zones", &zones),
                ("priorities", priorities),
                ("primary_mode", primary_mode),
                ("primary_failover", primary_failover),
                ("leader_follows_writes", leader_follows_writes),
                ("consistency", consistency),
            ];
            let words = given
                .iter()
                .filter_map(|(name, value)| value.as_ref().map(|value| format!("{name}={value}")));
            let words: Vec<String> = words.collect();
            let rules = match words.is_empty() {
                true => known(cluster, None, "wsrep_quorate_rules")?,
                false => order(cluster, &leader(cluster)?, "quorate.rules", &words.join(" "))?,
            };
            say(json, json!({ "rules": fields(&rules) }), || format!("{rules}\n"))
        }
        Member::ForceQuorum(args) => force(cluster, args, json),
    }
}

/// As [`super::remote::pause`].
pub fn pause(cluster: &Cluster, paused: bool, json: bool) -> Result<u8> {
    let word = if paused { "paused=yes" } else { "paused=no" };
    let rules = order(cluster, &leader(cluster)?, "quorate.rules", word)?;
    say(json, json!({ "rules": fields(&rules) }), || format!("{rules}\n"))
}

/// Its service does the second half elsewhere.
fn reinit(cluster: &Cluster, name: &str, limit: Limit) -> Result<u8> {
    let (mut cluster, lock) = lock(&cluster.dir)?;
    let node = cluster.find_server(name)?;
    let refused = |reason: &str| {
        let message = format!("{} keeps its data: {reason}. Nothing was changed", node.name);
        Err(Failure::new(FAILED, message).into())
    };
    if leader(&cluster)?.number == node.number {
        return refused("it leads the group; hand leadership over first (quorate switchover)");
    }
    let user = cluster.account.database_user();
    let synced = |other: &Node| {
        sql::wsrep_status(&other.socket(), user).is_ok_and(|status| status.is_synced())
    };
    let others = cluster.servers().into_iter().filter(|other| other.number != node.number);
    if !others.into_iter().any(|other| synced(&other)) {
        return refused("no other server is Synced that it could fetch the data from");
    }
    match down::stop(&cluster, std::slice::from_ref(&node), limit.timeout, true)? {
        OK => {
            let position = node.data().join("grastate.dat");
            match fs::remove_file(&position) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("removing {}", position.display()))
                }
                _ => {}
            }
            up::start(&mut cluster, lock, vec![node], limit)
        }
        code => Ok(code),
    }
}

fn set(cluster: &Cluster, args: &MemberSet, json: bool) -> Result<u8> {
    let mut words = vec![args.name.clone()];
    words.extend(args.role.map(|role| match role {
        MemberRole::Voter => "role=voter".to_owned(),
        MemberRole::Learner => "role=learner".to_owned(),
    }));
    words.extend(args.priority.map(|priority| format!("priority={priority}")));
    words.extend(args.zone.as_ref().map(|zone| format!("zone={zone}")));
    let leader = leader(cluster)?;
    order(cluster, &leader, "quorate.member_set", &words.join(" "))?;
    list(cluster, Some(leader), json)
}

/// Shows what would be done; does it only if it is confirmed. Where it would be refused, that is an error.
fn force(cluster: &Cluster, args: &Force, json: bool) -> Result<u8> {
    let first = args.keep.first().context("name the nodes to keep: --keep NODE,NODE")?;
    let node = cluster.find_server(first)?;
    let names: Vec<String> =
        args.keep.iter().map(|name| Ok(cluster.find(name)?.name)).collect::<Result<_>>()?;
    let names = names.join(",");
    let plan = order(cluster, &node, "quorate.force_plan", &names)?;
    if !json {
        println!("{}: {plan}", node.name);
    }
    let done = match &args.reason {
        Some(reason) => {
            let order_text = format!("{names}: {reason}");
            Some(order(cluster, &node, "quorate.force_quorum", &order_text)?)
        }
        None => None,
    };
    let last = match &done {
        Some(done) => format!("done: {done}\n"),
        None => "Nothing was changed. To do it: add --reason 'WHY', which is kept in the log.\n"
            .to_owned(),
    };
    say(json, json!({ "plan": plan, "done": done }), || last)?;
    match done {
        Some(_) if !json => list(cluster, Some(node), json),
        _ => Ok(OK),
    }
}

/// As the node knows it that has just carried out an order: others may learn of it later.
fn list(cluster: &Cluster, by: Option<Node>, json: bool) -> Result<u8> {
    let text = known(cluster, by, "wsrep_quorate_members")?;
    let each: Vec<_> = text.split("; ").map(fields).collect();
    say(json, json!({ "members": each }), || members(&text))
}

/// `name=value name=value`
fn fields(text: &str) -> BTreeMap<&str, &str> {
    text.split(' ').filter_map(|field| field.split_once('=')).collect()
}

/// What a node knows of the group: this one, or the leader, or else the first that answers.
fn known(cluster: &Cluster, by: Option<Node>, variable: &str) -> Result<String> {
    let user = cluster.account.database_user();
    let best = by.or_else(|| leader(cluster).ok());
    let found = best.into_iter().chain(cluster.servers()).find_map(|node| {
        let status = sql::wsrep_status(&node.socket(), user).ok()?;
        status.get(variable).filter(|text| !text.is_empty()).map(str::to_owned)
    });
    found.ok_or_else(|| {
        nobody_says(cluster, "no node answers, so nobody can say who belongs to the group")
    })
}

fn members(text: &str) -> String {
    let head = COLUMNS.map(|(title, _)| title.to_owned());
    let rows = text.split("; ").map(|member| {
        let fields = fields(member);
        let mut row = COLUMNS.map(|(_, name)| fields.get(name).copied().unwrap_or("").to_owned());
        if fields.get("joining") == Some(&"true") {
            row[1].push_str(" (joining)");
        }
        row
    });
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(rows).collect();
    view::table::table(&rows)
}

/// The node's answer to an order.
fn order(cluster: &Cluster, node: &Node, name: &str, text: &str) -> Result<String> {
    let user = cluster.account.database_user();
    if text.contains(['\'', '\\', ';']) {
        let message = format!("'{text}' must not contain ' or \\ or ;");
        return Err(Failure::new(USAGE, message).into());
    }
    sql::command(&node.socket(), user, name, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_each_member_in_its_line() {
        let text = "name=n1 role=voter priority=50 votes=1 joining=false zone= addr=a:1 id=x; \
                    name=long role=logger priority=0 votes=1 joining=true zone=eu addr=b:22 id=y";
        assert_eq!(
            members(text),
            "NAME  ROLE              PRIORITY  VOTES  ZONE  ADDRESS\n\
             n1    voter             50        1            a:1\n\
             long  logger (joining)  0         1      eu    b:22\n"
        );
    }
}
