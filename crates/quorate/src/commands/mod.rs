//! The subcommands.

mod bench;
mod chaos;
mod client;
mod down;
mod key;
mod member;
mod secret;
mod setup;
mod status;
mod switchover;
mod up;

pub use chaos::Loopback;

use crate::args::{Cli, Command};
use crate::cluster::{resolve_dir, Cluster, Lock, Node};
use crate::failure::{Failure, USAGE};
use anyhow::{bail, Result};
use std::io::{self, IsTerminal, Write};

/// Runs the command and returns its exit code.
pub fn run(cli: Cli) -> Result<u8> {
    let dir = resolve_dir(cli.place.dir.as_deref())?;
    match cli.command {
        Command::Up(args) => up::up(&dir, &args),
        Command::Status(args) => status::status(&dir, &args),
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
                crate::failure::OK => up::start(&mut cluster, lock, vec![node], args.limit),
                code => Ok(code),
            }
        }
        Command::Kill(args) => {
            let cluster = Cluster::open(&dir)?;
            let nodes: Vec<Node> =
                args.nodes.iter().map(|name| cluster.find(name)).collect::<Result<_>>()?;
            down::kill(&cluster, &nodes)
        }
        Command::Member { what } => member::member(&Cluster::open(&dir)?, &what),
        Command::Key { what } => key::key(&what),
        Command::Secret { what } => secret::secret(&what),
        Command::Setup(args) => setup::setup(&args),
        Command::Logger(args) => crate::logger::run(&args),
        Command::Switchover(args) => switchover::switchover(&Cluster::open(&dir)?, &args),
        Command::Sql(args) => client::sql(&Cluster::open(&dir)?, &args),
        Command::Chaos(args) => chaos::chaos(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Logs(args) => client::logs(&Cluster::open(&dir)?, &args),
    }
}

/// Opens the cluster for starting or stopping its processes.
fn lock(dir: &std::path::Path) -> Result<(Cluster, Lock)> {
    Cluster::open(dir)?;
    let lock = Lock::take(dir)?;
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
    print!("{question} [y/N] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}
