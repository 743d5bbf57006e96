//! What is done with the members of a group.

use super::{Limit, Target};
use crate::cluster::Role;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Subcommand)]
pub enum Member {
    /// Every member: role, priority, votes, zone, address
    List,
    /// Add a node to this cluster and wait until it is Synced
    #[command(
        long_about = "Adds a node to this cluster on this machine, with the next number, and waits until \
        it is Synced: a server receives the others' data. On another machine, a server is added by \
        starting it with wsrep_cluster_address, and a logger by `quorate logger`."
    )]
    Add {
        /// What it joins as
        #[arg(long, value_enum, value_name = "ROLE", default_value = "voter")]
        role: Role,

        #[command(flatten)]
        limit: Limit,
    },
    /// Change a member's role
    #[command(name = "set-role")]
    SetRole {
        /// Its name, as `member list` shows it
        name: String,

        /// voter, or learner: keeps its data, and has no vote
        #[arg(value_enum)]
        role: MemberRole,
    },
    /// Change a member's role, priority or zone
    Set(MemberSet),
    /// Remove a member that will not come back
    Remove {
        /// Its name, as `member list` shows it
        name: String,
    },
    /// Have a server give its data up and fetch another's
    #[command(
        long_about = "The server gives its data up and ends. When it is started again, which its service does by \
        itself, it fetches the data of another server. For a server whose data is damaged or differs from the \
        others'. It refuses if it leads the group, or if no other server is there. On the cluster of `quorate up` \
        the server is started again at once.\n\n\
        Example:\n  quorate member reinit node3"
    )]
    Reinit(Reinit),
    /// Cut a member off from the others, to see what happens then, or let it go on
    #[command(
        long_about = "Cuts a member off from the others, as if its network had failed: it accepts no writes, and \
        the others go on if they are a majority. It stays like that until --end, or until it is restarted.\n\n\
        Examples:\n  quorate member isolate node3\n  quorate member isolate node3 --end"
    )]
    Isolate {
        /// Its name, as `member list` shows it
        name: String,

        /// Let it go on
        #[arg(long)]
        end: bool,
    },
    /// Show or set what holds for the whole group
    Rules(Rules),
    /// Go on without a majority that is lost for good; says first what may be lost
    #[command(
        name = "force-quorum",
        long_about = "Goes on without a majority that is lost for good. Without --reason it only says \
        what would be kept and what may be lost, and changes nothing. It refuses while a majority may \
        be alive. All that are to be kept are asked, and the one with the longest log is to lead. The reason \
        stands in the log with the change. The members given up never come back with their logs: empty their \
        directories before they are started again.\n\n\
        Examples:\n  quorate member force-quorum --keep node1\n  \
        quorate member force-quorum --keep node1 --reason 'data centre b burnt down'"
    )]
    ForceQuorum(Force),
}

/// What a server can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MemberRole {
    Voter,
    Learner,
}

#[derive(Args)]
pub struct MemberSet {
    /// Its name, as `member list` shows it
    pub name: String,

    /// voter, or learner: has the data, and no vote
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<MemberRole>,

    /// Who leads rather: 0 (never) to 100
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub priority: Option<u8>,

    /// The data centre it stands in
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
}

#[derive(Args)]
pub struct Reinit {
    /// Its name, as `member list` shows it
    pub name: String,

    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Args)]
pub struct Rules {
    /// Zones that must have a commit on disk, besides a majority of all votes
    #[arg(long, value_name = "N")]
    pub zones: Option<u8>,

    /// When a leader makes room for a member of higher priority: optimistic (once that has caught up) or
    /// forced (at once)
    #[arg(long, value_name = "RULE", value_parser = ["optimistic", "forced"])]
    pub priorities: Option<String>,

    /// Who takes writes: every node (multi), or the leader alone (single), while the others are
    /// read_only
    #[arg(long, value_name = "MODE", value_parser = ["multi", "single"])]
    pub primary_mode: Option<String>,

    /// With a single primary: whether a new one takes writes at once (serve), or when it has
    /// applied its backlog (wait)
    #[arg(long, value_name = "RULE", value_parser = ["serve", "wait"])]
    pub primary_failover: Option<String>,

    /// Whether leadership goes to the node that all writes come from: yes or no
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"])]
    pub leader_follows_writes: Option<String>,

    /// When a commit is answered: once it is safe (eventual), or once all nodes that are Synced have applied
    /// it, too, so that a read on any of them finds it (after)
    #[arg(long, value_name = "LEVEL", value_parser = ["eventual", "after"])]
    pub consistency: Option<String>,
}

#[derive(Args)]
pub struct Force {
    /// The nodes that go on
    #[arg(long, value_name = "NODES", value_delimiter = ',', required = true)]
    pub keep: Vec<String>,

    /// Why; does it
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// What is a command of its own, too: `quorate rules` is `quorate member rules`.
#[derive(Args)]
pub struct Short<T: Args> {
    #[command(flatten)]
    pub what: T,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub target: Target,
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::Parser;

    #[test]
    fn what_may_be_said_is_listed_when_something_else_is() {
        for (arguments, listed) in [
            (&["rules", "--priorities", "never"][..], "optimistic, forced"),
            (&["rules", "--primary-mode", "dual"], "multi, single"),
            (&["rules", "--primary-failover", "no"], "serve, wait"),
            (&["rules", "--leader-follows-writes", "maybe"], "yes, no"),
            (&["set", "node1", "--role", "logger"], "voter, learner"),
            (&["set", "node1", "--priority", "101"], "0..=100"),
        ] {
            let words = [&["quorate", "member"], arguments].concat();
            let refused = Cli::try_parse_from(words).err().expect("it is refused").to_string();
            assert!(refused.contains(listed), "{refused}");
        }
    }

    #[test]
    fn what_is_given_in_a_hurry_needs_no_member_before_it() {
        for short in [
            "force-quorum --keep a --reason fire --json",
            "reinit n1 --seed h:1",
            "rules --zones 2 --cluster shop",
        ] {
            let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
            let long = Cli::try_parse_from(words(&format!("quorate member {short}")));
            assert!(
                long.is_ok() && Cli::try_parse_from(words(&format!("quorate {short}"))).is_ok()
            );
        }
    }
}
