//! How a group is looked at.

use super::Target;
use clap::Args;

#[derive(Args)]
#[command(
    about = "Show the state of each node, and what is wrong",
    long_about = "Shows the state of each node: address, role, state, last applied seqno, how far that is behind, size \
        of its log and how far back the log reaches, zone, priority, release. The end says in words what is \
        wrong.\n\n\
        A logger is Synced when it has a vote and is connected to a majority. It has no seqno, and its address is \
        that of the group's port.\n\n\
        The members are asked on the group's port, without SQL. Those that do not answer within seconds are named. \
        For another group than the one on this machine, give --seed or --cluster; you have to be an operator there, \
        with a credential or a certificate.\n\n\
        Exit code 0: every node is Synced. 1: degraded: some are not, but some node accepts writes. 2: no node \
        accepts writes, or nothing runs. 69: no member of the other group answers.\n\n\
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
    about = "Show the status repeatedly, with the write sets that each node applies per second",
    long_about = "Shows what `quorate status` shows, repeatedly until Ctrl-C, and below it how many write sets each \
        node has applied per second since the last look. On a terminal it is updated in place. In a file or a pipe, \
        each look follows the one before, and begins with its time.\n\n\
        If no member answers any more, it says so, and continues. With --count, the exit code is that of the last \
        look, as for `quorate status`.\n\n\
        Examples:\n  quorate watch\n  quorate watch --cluster shop --interval 5\n  \
        quorate watch --count 60 > minute.txt\n  \
        quorate watch --json | jq -c '[.time, .status.health]'"
)]
pub struct Watch {
    /// Print one JSON object per line, for each look
    #[arg(long)]
    pub json: bool,

    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    pub interval: f64,

    /// End after this number of looks
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
    about = "Show what happened to the group: elections, members, views, state transfers, orders",
    long_about = "Shows what happened to the group, with the newest event last: who led, from when on and why, who \
        became a member and who left, which nodes were there, state transfers, nodes that went out of service by \
        themselves, and operators' orders with their results. The history is in the group's own log: every node shows \
        the same, and nothing is forgotten in a restart. The last 256 events and the last 64 orders are kept.\n\n\
        INDEX is the position in the log: a later event has a higher one, even if the nodes' clocks differ. TIME is \
        by the clock of the node that noted the event.\n\n\
        Examples:\n  quorate history\n  quorate history --kind leader --last 5\n  \
        quorate history --cluster shop --json | jq '.history[] | select(.kind == \"order\")'"
)]
pub struct History {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Show only the last N events
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,

    /// Show only events of these kinds
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_enum)]
    pub kind: Vec<HistoryKind>,

    #[command(flatten)]
    pub target: Target,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryKind {
    /// Another node leads
    Leader,
    /// Who is a member, and in which role
    Membership,
    /// Which nodes are there
    View,
    /// A node received its state from another one
    Transfer,
    /// A node went out of service by itself
    Withdrawal,
    /// What an operator ordered
    Order,
}
