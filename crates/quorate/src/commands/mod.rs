//! The subcommands.

mod agent;
mod appointed;
mod bench;
mod chaos;
mod check;
mod client;
mod down;
mod history;
mod key;
mod member;
mod operator;
mod remote;
mod secret;
mod setup;
mod status;
mod switchover;
mod up;
mod watch;

pub use chaos::Loopback;

use crate::args::{Cli, Command, Target};
use crate::cluster::{resolve_dir, Cluster, Lock, Node};
use crate::failure::{Failure, NO_PERMISSION, NO_PRIMARY, OK, USAGE};
use crate::remote::{only_here, Remote};
use crate::sql;
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
    let elsewhere = |behind: &Target| Remote::of(&behind.clone().or(before.clone()));
    match cli.command {
        Command::Status(args) => match elsewhere(&args.target)? {
            Some(remote) => remote::status(&remote, args.json),
            None => status::status(&dir, &args),
        },
        Command::Watch(args) => watch::watch(elsewhere(&args.target)?.as_ref(), &dir, &args),
        Command::History(args) => {
            let remote = match elsewhere(&args.target)? {
                Some(remote) => remote,
                None => Remote::of_cluster(&Cluster::open(&dir)?)?,
            };
            history::history(&remote, &args)
        }
        Command::Switchover(args) => match elsewhere(&args.target)? {
            Some(remote) => remote::switchover(&remote, &args),
            None => switchover::switchover(&Cluster::open(&dir)?, &args),
        },
        Command::Pause(args) => pause(elsewhere(&args.target)?, &dir, true, args.json),
        Command::Resume(args) => pause(elsewhere(&args.target)?, &dir, false, args.json),
        Command::Member { target, json, what } => match elsewhere(&target)? {
            Some(remote) => remote::member(&remote, &what, json),
            None => member::member(&Cluster::open(&dir)?, &what, json),
        },
        Command::Cluster { what } => operator::cluster(&what, &before),
        Command::Up(args) => up::up(&dir, &args),
        Command::Down(args) => down::down(&dir, &args),
        Command::Start(args) => {
            let (mut cluster, lock) = lock(&dir)?;
            let node = cluster.find(&args.node)?;
            up::start(&mut cluster, lock, vec![node], args.limit)
        }
        Command::Stop(args) => {
            let (cluster, _lock) = lock(&dir)?;
            let node = cluster.find(&args.node)?;
            down::stop(&cluster, &[node], args.timeout, args.force)
        }
        Command::Restart(args) => {
            let (mut cluster, lock) = lock(&dir)?;
            let node = cluster.find(&args.node)?;
            match down::stop(&cluster, std::slice::from_ref(&node), args.limit.timeout, false)? {
                OK => up::start(&mut cluster, lock, vec![node], args.limit),
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
        Command::Check(args) => check::check(&args),
        Command::Setup(args) => setup::setup(&args),
        Command::Logger(args) => crate::logger::run(&args),
        Command::Sql(args) => client::sql(&Cluster::open(&dir)?, &args),
        Command::Chaos(args) => chaos::chaos(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Logs(args) => client::logs(&Cluster::open(&dir)?, &args),
    }
}

fn pause(remote: Option<Remote>, dir: &Path, paused: bool, json: bool) -> Result<u8> {
    match remote {
        Some(remote) => remote::pause(&remote, paused, json),
        None => member::pause(&Cluster::open(dir)?, paused, json),
    }
}

/// Others are for a cluster in a directory of this machine, or for none.
fn is_for_any_group(command: &Command) -> bool {
    matches!(
        command,
        Command::Status(_)
            | Command::Watch(_)
            | Command::History(_)
            | Command::Switchover(_)
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Member { .. }
            | Command::Cluster { .. }
    )
}

/// Opens the cluster for starting or stopping its processes.
fn lock(dir: &Path) -> Result<(Cluster, Lock)> {
    Cluster::open(dir)?;
    let lock = Lock::take(dir)?;
    // Read again: a command that held the lock may have changed it.
    Ok((Cluster::open(dir)?, lock))
}

/// Why no node says what was asked of all: `otherwise`, unless this account may not ask them.
fn nobody_says(cluster: &Cluster, otherwise: &str) -> anyhow::Error {
    let failure = no_permission(cluster);
    failure.unwrap_or_else(|| Failure::new(NO_PRIMARY, otherwise)).into()
}

/// If a server refuses to be asked by this account.
fn no_permission(cluster: &Cluster) -> Option<Failure> {
    let user = cluster.account.database_user();
    let refuses = |node: Node| {
        let error = sql::wsrep_status(&node.socket(), user).err()?;
        sql::is_denied(&error).then(|| {
            let (name, account) = (node.name, &cluster.account.name);
            let message = format!(
                "this account may not ask {name} ({error}), so how the cluster is, is not known: run the \
                 command as root, or as {account}, whose servers they are"
            );
            Failure::new(NO_PERMISSION, message)
        })
    };
    cluster.servers().into_iter().find_map(refuses)
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
    print!("{question} [y/N] ");
    io::stdout().flush()?;
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
