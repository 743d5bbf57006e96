//! `quorate up`, `start`: make a cluster, start what is stopped, wait until it is Synced.
//!
//! A new cluster: the system tables are installed once and copied to every node, node1 begins
//! the group, the others join at seqno 0, which their equal content stands for, so that nobody
//! needs a state transfer. Any later start: every node recovers its position and starts, all at
//! once; the group's log has the rest.

use crate::args::{Limit, Target, Up};
use crate::cluster::{self, check_free, Account, Cluster, Lock, Node, Role, State, DEFAULT_BASE};
use crate::failure::{Failure, FAILED, OK, TIMED_OUT, USAGE};
use crate::remote::Remote;
use crate::server::{self, Outcome, Start, Watched};
use crate::sql;
use crate::view::Progress;
use anyhow::{bail, Context, Result};
use quorate_lab::process::ProcessId;
use quorate_lab::server::make_secret;
use std::path::Path;
use std::thread;
use std::time::Instant;

const DEFAULT_NODES: u16 = 3;
const NODES_MAX: usize = 9;

pub fn up(dir: &Path, args: &Up) -> Result<u8> {
    bring_up(dir, args, false)
}

/// With `json` the caller has standard output for itself.
fn bring_up(dir: &Path, args: &Up, json: bool) -> Result<u8> {
    let end = args.limit.end();
    let existing = State::read(dir)?;
    let account = match &existing {
        Some(state) => Account::named(&state.account)?,
        None => Account::choose()?,
    };
    cluster::prepare(dir, &account)?;
    let lock = Lock::take(dir, args.limit.timeout)?;
    let mut cluster = open_or_new(dir, account, args)?;
    let progress = Progress::new();

    if cluster.state.group.is_none() {
        let code = found(&mut cluster, &progress, end)?;
        if code != OK {
            return Ok(code);
        }
    }
    let mut watched = Vec::new();
    if let Some(name) = &args.new_cluster_on {
        let node = cluster.find(name)?;
        let mut start = beginning(&cluster, &node)?;
        start.new_cluster = true;
        watched.push(server::launch(&mut cluster, &node, &start)?);
        let code = code_of(&server::wait_synced(&cluster, &mut watched, &progress, end));
        if code != OK {
            progress.say(&format!(
                "no other node is started, because {name} did not begin the cluster"
            ));
            return Ok(code);
        }
    }
    let nodes = cluster.nodes();
    start_and_watch(&mut cluster, lock, nodes, &progress, end, json)
}

/// Adds a member to an existing cluster. With `json` the caller has standard output for itself.
pub fn add(dir: &Path, role: Role, limit: Limit, json: bool) -> Result<u8> {
    let state = Cluster::open(dir)?.state;
    let one_more = |of| (role == of).then(|| state.count(of) + 1);
    let args = Up {
        nodes: one_more(Role::Voter),
        learners: one_more(Role::Learner),
        loggers: one_more(Role::Logger),
        base_port: None,
        provider: None,
        provider_options: None,
        mariadbd: None,
        limit,
        new_cluster_on: None,
    };
    bring_up(dir, &args, json)
}

/// Starts `nodes` of an existing cluster.
pub fn start(cluster: &mut Cluster, lock: Lock, nodes: Vec<Node>, end: Instant) -> Result<u8> {
    server::place_provider(cluster)?;
    if cluster.state.group.is_none() {
        bail!("{} was never completed: run `quorate up`", cluster.dir.display());
    }
    start_and_watch(cluster, lock, nodes, &Progress::new(), end, false)
}

/// Reads the cluster, or begins a new one, with what the arguments change.
fn open_or_new(dir: &Path, account: Account, args: &Up) -> Result<Cluster> {
    server::require_programs()?;
    let mut state = match State::read(dir)? {
        Some(state) => state,
        None => State::new(args.base_port.unwrap_or(DEFAULT_BASE), &account.name),
    };
    if let Some(port) = args.base_port.filter(|port| *port != state.base_port) {
        let message = format!(
            "the cluster in {} has its ports from {}, not {port}: they cannot be changed; leave \
             out --base-port, or make another cluster with --dir",
            dir.display(),
            state.base_port
        );
        return Err(Failure::new(USAGE, message).into());
    }
    match &args.provider {
        Some(path) => state.provider = server::find_provider(Some(path))?,
        None if state.provider.is_file() => {}
        None => state.provider = server::find_provider(None)?,
    }
    if let Some(options) = &args.provider_options {
        state.provider_options = options.clone();
    }
    match &args.mariadbd {
        Some(path) => state.mariadbd = std::path::absolute(path)?,
        None if state.mariadbd.is_file() => {}
        None => state.mariadbd = server::find_mariadbd()?,
    }
    let nodes = args.nodes.or(state.nodes.is_empty().then_some(DEFAULT_NODES));
    for (role, wanted, what) in [
        (Role::Voter, nodes, "nodes"),
        (Role::Learner, args.learners, "learners"),
        (Role::Logger, args.loggers, "loggers"),
    ] {
        let has = state.count(role);
        let wanted = wanted.unwrap_or(has);
        if wanted < has {
            let message = format!(
                "the cluster in {} has {has} {what}: --{what} can add nodes, not remove them",
                dir.display()
            );
            return Err(Failure::new(USAGE, message).into());
        }
        (has..wanted).for_each(|_| state.add_node(role));
    }
    if state.nodes.len() > NODES_MAX {
        let message = format!("{} nodes are more than {NODES_MAX}", state.nodes.len());
        return Err(Failure::new(USAGE, message).into());
    }
    let mut cluster = Cluster { dir: dir.to_owned(), account, state };
    // Nodes of a cluster from before there were secrets go on without one.
    if cluster.state.group.is_none() {
        make_secret(dir, &cluster.account)?;
    }
    server::place_provider(&mut cluster)?;
    cluster.save()?;
    Ok(cluster)
}

/// Makes the datadirs of a new cluster and begins its group on node1.
fn found(cluster: &mut Cluster, progress: &Progress, end: Instant) -> Result<u8> {
    let founder = cluster.node(1);
    let mut watched = match still_running(cluster, &founder, end)? {
        // An earlier command was interrupted here.
        Some(process) => vec![Watched::running(&founder, process)],
        None => {
            for node in cluster.nodes() {
                check_free(&node.name, &node.ports)?;
            }
            let line = progress.node("new cluster");
            line.stage("installing system tables");
            server::make_datadirs(cluster)?;
            line.done("system tables installed");
            let mut start = beginning(cluster, &founder)?;
            start.new_cluster = true;
            vec![server::launch(cluster, &founder, &start)?]
        }
    };
    let code = code_of(&server::wait_synced(cluster, &mut watched, progress, end));
    if code == OK {
        let status = sql::wsrep_status(&founder.socket(), cluster.account.database_user())
            .with_context(|| format!("asking {} for the group's identity", founder.name))?;
        let group = status.get("wsrep_cluster_state_uuid").context("node1 names no group")?;
        cluster.state.group = Some(group.to_owned());
        cluster.save()?;
    }
    Ok(code)
}

fn start_and_watch(
    cluster: &mut Cluster,
    lock: Lock,
    nodes: Vec<Node>,
    progress: &Progress,
    end: Instant,
    json: bool,
) -> Result<u8> {
    let mut watched: Vec<Watched> = Vec::new();
    let mut stopped = Vec::new();
    for node in nodes {
        match still_running(cluster, &node, end)? {
            Some(process) => watched.push(Watched::running(&node, process)),
            None => stopped.push(node),
        }
    }
    for node in &stopped {
        check_free(&node.name, &node.ports)?;
        server::prepare(cluster, node)?;
    }
    let starts = beginnings(cluster, &stopped, progress);
    let mut outcomes = Vec::new();
    for (node, start) in stopped.iter().zip(starts) {
        match start.and_then(|start| server::launch(cluster, node, &start)) {
            Ok(server) => watched.push(server),
            Err(error) => {
                progress.say(&format!("{error:#}"));
                outcomes.push(Outcome::Failed);
            }
        }
    }
    watched.sort_by_key(|server| server.node.number);
    drop(lock);

    outcomes.extend(server::wait_synced(cluster, &mut watched, progress, end));
    if !json {
        print!("{}", Remote::of_cluster(cluster.clone(), &Target::default())?.survey()?);
        if let Some(server) = watched.iter().find(|server| !cluster.is_logger(&server.node)) {
            println!("\nConnect: {}", connect_command(cluster, &server.node));
        }
    }
    Ok(code_of(&outcomes))
}

/// The node's process. One that was killed a moment ago counts as gone, and is waited for: it may
/// still be in a write, with its ports and locks.
fn still_running(cluster: &Cluster, node: &Node, end: Instant) -> Result<Option<ProcessId>> {
    let Some(process) = cluster.process(node) else { return Ok(None) };
    if !process.is_ending() {
        return Ok(Some(process));
    }
    if !process.wait_gone(end.saturating_duration_since(Instant::now()))? {
        let message = format!(
            "{}: process {} was killed but does not end, so the node cannot be started; a disk \
             that hangs can be the cause: see what the kernel says of it, then `quorate up` again",
            node.name, process.pid
        );
        return Err(Failure::new(TIMED_OUT, message).into());
    }
    Ok(None)
}

/// Where nodes that are not running stand, all recovered at once; of loggers nothing is recovered.
/// One that cannot be (its disk, say) keeps no other from starting.
fn beginnings(cluster: &Cluster, nodes: &[Node], progress: &Progress) -> Vec<Result<Start>> {
    if nodes.iter().all(|node| cluster.is_logger(node)) {
        return nodes.iter().map(|_| Ok(Start::default())).collect();
    }
    let line = progress.node("positions");
    line.stage("recovering, from each node's own data");
    let starts = thread::scope(|scope| {
        let recoveries: Vec<_> =
            nodes.iter().map(|node| scope.spawn(move || beginning(cluster, node))).collect();
        recoveries.into_iter().map(|r| r.join().expect("a recovery thread panicked")).collect()
    });
    line.done("recovered");
    starts
}

/// Where a node that is not running stands.
pub fn beginning(cluster: &Cluster, node: &Node) -> Result<Start> {
    let state = &cluster.state;
    Start::of(node, &cluster.account, &state.mariadbd, state.group.as_deref())
}

fn connect_command(cluster: &Cluster, node: &Node) -> String {
    format!("mariadb -u {} -S {}", cluster.account.database_user(), node.socket().display())
}

/// One that failed needs a hand; one that is late may need but time.
fn code_of(outcomes: &[Outcome]) -> u8 {
    match () {
        () if outcomes.contains(&Outcome::Failed) => FAILED,
        () if outcomes.contains(&Outcome::TimedOut) => TIMED_OUT,
        () => OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_failed_counts_before_one_that_is_late() {
        use Outcome::{Failed, Synced, TimedOut};
        assert_eq!(code_of(&[Synced, TimedOut, Failed]), FAILED);
        assert_eq!(code_of(&[Failed, TimedOut]), FAILED);
        assert_eq!(code_of(&[Synced, TimedOut]), TIMED_OUT);
        assert_eq!(code_of(&[Synced]), OK);
        assert_eq!(code_of(&[]), OK);
    }
}
