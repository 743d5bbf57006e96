//! The command line. Help texts are the manual: they say what happens and show an example.

mod agent;
mod bench;
mod certificate;
mod chaos;
mod check;
mod key;
mod logger;
mod look;
mod member;
mod nodes;
mod operator;
mod secret;
mod setup;
mod target;

pub use agent::Agent;
pub use bench::{Bench, BenchWhat};
pub use certificate::Certificate;
pub use chaos::{Chaos, ChaosSystem, ChaosWriters};
pub use check::Check;
pub use key::Key;
pub use logger::Logger;
pub use look::{History, HistoryKind, Status, Watch};
pub use member::{Force, Member, MemberRemove, MemberRole, MemberSet, Reinit, Rules, Short};
pub use nodes::{Down, Kill, Limit, Logs, OneNode, Pause, Sql, Stop, Switchover, Up, When};
pub use operator::{Clusters, Operator};
pub use secret::Secret;
pub use setup::Setup;
pub use target::{Before, Target};

use clap::{ArgMatches, Args, Parser, Subcommand};
use std::path::PathBuf;

#[derive(Parser)]
#[command(
    name = "quorate",
    version,
    about = "Set up, watch and operate groups of MariaDB servers that lose no committed transaction",
    long_about = "Sets up, watches and operates groups of MariaDB servers that lose no committed transaction: what a \
        client saw committed is on the disks of a majority of the members, whatever crashes.\n\n\
        `setup`, `logger` and `agent` are for servers that are installed on this machine. `status`, `switchover`, \
        `member` and others work on any group: name it with --cluster or --seed. `up`, `down`, `start`, `kill` and \
        others are for a cluster for trying out, in one directory of this machine.\n\n\
        In such a directory, each server (node1, node2, ...) has a folder with its data, its consensus log, its \
        configuration and its error log. A logger (--loggers) is a node with a consensus log and an error log, but no \
        data.",
    after_help = EXIT_CODES,
    after_long_help = concat!(
        "Examples:\n",
        "  quorate up                 make a cluster of three servers, or start the one that is here\n",
        "  quorate status             show which nodes run, which one leads, and what is wrong\n",
        "  quorate watch              the same every second, with rates\n",
        "  quorate sql node1          open a client on node1\n",
        "  quorate kill node1         kill -9, to see that nothing is lost\n",
        "  quorate up                 start whatever is not running\n",
        "  quorate down --wipe        stop everything and delete the data\n",
        "  quorate status --cluster shop                  the state of a group elsewhere ('cluster add' stores it)\n",
        "  quorate switchover --cluster shop --to db2     hand its leadership over\n\n",
        "Exit codes:\n",
        "  0   done; status: every node is Synced\n",
        "  1   failed; status: degraded (some node is not Synced, but writes are accepted)\n",
        "  2   status: no node accepts writes; chaos: a promise was broken\n",
        "  64  the command line is wrong, no node has that name, or there is no terminal to ask on (--yes)\n",
        "  66  there is no cluster of that name, or in that directory\n",
        "  69  software is missing (the message names the package), or no member answers\n",
        "  75  the time limit has passed; servers keep running\n",
        "  77  no permission: the files belong to another account, root is needed, a password is wrong, or the\n",
        "      members do not let this operator do that\n\n",
        "With --json an error is an object, too: {\"error\": {\"code\": 69, \"reason\": \"...\"}}.\n\n",
        "The directory of the cluster of `quorate up`: --dir, otherwise $QUORATE_DIR, otherwise ./quorate-data, or\n",
        "/var/lib/quorate if only that has a cluster, or if there is none yet and the servers' account cannot enter\n",
        "the current directory."
    )
)]
pub struct Cli {
    #[command(flatten)]
    pub place: Place,

    #[command(flatten)]
    pub target: Before,

    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed or degraded, 2 no node accepts writes, \
    64 usage, 66 no such cluster, 69 software missing or no member answers, 75 time limit, 77 no permission. \
    More: quorate --help, quorate COMMAND --help";

#[derive(Args, Clone)]
pub struct Place {
    /// The directory of a cluster of `quorate up`
    #[arg(long, global = true, env = "QUORATE_DIR", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Whether the command, or one below it, was given `--json`.
pub fn asks_for_json(matches: &ArgMatches) -> bool {
    let own = matches.try_get_one("json").ok().flatten().copied().unwrap_or_default();
    own || matches.subcommand().is_some_and(|(_, below)| asks_for_json(below))
}

#[derive(Subcommand)]
pub enum Command {
    Up(Up),
    Status(Status),
    Watch(Watch),
    History(History),
    Check(Check),
    Agent(Agent),
    Down(Down),
    /// Start one node and wait until it is Synced
    #[command(
        long_about = "Starts one node of an existing cluster and waits until it is Synced. \
        Its position is read from its own data first; what it missed comes from the logs."
    )]
    Start(OneNode),
    /// Stop one node cleanly
    #[command(long_about = "Stops one node cleanly (SIGTERM). The others continue without it.")]
    Stop(Stop),
    /// Stop one node cleanly, start it again and wait until it is Synced
    Restart(OneNode),
    /// Kill one or several nodes, as a crash would (kill -9)
    #[command(
        long_about = "Kills one or several nodes, as a crash would (SIGKILL): nothing is flushed, and the \
        others are not told. `quorate up` or `quorate start NODE` brings them back. Every transaction that was \
        acknowledged is still there.\n\nExample:\n  quorate kill node2 && quorate status; quorate up"
    )]
    Kill(Kill),
    /// Run a logger: a member with a log and a vote, but no database
    #[command(
        long_about = "Runs a logger in the foreground: a member of the group that keeps the log and \
        votes, and has no database. Two servers and a logger lose nothing when any one of the three \
        is lost, with two copies of the data instead of three; it needs one core, little memory and \
        a disk that syncs quickly. It leads only to hand over to a server. Clients do not see it.\n\n\
        On SIGTERM or SIGINT it leaves the group and ends. When it is started again, it joins again. \
        After a crash (or kill -9), it continues from its log.\n\n\
        For a cluster of `quorate up`, on this machine, `quorate up --loggers 1` runs it.\n\n\
        Example:\n  quorate logger --name log1 --cluster-name quorate --log-dir /var/lib/quorate-log \\\n    \
        --secret-file /etc/quorate.secret --address 10.0.0.3:4567 --join 10.0.0.1:4567,10.0.0.2:4567"
    )]
    Logger(Logger),
    /// Make the secret that all members of a group share
    #[command(
        long_about = "Makes the secret that all members of a group share: 256 random bits in a file, the same on all \
        nodes. With it their connections are encrypted, and only those who have it are let in. `quorate setup \
        --first` and `quorate up` make one by themselves.\n\n\
        Examples:\n  quorate secret new /etc/mysql/quorate.secret\n  \
        quorate secret add /etc/mysql/quorate.secret"
    )]
    Secret {
        #[command(subcommand)]
        what: Secret,
    },
    /// Make a credential for an operator, who can look at a group and give it orders
    #[command(
        long_about = "Makes a credential for an operator, who can look at a group and give it orders, but is no \
        member. It is used with --operator-file, from any machine that reaches the members' group port. It is made \
        from the group's secret, so no member has to be told about it, and the secret cannot be computed from it. It \
        is valid until the secret is changed, or until quorate.operators is set and does not list its name.\n\n\
        Examples:\n  quorate operator new ann --secret-file /etc/mysql/quorate.secret\n  \
        quorate operator new monitor --read-only --secret-file /etc/mysql/quorate.secret"
    )]
    Operator {
        #[command(subcommand)]
        what: Operator,
    },
    /// Store the addresses and the credential of a group under a name, for --cluster
    #[command(
        long_about = "Stores the addresses and the credential of a group under a name, for --cluster, in a file of \
        your configuration folder (clusters.json in $XDG_CONFIG_HOME/quorate, or ~/.config/quorate). Only the path of \
        the credential is stored, and only if the command line names it.\n\n\
        Examples:\n  quorate cluster add shop --seed 10.0.0.1:4567,10.0.0.2:4567 --operator-file ~/ann.operator\n  \
        quorate status --cluster shop"
    )]
    Cluster {
        #[command(subcommand)]
        what: Clusters,
    },
    /// Make the key that encrypts a node's log
    #[command(
        long_about = "Makes the key with which a node encrypts the group log, and the snapshots beside it, on its \
        disk: 256 random bits in a file. Each node has its own, loggers too.\n\n\
        Examples:\n  quorate key new /etc/mysql/quorate.key\n  \
        quorate key add /etc/mysql/quorate.key"
    )]
    Key {
        #[command(subcommand)]
        what: Key,
    },
    /// Make the MariaDB server on this machine a member of a group, or undo that
    #[command(
        long_about = "Makes the MariaDB server on this machine a member of a group: it writes one file of options, \
        and makes the directory of the group's log and, on the first server, the group's secret. It shows all of that, \
        and asks before it does it. It does not restart the server, and prints what to do next. If you run it again, \
        for instance with more members, it shows what it adds, changes and removes. What you do not name stays as it \
        is, and so do lines of your own in the file.\n\n\
        Examples:\n  quorate setup --first --members 10.0.0.1,10.0.0.2,10.0.0.3      on the first server\n  \
        quorate setup --members 10.0.0.1,10.0.0.2,10.0.0.3              on the others\n  \
        quorate setup --members 10.0.0.1,10.0.0.2,10.0.0.3 --zone eu --option quorate.log_retain=4G\n  \
        quorate setup --undo"
    )]
    Setup(Setup),
    /// Show and change the members of a group
    #[command(
        long_about = "Shows and changes the members of a group: roles, priorities, zones. A server is added by \
        starting it (wsrep_cluster_address), a logger by `quorate logger`, and both by `member add` in a cluster of \
        `quorate up`. A member that stops cleanly leaves the group.\n\n\
        Examples:\n  quorate member list\n  quorate member add --role learner\n  \
        quorate member add --role logger\n  \
        quorate member set-role node3 learner\n  \
        quorate member set node1 --priority 100\n  quorate member remove node4"
    )]
    Member {
        /// Print one JSON object
        #[arg(long, global = true)]
        json: bool,

        #[command(flatten)]
        target: Target,

        #[command(subcommand)]
        what: Member,
    },
    /// Hand the leadership over to another node
    #[command(
        long_about = "Hands the leadership over from the node that leads to another one, for instance before \
        its machine is serviced. Commits that are under way wait for some milliseconds and go to the \
        new leader. Where every node takes writes, no client sees an error: the leader only decides the \
        order of commits. With a single primary the primary moves, too: transactions that are \
        open on the former one are rolled back, and the application has to repeat them on the new one.\n\n\
        With --at or --after the command first checks whether the switchover would be possible now, and then waits in \
        the foreground. You can let systemd wait instead. Neither survives a reboot:\n\n  \
        systemd-run --unit=switchover --on-calendar='2026-12-01 02:00:00 UTC' \
        quorate switchover --to db2 --cluster shop\n  \
        systemctl list-timers switchover.timer      shows when it will be\n  \
        journalctl -u switchover                    shows afterwards whether it worked\n  \
        systemctl stop switchover.timer             gives it up\n\n\
        Such a unit runs as root, so --cluster takes a name that root has stored (`quorate cluster list`).\n\n\
        Examples:\n  quorate switchover             to the node whose log is furthest\n  \
        quorate switchover --to node2\n  quorate switchover --to node2 --at '2026-12-01 02:00:00'"
    )]
    Switchover(Switchover),
    Rules(Short<Rules>),
    ForceQuorum(Short<Force>),
    Reinit(Short<Reinit>),
    /// Keep the leadership and the members as they are while you work on the group
    #[command(
        long_about = "While a group is paused, nothing hands the leadership over or expels a member by itself: not \
        priorities, not leader_follows_writes, not quorate.expel_timeout. Writes continue, and if the leader fails, \
        another one is elected as usual: a pause does not make the group less available. Orders are carried out. \
        `quorate resume` ends the pause.\n\n\
        Example:\n  quorate pause\n  quorate status      says that the group is paused\n  quorate resume"
    )]
    Pause(Pause),
    /// Resume a group that is paused
    Resume(Pause),
    /// Open the MariaDB client on a node
    #[command(
        long_about = "Replaces itself by the MariaDB client, connected to the node's socket. \
        What follows the node is handed to the client.\n\n\
        Examples:\n  quorate sql node1\n  quorate sql node2 -- -e 'SELECT 1'\n  \
        quorate sql node1 < dump.sql"
    )]
    Sql(Sql),
    /// Show a node's error log
    Logs(Logs),
    Chaos(Chaos),
    Bench(Box<Bench>),
}
