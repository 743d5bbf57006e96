//! How a group is looked at.

use super::Target;
use clap::Args;

#[derive(Args)]
#[command(
    about = "Show every node: address, role, state, position, lag, log; and what is wrong",
    long_about = "Shows every node: address, role, state, last applied seqno, how far that is behind, size of its \
        log and how far back it reaches, zone, priority, release. What is wrong stands at the end, in words.\n\n\
        A logger is Synced when it has a vote and is connected to a majority. It has no seqno, and its address is \
        that of the group's port.\n\n\
        Exit code 0: every node is Synced. 1: degraded, writes are still accepted by some node. \
        2: no node accepts writes, or nothing runs.\n\n\
        The members are asked on the group's own port, without SQL; those that do not answer within seconds are \
        named. With --seed or --cluster it is another group than the one on this machine, and you are an operator \
        with a credential or a certificate. Exit code 69: nobody answers there.\n\n\
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
        quorate watch --count 60 > minute.txt\n  \
        quorate watch --json | jq -c '[.time, .status.health]'"
)]
pub struct Watch {
    /// Print one JSON object a line for each look
    #[arg(long)]
    pub json: bool,

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
