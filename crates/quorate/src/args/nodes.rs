//! What is done with the nodes of a cluster on this machine.

use super::Target;
use clap::Args;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

#[derive(Args)]
#[command(
    about = "Make a cluster, or start what is stopped, and wait until every node is Synced",
    long_about = "Makes a cluster, or starts what is stopped, and waits until every node is Synced.\n\n\
        In a new directory it makes and starts N servers. In an existing one it starts the nodes \
        that do not run, all at once: no order, no bootstrap step, also after a crash of all of \
        them. Nodes that run are left alone; a larger --nodes adds nodes.\n\n\
        Two servers and a logger (--nodes 2 --loggers 1) lose nothing when any one of the three is \
        lost, with two copies of the data instead of three. A logger is a node, too: it has the \
        next number, and is started, stopped and killed like the servers.\n\n\
        The nodes go on running after this command has ended.\n\n\
        Ports: node number i listens on base + 10*i for clients, +1 for the group, +2 and +3 for \
        state transfer, all on 127.0.0.1.\n\n\
        Your own server options go to DIR/extra.cnf, which every node reads last; you may write \
        it before the cluster is made.\n\n\
        Examples:\n  quorate up\n  quorate up --nodes 2 --loggers 1\n  \
        quorate up --nodes 5 --dir /srv/db --base-port 4000\n  \
        quorate up --provider-options 'evs.suspect_timeout=PT2S'"
)]
pub struct Up {
    /// How many servers [default: 3, or as many as the cluster has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=9))]
    pub nodes: Option<u16>,

    /// How many more servers, which have the data and no vote [default: 0, or what the cluster has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=6))]
    pub learners: Option<u16>,

    /// How many loggers, which have a log and a vote and no database [default: 0, or what the
    /// cluster has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=4))]
    pub loggers: Option<u16>,

    /// Where the ports begin [default: 3400, or what the cluster has]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1024..=65000))]
    pub base_port: Option<u16>,

    /// The wsrep provider that the servers load [default: libquorate.so beside this command]
    #[arg(long, env = "QUORATE_PROVIDER", value_name = "PATH")]
    pub provider: Option<PathBuf>,

    /// Options of the provider, as in wsrep_provider_options: `key=value;key=value`
    #[arg(long, value_name = "OPTIONS")]
    pub provider_options: Option<String>,

    /// Server program to run [default: mariadbd from PATH, /usr/sbin]
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
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub timeout: u64,
}

#[derive(Args)]
#[command(
    about = "Show every node: address, role, state, position, log size",
    long_about = "Shows every node: address, role, state, last committed seqno, size of its log.\n\n\
        A logger is Synced when it has a vote and is connected to a majority. It has no address for \
        clients and no seqno.\n\n\
        Exit code 0: every node is Synced. 1: degraded, writes are still accepted by some node. \
        2: no node accepts writes, or nothing runs.\n\n\
        With --seed or --cluster, it is another group that is asked, on its own port and without SQL: as an \
        operator, by a credential or a certificate. All members are asked, those that do not answer within \
        seconds are named. What is wrong stands at the end. Exit code 69: nobody answers.\n\n\
        Examples:\n  quorate status --seed 10.0.0.1:4567 --operator-file ~/ann.operator\n  \
        quorate status --json | jq '.nodes[] | select(.state != \"Synced\")'"
)]
pub struct Status {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub target: Target,
}

#[derive(Args)]
#[command(
    about = "Show the status again and again, and what each node applies a second",
    long_about = "Shows what `quorate status` does, again and again until Ctrl-C, and below it how many write \
        sets each node has applied a second since the last look. On a terminal it stays in place; into a file \
        or a pipe each look follows the last, with its time before it.\n\n\
        If nobody answers any more it says so and looks on. The exit code, with --count, is that of the last \
        look, as of `quorate status`.\n\n\
        Examples:\n  quorate watch\n  quorate watch --cluster shop --interval 5\n  \
        quorate watch --count 60 > minute.txt"
)]
pub struct Watch {
    /// Seconds from one look to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    pub interval: f64,

    /// End after so many looks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    #[command(flatten)]
    pub target: Target,
}

/// Between a tenth of a second and an hour.
fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds between 0.1 and 3600".to_owned())
}

#[derive(Args)]
#[command(
    about = "Stop every node cleanly",
    long_about = "Stops every node cleanly (SIGTERM to all at once) and waits. A node that does not \
        stop within the time limit is named and left alone, unless --force is given: then it is \
        killed. No acknowledged transaction is lost either way."
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

    /// Seconds to wait for a clean stop
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
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

    /// Seconds to wait for a clean stop
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
}

#[derive(Args)]
pub struct Kill {
    /// The nodes, as `status` names them (node2, or just 2); several die together
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
    /// Wait until then, in UTC: '2026-12-01 02:00:00'; a mistake in the command shows at once
    #[arg(long, value_name = "TIME", conflicts_with = "after", value_parser = humantime::parse_rfc3339_weak)]
    pub at: Option<SystemTime>,

    /// Wait so long first: 90s, '2h 30m'
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub after: Option<Duration>,
}

#[derive(Args)]
#[command(
    about = "Show what happened to the group: elections, members, views, state transfers, orders",
    long_about = "Shows what happened to the group, the newest last: who led from when on and why, who became a \
        member and who left, who was there, state transfers, nodes that went out of service by themselves, and \
        operators' orders with what came of them. It stands in the group's own log: every node shows the same, \
        and a restart forgets nothing. The last 256 events and the last 64 orders are kept.\n\n\
        INDEX is the place in the log: what comes later has a higher one, whatever the nodes' clocks say. TIME is \
        by the clock of the node that noted it.\n\n\
        Examples:\n  quorate history\n  quorate history --kind leader --last 5\n  \
        quorate history --cluster shop --json | jq '.history[] | select(.kind == \"order\")'"
)]
pub struct History {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Only the last N
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,

    /// Only of these kinds
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_enum)]
    pub kind: Vec<HistoryKind>,

    #[command(flatten)]
    pub target: Target,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryKind {
    /// Another node leads
    Leader,
    /// Who belongs to the group, and as what
    Membership,
    /// Which nodes are there
    View,
    /// A node received the whole state from another one
    Transfer,
    /// A node went out of service by itself
    Withdrawal,
    /// What an operator ordered
    Order,
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
