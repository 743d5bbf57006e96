//! The cluster in a directory of this machine: what its members say of the group, and what no port tells, which is nodes
//! that do not run, and nodes that say nothing there.

use super::asked::{best, gather, Answers};
use super::survey::{Health, Here, NodeSurvey, Survey, LOGGER, NO_ANSWER};
use crate::cluster::{Cluster, Node};
use crate::failure::{Failure, NO_PERMISSION};
use crate::server::{Activity, LoggerStatus};
use crate::sql::{self, WsrepStatus};
use anyhow::Result;
use quorate_live::port::{Operating, Unanswered};
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// States of a node that no port tells.
pub const DOWN: &str = "Down";
pub const STOPPED: &str = "Paused";
const FORBIDDEN: &str = "No permission";

/// The nodes in their order, then members of the group that are elsewhere. `seeds`: those that can be asked.
pub fn survey(cluster: &Cluster, seeds: &[String], operating: &Arc<Operating>) -> Result<Survey> {
    let mut answers = Answers::new();
    for node in cluster.nodes() {
        let why = match cluster.activity(&node) {
            Activity::Running => continue,
            Activity::Paused => "its process is stopped (SIGSTOP)",
            Activity::Gone => "its process does not run",
        };
        answers.insert(node.group_address(), Err(Unanswered::NotReached(why.to_owned())));
    }
    gather(seeds, &mut answers, operating);
    let mut survey = match best(&answers) {
        Some(known) => Survey::of(known, &answers),
        None => Survey::unknown(&cluster.state.name),
    };
    let mut members = std::mem::take(&mut survey.nodes);
    survey.nodes = thread::scope(|scope| {
        let place = |node: Node| {
            let (member, answers) = (take(&mut members, &node), &answers);
            scope.spawn(move || placed(cluster, &node, member, answers))
        };
        let placing: Vec<_> = cluster.nodes().into_iter().map(place).collect();
        placing.into_iter().map(|node| node.join().expect("it does not panic")).collect()
    });
    survey.nodes.append(&mut members);
    survey.dir = Some(cluster.dir.clone());
    let survey = survey.judged();
    match survey.nodes.iter().find(|node| node.state == FORBIDDEN) {
        Some(node) if survey.health == Health::NoPrimary => Err(forbidden(cluster, &node.name)),
        _ => Ok(survey),
    }
}

/// The member at the node's address; rather one that answers than what it was before it lost its log.
fn take(members: &mut Vec<NodeSurvey>, node: &Node) -> Option<NodeSurvey> {
    let address = node.group_address();
    let is_at = |member: &NodeSurvey| member.member.as_ref().is_some_and(|m| m.address == address);
    let found = members.iter().enumerate().filter(|(_, member)| is_at(member));
    let at = found.max_by_key(|(_, member)| member.own.is_some()).map(|(at, _)| at)?;
    Some(members.remove(at))
}

/// What its member says, with what is known of its process.
fn placed(
    cluster: &Cluster,
    node: &Node,
    member: Option<NodeSurvey>,
    answers: &Answers,
) -> NodeSurvey {
    let is_logger = cluster.is_logger(node);
    let silent = answers.get(&node.group_address()).and_then(|answer| answer.as_ref().err());
    let mut shown = member.unwrap_or_else(|| NodeSurvey {
        name: node.name.clone(),
        role: is_logger.then(|| LOGGER.to_owned()),
        unanswered: silent.map(Unanswered::to_string),
        ..NodeSurvey::default()
    });
    let activity = cluster.activity(node);
    match activity {
        Activity::Running if shown.own.is_some() => {}
        Activity::Running if is_logger => {
            let status = LoggerStatus::ask(cluster, node);
            shown.state = status.map_or(NO_ANSWER, |status| status.state()).to_owned();
        }
        Activity::Running => by_sql(&mut shown, node, cluster.account.database_user()),
        Activity::Paused | Activity::Gone => {
            shown.state = if activity == Activity::Gone { DOWN } else { STOPPED }.to_owned();
            // Others may not have noticed yet.
            shown.role = shown.role.filter(|_| is_logger);
        }
    }
    shown.address = (!is_logger).then(|| node.address());
    shown.log_bytes = shown.log_bytes.or_else(|| folder_bytes(&node.log()));
    let pid = cluster.process(node).map(|process| process.pid);
    shown.here = Some(Here { pid, socket: (!is_logger).then(|| node.socket()) });
    shown
}

/// A server whose provider is another one, has not joined yet, or does not let this operator in.
fn by_sql(shown: &mut NodeSurvey, node: &Node, user: &str) {
    let status = match sql::wsrep_status(&node.socket(), user) {
        Ok(status) => status,
        Err(error) => {
            let denied = sql::is_denied(&error);
            shown.state = if denied { FORBIDDEN } else { NO_ANSWER }.to_owned();
            return;
        }
    };
    shown.state = WsrepStatus::state(&status).to_owned();
    shown.ready = status.is_ready();
    shown.seqno = status.number("wsrep_last_committed").filter(|seqno| *seqno >= 0);
    shown.role = status.get("wsrep_quorate_role").filter(|role| *role != "None").map(str::to_owned);
}

fn forbidden(cluster: &Cluster, node: &str) -> anyhow::Error {
    let account = &cluster.account.name;
    let message = format!(
        "this account may not ask {node}, so how the cluster is, is not known: run the command as root, or as \
         {account}, whose servers they are"
    );
    Failure::new(NO_PERMISSION, message).into()
}

/// Space that the files of a folder take on disk; `None` if there is no such folder.
fn folder_bytes(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    const BLOCK_BYTES: u64 = 512;
    let entries = folder.read_dir().ok()?;
    Some(
        entries.flatten().filter_map(|e| e.metadata().ok()).map(|m| m.blocks() * BLOCK_BYTES).sum(),
    )
}

#[cfg(test)]
mod tests;
