//! The subcommands.

mod agent;
mod appointed;
mod bench;
mod chaos;
mod check;
mod client;
mod down;
mod force;
mod history;
mod key;
mod member;
mod operator;
mod reinit;
mod secret;
mod setup;
mod status;
mod switchover;
mod up;
mod watch;

pub use chaos::Loopback;

use crate::args::{Cli, Command, Member, Short, Target};
use crate::cluster::{resolve_dir, Cluster, Lock, Node};
use crate::failure::{Failure, OK, USAGE};
use crate::remote::{only_here, Remote};
use anyhow::{bail, Result};
use serde_json::Value;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Runs the command and returns its exit code.
pub fn run(cli: Cli) -> Result<u8> {
    let dir = resolve_dir(cli.place.dir.as_deref())?;
    let before = cli.target.0;
    if !is_for_any_group(&cli.command) {
        only_here(&before)?;
    }
    // Another group, if one is meant, or the cluster in the directory.
    let group = |behind: &Target| {
        let target = behind.clone().or(before.clone());
        match Remote::of(&target)? {
            Some(remote) => Ok(remote),
            None => Remote::of_cluster(Cluster::open(&dir)?, &target),
        }
    };
    match cli.command {
        Command::Status(args) => status::status(&group(&args.target)?, args.json),
        Command::Watch(args) => watch::watch(|| group(&args.target)?.survey(), &args),
        Command::History(args) => history::history(&group(&args.target)?, &args),
        Command::Switchover(args) => switchover::switchover(|| group(&args.target), &args),
        Command::Pause(args) => member::pause(&group(&args.target)?, true, args.json),
        Command::Resume(args) => member::pause(&group(&args.target)?, false, args.json),
        Command::Member { target, json, what } => member::member(&group(&target)?, &what, json),
        Command::Rules(Short { what, json, target }) => {
            member::member(&group(&target)?, &Member::Rules(what), json)
        }
        Command::ForceQuorum(Short { what, json, target }) => {
            member::member(&group(&target)?, &Member::ForceQuorum(what), json)
        }
        Command::Reinit(Short { what, json, target }) => {
            member::member(&group(&target)?, &Member::Reinit(what), json)
        }
        Command::Cluster { what } => operator::cluster(&what, &before),
        Command::Up(args) => up::up(&dir, &args),
        Command::Down(args) => down::down(&dir, &args),
        Command::Start(args) => {
            let end = args.limit.end();
            let (mut cluster, lock) = lock(&dir, args.limit.timeout)?;
            let node = cluster.find(&args.node)?;
            up::start(&mut cluster, lock, vec![node], end)
        }
        Command::Stop(args) => {
            let (cluster, _lock) = lock(&dir, args.timeout)?;
            let node = cluster.find(&args.node)?;
            down::stop(&cluster, &[node], args.timeout, args.force)
        }
        Command::Restart(args) => {
            let limit = args.limit;
            let (mut cluster, lock) = lock(&dir, limit.timeout)?;
            let node = cluster.find(&args.node)?;
            match down::stop(&cluster, std::slice::from_ref(&node), limit.timeout, false)? {
                OK => up::start(&mut cluster, lock, vec![node], limit.end()),
                code => Ok(code),
            }
        }
        Command::Kill(args) => {
            let cluster = Cluster::open(&dir)?;
            let nodes: Vec<Node> =
                args.nodes.iter().map(|name| cluster.find(name)).collect::<Result<_>>()?;
            down::kill(&cluster, &nodes)
        }
        Command::Operator { what } => operator::operator(&what),
        Command::Key { what } => key::key(&what),
        Command::Secret { what } => secret::secret(&what),
        Command::Agent(args) => agent::agent(&args),
        Command::Check(args) => {
            let asks_group = args.asks_group() || before.is_given();
            check::check(&args, asks_group.then(|| group(&args.target)).transpose()?.as_ref())
        }
        Command::Setup(args) => setup::setup(&args),
        Command::Logger(args) => crate::logger::run(&args),
        Command::Sql(args) => client::sql(&Cluster::open(&dir)?, &args),
        Command::Chaos(args) => chaos::chaos(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Logs(args) => client::logs(&Cluster::open(&dir)?, &args),
    }
}

/// Others are for a cluster in a directory of this machine, or for none.
fn is_for_any_group(command: &Command) -> bool {
    matches!(
        command,
        Command::Status(_)
            | Command::Watch(_)
            | Command::History(_)
            | Command::Check(_)
            | Command::Switchover(_)
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Member { .. }
            | Command::Rules(_)
            | Command::ForceQuorum(_)
            | Command::Reinit(_)
            | Command::Cluster { .. }
    )
}

/// Most commands are done with a cluster in less, and `--timeout 0` is about servers.
const LOCK_SECONDS_MIN: u64 = 5;

/// Opens the cluster for starting or stopping its processes. Waits no longer than this for a command that does, too.
fn lock(dir: &Path, limit_secs: u64) -> Result<(Cluster, Lock)> {
    Cluster::open(dir)?;
    let lock = Lock::take(dir, limit_secs.max(LOCK_SECONDS_MIN))?;
    // Read again: a command that held the lock may have changed it.
    Ok((Cluster::open(dir)?, lock))
}

/// An error unless the node's process is there.
fn require_running(cluster: &Cluster, node: &Node) -> Result<crate::server::ProcessId> {
    match cluster.process(node) {
        Some(process) => Ok(process),
        None => bail!("{} does not run; start it with: quorate start {0}", node.name),
    }
}

/// Asks on the terminal, unless `yes` was said already. An error is a no.
fn agree(question: &str, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        let message = "nothing was changed: there is no terminal to ask on; --yes goes ahead";
        return Err(Failure::new(USAGE, message).into());
    }
    // What comes of it may be read by a program.
    eprint!("{question} [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}

/// What came of an order, for a person or a script.
fn say(json: bool, value: Value, text: impl FnOnce() -> String) -> Result<u8> {
    if json {
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        print!("{}", text());
    }
    Ok(OK)
}
