//! What is done with the members of a group.

use super::{Limit, Target};
use crate::cluster::Role;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Subcommand)]
pub enum Member {
    /// List all members: role, priority, votes, zone, address
    List,
    /// Add a node to this cluster and wait until it is Synced
    #[command(
        long_about = "Adds a node to this cluster on this machine, with the next number, and waits until \
        it is Synced: a server receives the others' data. On another machine, a server is added by \
        starting it with wsrep_cluster_address (see `quorate setup`), and a logger by `quorate logger`."
    )]
    Add {
        /// The role in which it joins
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

        /// voter, or learner: has the data, but no vote
        #[arg(value_enum)]
        role: MemberRole,
    },
    /// Change a member's role, priority or zone
    Set(MemberSet),
    Remove(MemberRemove),
    Reinit(Reinit),
    /// Cut a member off from the others, to see what happens then, or connect it again
    #[command(
        long_about = "Cuts a member off from the others, as if its network had failed: it accepts no writes, and \
        the others continue if they are a majority. It stays cut off until --end, or until it is restarted.\n\n\
        Examples:\n  quorate member isolate node3\n  quorate member isolate node3 --end"
    )]
    Isolate {
        /// Its name, as `member list` shows it
        name: String,

        /// Connect it to the others again
        #[arg(long)]
        end: bool,
    },
    Rules(Rules),
    #[command(name = "force-quorum")]
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

    /// voter, or learner: has the data, but no vote
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<MemberRole>,

    /// How much it is preferred as the leader: 0 (never) to 100
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub priority: Option<u8>,

    /// The data centre that it is in
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
}

#[derive(Args)]
#[command(
    about = "Remove a member that will not come back",
    long_about = "Removes a member that will not come back, after asking: the others no longer count its vote. If its \
        server still runs, stop that instead (systemctl stop mariadb, quorate stop): it leaves the group by itself. A \
        change after which the connected members would not be a majority is refused.\n\n\
        Example:\n  quorate member remove node4"
)]
pub struct MemberRemove {
    /// Its name, as `member list` shows it
    pub name: String,

    /// Go ahead without asking
    #[arg(short, long)]
    pub yes: bool,
}

#[derive(Args)]
#[command(
    about = "Make a server discard its data and fetch that of another server",
    long_about = "Makes a server discard its data and end, after asking. Its service starts it again, and it fetches \
        the data of another server. The command waits until it is Synced. Use this for a server whose data is damaged, \
        or differs from that of the others. The order is refused if the server leads the group, or if there is no \
        other server. For a cluster of `quorate up`, the command starts the server again itself.\n\n\
        Exit code 75: it is not Synced within --timeout; it continues by itself.\n\n\
        Examples:\n  quorate member reinit node3\n  \
        quorate member reinit db3 --cluster shop --yes --timeout 7200"
)]
pub struct Reinit {
    /// Its name, as `member list` shows it
    pub name: String,

    /// Go ahead without asking
    #[arg(short, long)]
    pub yes: bool,

    /// Do not wait until it is Synced; not possible for a cluster of `quorate up`
    #[arg(long, conflicts_with = "timeout")]
    pub no_wait: bool,

    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Args)]
#[command(
    about = "Show or change the rules of a group",
    long_about = "Shows the rules of a group, or changes those that are given, once for all members: who takes writes, \
        how priorities count, when a commit is safe, and when it is answered.\n\n\
        Examples:\n  quorate member rules\n  quorate member rules --primary-mode single\n  \
        quorate member rules --zones 2"
)]
pub struct Rules {
    /// How many zones must have a commit on disk, besides a majority of all votes
    #[arg(long, value_name = "N")]
    pub zones: Option<u8>,

    /// When a leader hands over to a member of higher priority: optimistic (once that member has caught up) or
    /// forced (at once)
    #[arg(long, value_name = "RULE", value_parser = ["optimistic", "forced"])]
    pub priorities: Option<String>,

    /// Who takes writes: every node (multi), or the leader alone (single), while the others are
    /// read_only
    #[arg(long, value_name = "MODE", value_parser = ["multi", "single"])]
    pub primary_mode: Option<String>,

    /// With a single primary: whether a new one takes writes at once (serve), or only when it has
    /// applied its backlog (wait)
    #[arg(long, value_name = "RULE", value_parser = ["serve", "wait"])]
    pub primary_failover: Option<String>,

    /// Whether the leadership goes to the node that all writes come from: yes or no
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"])]
    pub leader_follows_writes: Option<String>,

    /// When a commit is answered: once it is safe (eventual), or once all nodes that are Synced have applied
    /// it, too, so that a read on any of them finds it (after)
    #[arg(long, value_name = "LEVEL", value_parser = ["eventual", "after"])]
    pub consistency: Option<String>,
}

#[derive(Args)]
#[command(
    about = "Go on without a majority that is lost for good; without --reason, only show what may be lost",
    long_about = "Goes on without a majority that is lost for good. Without --reason it only shows what would be kept \
        and what may be lost, and changes nothing. The order is refused while a majority may be alive. All members \
        that are to be kept are asked, and the one with the longest log gets the order and becomes the leader. The \
        reason is kept in the log. The members that are given up must never come back with their logs: empty their \
        data and log directories before they are started again.\n\n\
        Examples:\n  quorate member force-quorum --keep node1\n  \
        quorate member force-quorum --keep node1 --reason 'data centre b burnt down'"
)]
pub struct Force {
    /// The nodes to keep: all that are left
    #[arg(long, value_name = "NODES", value_delimiter = ',', required = true)]
    pub keep: Vec<String>,

    /// The reason, kept in the log. With it the order is carried out, not only shown
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

// What is a command of its own, too: `quorate rules` is `quorate member rules`. No doc comment: it would be read as
// the command's help, in place of that of `T`.
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
    use clap::{Command, CommandFactory, Parser};

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

    /// All commands below this one that are shown, with their paths.
    fn visible(command: &Command, path: &str) -> Vec<(String, Command)> {
        let shown = command.get_subcommands().filter(|each| !each.is_hide_set());
        let with_own = |each: &Command| {
            let path = format!("{path} {}", each.get_name());
            let below = visible(each, &path);
            std::iter::once((path, each.clone())).chain(below).collect::<Vec<_>>()
        };
        shown.flat_map(with_own).collect()
    }

    #[test]
    fn each_command_says_what_it_does_and_nothing_of_the_sources() {
        let all = visible(&Cli::command(), "quorate");
        for (path, command) in &all {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty(), "{path} does not say what it does");
            let help = command.clone().render_long_help().to_string();
            let of_sources = ["[`", "`]", "::", "of its own, too", "invariant"];
            let found: Vec<_> = of_sources.iter().filter(|part| help.contains(**part)).collect();
            assert!(found.is_empty(), "{path} --help: {found:?}");
        }
        for name in ["rules", "force-quorum", "reinit"] {
            let help = |path: &str| {
                let found = all.iter().find(|(known, _)| known == path);
                let (_, command) = found.unwrap_or_else(|| panic!("{path} is not shown"));
                (command.get_about().cloned(), command.get_long_about().cloned())
            };
            let short = help(&format!("quorate {name}"));
            assert!(short.1.is_some(), "{name} has no more to say than a line");
            assert_eq!(short, help(&format!("quorate member {name}")));
        }
        let force = Cli::try_parse_from(["quorate", "force-quorum", "--help"]).err().expect("help");
        let force = force.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(force.contains("never come back with their logs"), "{force}");
    }

    #[test]
    fn what_is_given_in_a_hurry_needs_no_member_before_it() {
        for short in [
            "force-quorum --keep a --reason fire --json",
            "reinit n1 --seed h:1 --yes --no-wait",
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
