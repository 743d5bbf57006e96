//! What is done with the nodes of a cluster on this machine.

use super::Target;
use clap::Args;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// A week: more is a slip of the fingers, and clocks overflow long before the number does.
const TIMEOUT_SECONDS_MAX: u64 = 7 * 24 * 3600;

#[derive(Args)]
#[command(
    about = "Make a cluster, or start what is stopped, and wait until every node is Synced",
    long_about = "Makes a cluster, or starts what is stopped, and waits until every node is Synced.\n\n\
        In a new directory it makes and starts N servers. In an existing one it starts the nodes \
        that do not run, all at once: no order, no bootstrap step, also after a crash of all of \
        them. Nodes that run are left alone. A larger --nodes adds nodes.\n\n\
        Two servers and a logger (--nodes 2 --loggers 1) lose nothing when any one of the three is \
        lost, with two copies of the data instead of three. A logger is a node, too: it has the \
        next number, and is started, stopped and killed like the servers.\n\n\
        The nodes continue to run after this command has ended.\n\n\
        Ports: node number i listens on base + 10*i for clients, +1 for the group, +2 and +3 for \
        state transfer, all on 127.0.0.1.\n\n\
        Put your own server options into DIR/extra.cnf, which every node reads last. You can write it \
        before the cluster is made.\n\n\
        Examples:\n  quorate up\n  quorate up --nodes 2 --loggers 1\n  \
        quorate up --nodes 5 --dir /srv/db --base-port 4000\n  \
        quorate up --provider-options 'evs.suspect_timeout=PT2S'"
)]
pub struct Up {
    /// The number of servers [default: 3, or as many as the cluster has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=9))]
    pub nodes: Option<u16>,

    /// The number of learners: more servers, with the data, but no vote [default: 0, or what the cluster has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=6))]
    pub learners: Option<u16>,

    /// The number of loggers, which have a log and a vote, but no database [default: 0, or what the
    /// cluster has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=4))]
    pub loggers: Option<u16>,

    /// The number from which ports are counted [default: 3400, or what the cluster has]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1024..=65000))]
    pub base_port: Option<u16>,

    /// The wsrep provider that the servers load [default: libquorate.so beside this command]
    #[arg(long, env = "QUORATE_PROVIDER", value_name = "PATH")]
    pub provider: Option<PathBuf>,

    /// Options of the provider, as in wsrep_provider_options: `key=value;key=value`
    #[arg(long, value_name = "OPTIONS")]
    pub provider_options: Option<String>,

    /// The server program to run [default: mariadbd from PATH, /usr/sbin]
    #[arg(long, value_name = "PATH")]
    pub mariadbd: Option<PathBuf>,

    #[command(flatten)]
    pub limit: Limit,

    /// Start this node with --wsrep-new-cluster, before the others (for providers that need it)
    #[arg(long, hide = true, value_name = "NODE")]
    pub new_cluster_on: Option<String>,
}

#[derive(Args, Clone, Copy)]
pub struct Limit {
    /// Seconds to wait before giving up (servers keep running)
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(0..=TIMEOUT_SECONDS_MAX))]
    pub timeout: u64,
}

impl Limit {
    /// When it has passed, for what begins now.
    pub fn end(self) -> Instant {
        Instant::now() + Duration::from_secs(self.timeout)
    }
}

#[derive(Args)]
#[command(
    about = "Stop every node cleanly",
    long_about = "Stops every node cleanly (SIGTERM to all at once) and waits. A node that does not \
        stop within the time limit is named and left alone; with --force it is \
        killed. No acknowledged transaction is lost either way.\n\n\
        With --wipe, the directory is deleted only if every node has ended."
)]
pub struct Down {
    /// Delete the cluster's directory afterwards: all data, all logs
    #[arg(long)]
    pub wipe: bool,

    /// Delete without asking
    #[arg(short, long, requires = "wipe")]
    pub yes: bool,

    /// Kill nodes that do not stop in time
    #[arg(long)]
    pub force: bool,

    /// Seconds to wait for a clean stop. Before that, it waits as long (but at least 5) for another command to end
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=TIMEOUT_SECONDS_MAX))]
    pub timeout: u64,
}

#[derive(Args)]
pub struct OneNode {
    /// The node, as `status` names it (node2, or just 2)
    pub node: String,

    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Args)]
pub struct Stop {
    /// The node, as `status` names it (node2, or just 2)
    pub node: String,

    /// Kill the node if it does not stop in time
    #[arg(long)]
    pub force: bool,

    /// Seconds to wait for a clean stop. Before that, it waits as long (but at least 5) for another command to end
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=TIMEOUT_SECONDS_MAX))]
    pub timeout: u64,
}

#[derive(Args)]
pub struct Kill {
    /// The nodes, as `status` names them (node2, or just 2). Several are killed together
    #[arg(required = true)]
    pub nodes: Vec<String>,
}

#[derive(Args)]
pub struct Switchover {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// The node that is to lead (node2, or just 2) [default: the one whose log is furthest]
    #[arg(long, value_name = "NODE")]
    pub to: Option<String>,

    #[command(flatten)]
    pub when: When,

    #[command(flatten)]
    pub target: Target,
}

#[derive(Args)]
pub struct When {
    /// Do it at this time, in UTC: '2026-12-01 02:00:00'. Mistakes in the command are reported at once
    #[arg(long, value_name = "TIME", conflicts_with = "after", value_parser = humantime::parse_rfc3339_weak)]
    pub at: Option<SystemTime>,

    /// Do it after this time: 90s, '2h 30m'
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub after: Option<Duration>,
}

#[derive(Args)]
pub struct Pause {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub target: Target,
}

#[derive(Args)]
pub struct Sql {
    /// The node, as `status` names it (node2, or just 2)
    pub node: String,

    /// Arguments for the MariaDB client
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

#[derive(Args)]
pub struct Logs {
    /// The node, as `status` names it (node2, or just 2)
    pub node: String,

    /// Keep printing what is added
    #[arg(short, long)]
    pub follow: bool,

    /// How many lines from the end; 0 for all
    #[arg(short = 'n', long, default_value_t = 50)]
    pub lines: usize,
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::error::ErrorKind;
    use clap::Parser;

    #[test]
    fn a_time_limit_that_no_clock_reckons_with_is_refused() {
        for command in [
            "up",
            "start node1",
            "restart node1",
            "stop node1",
            "down",
            "member add",
            "member reinit node1",
            "reinit node1",
        ] {
            let with = |limit: &str| {
                let line = format!("quorate {command} --timeout {limit}");
                Cli::try_parse_from(line.split(' ')).map(drop)
            };
            assert!(with("0").is_ok() && with("604800").is_ok(), "{command}");
            for too_long in ["604801", "18446744073709551615"] {
                let refused = with(too_long).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::ValueValidation, "{command} {too_long}");
            }
        }
    }
}
