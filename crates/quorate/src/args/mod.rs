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
    about = "Run and watch a group of MariaDB servers that lose no committed transaction",
    long_about = "Runs MariaDB servers on this machine as one highly available database: a \
        transaction that a client saw committed is on the disks of a majority of the servers, \
        whatever crashes.\n\n\
        A cluster is a directory. Each server in it (node1, node2, ...) has a folder with its \
        data, its consensus log, its configuration and its error log. A logger (--loggers) is a \
        node with a consensus log and an error log alone.",
    after_help = EXIT_CODES,
    after_long_help = concat!(
        "Examples:\n",
        "  quorate up                 make a cluster of three servers, or start the one that is here\n",
        "  quorate status             who is alive, who leads, how far everybody is\n",
        "  quorate watch              the same, again each second, with rates\n",
        "  quorate sql node1          open a client on node1\n",
        "  quorate kill node1         kill -9, to see that nothing is lost\n",
        "  quorate up                 start whatever is not running\n",
        "  quorate down --wipe        stop everything and delete the data\n",
        "  quorate status --cluster shop                  the same of a group elsewhere ('cluster add' keeps it)\n",
        "  quorate switchover --cluster shop --to db2     hand its leadership over\n\n",
        "Exit codes:\n",
        "  0   done; status: every node is Synced\n",
        "  1   failed; status: degraded (some node is not Synced, but writes are accepted)\n",
        "  2   status: no node accepts writes; chaos: a promise was broken\n",
        "  64  wrong command line, or a name that nobody has; there is no terminal to ask on (--yes)\n",
        "  66  there is no cluster where it was looked for\n",
        "  69  software is missing (the message names the package), or nobody answers\n",
        "  75  time limit passed; servers keep running\n",
        "  77  no permission: other account's files, root is needed, a password is wrong, or the members do\n",
        "      not let this operator do that\n\n",
        "With --json an error is an object, too: {\"error\": {\"code\": 69, \"reason\": \"...\"}}.\n\n",
        "Where the cluster is: --dir, else $QUORATE_DIR, else ./quorate-data, else\n",
        "/var/lib/quorate if ./quorate-data does not exist and a cluster is there."
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
    64 usage, 66 no cluster there, 69 software missing or nobody answers, 75 time limit, 77 no permission. More: quorate --help, quorate COMMAND --help";

#[derive(Args, Clone)]
pub struct Place {
    /// The cluster's directory
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
    #[command(long_about = "Stops one node cleanly (SIGTERM). The others go on without it.")]
    Stop(Stop),
    /// Stop one node cleanly, start it again and wait until it is Synced
    Restart(OneNode),
    /// Kill one node as a crash would (kill -9)
    #[command(
        long_about = "Kills one node as a crash would (SIGKILL): nothing is flushed, nobody is \
        told. `quorate up` or `quorate start NODE` brings it back; every transaction that was \
        acknowledged is still there.\n\nExample:\n  quorate kill node2 && quorate status; quorate up"
    )]
    Kill(Kill),
    /// Run a member with a log and a vote, and no database
    #[command(
        long_about = "Runs a logger in the foreground: a member of the group that keeps the log and \
        votes, and has no database. Two servers and a logger lose nothing when any one of the three \
        is lost, with two copies of the data instead of three; it needs one core, little memory and \
        a disk that syncs quickly. It leads only to hand over to a server. Clients do not see it.\n\n\
        It ends on SIGTERM or SIGINT and takes leave of the group then; started again, it joins again. \
        A crash (or kill -9) costs nothing: it goes on from its log.\n\n\
        In a cluster of this command, on this machine, `quorate up --loggers 1` runs it.\n\n\
        Example:\n  quorate logger --name log1 --cluster-name quorate --log-dir /var/lib/quorate-log \\\n    \
        --secret-file /etc/quorate.secret --address 10.0.0.3:4567 --join 10.0.0.1:4567,10.0.0.2:4567"
    )]
    Logger(Logger),
    /// Make the secret by which the members of a group know each other
    #[command(
        long_about = "Makes the secret by which the members of a group know each other: 256 random bits \
        in a file, the same on all nodes. With it their connections are encrypted, and nobody else is let \
        in. A cluster of this command (`quorate up`) has one by itself.\n\n\
        Examples:\n  quorate secret new /etc/mysql/quorate.secret\n  \
        quorate secret add /etc/mysql/quorate.secret"
    )]
    Secret {
        #[command(subcommand)]
        what: Secret,
    },
    /// Make a credential for an operator, who may look at a group and give it orders, but is no member
    #[command(
        long_about = "Makes a credential for an operator, who may look at a group and give it orders, but is \
        no member: it can be used with --operator-file from any machine that reaches the members' group port. \
        It is made from the group's secret, so no member has to be told of it; nor does it tell the secret. \
        It ends with the secret, or where quorate.operators does not list its name.\n\n\
        Examples:\n  quorate operator new ann --secret-file /etc/mysql/quorate.secret\n  \
        quorate operator new monitor --read-only --secret-file /etc/mysql/quorate.secret"
    )]
    Operator {
        #[command(subcommand)]
        what: Operator,
    },
    /// Keep addresses and credential of a group under a name, for --cluster
    #[command(
        long_about = "Keeps addresses and credential of a group under a name, for --cluster, in a file of \
        your configuration folder (clusters.json in $XDG_CONFIG_HOME/quorate, or ~/.config/quorate). Of a \
        credential only the place is kept, and none that only the environment names.\n\n\
        Examples:\n  quorate cluster add shop --seed 10.0.0.1:4567,10.0.0.2:4567 --operator-file ~/ann.operator\n  \
        quorate status --cluster shop"
    )]
    Cluster {
        #[command(subcommand)]
        what: Clusters,
    },
    /// Make the key with which a node encrypts its log
    #[command(
        long_about = "Makes the key with which a node encrypts the group log, and the snapshots beside it, on its \
        disk: 256 random bits in a file. Each node, loggers too, has its own.\n\n\
        Examples:\n  quorate key new /etc/mysql/quorate.key\n  \
        quorate key add /etc/mysql/quorate.key"
    )]
    Key {
        #[command(subcommand)]
        what: Key,
    },
    /// Make the MariaDB server that is installed here a member of a group, or undo that
    #[command(
        long_about = "Makes the MariaDB server that is installed on this machine a member of a group: \
        writes one file of options, makes the directory of the group's log and, on the first server, \
        the group's secret. It shows all of that before it asks, and does not restart the server; what \
        to do next is printed. Run again, for instance with more members, it shows what it adds, changes and \
        removes; what it is not told stays, and so do lines of the file that it does not know.\n\n\
        Examples:\n  quorate setup --first --members 10.0.0.1,10.0.0.2,10.0.0.3      on the first server\n  \
        quorate setup --members 10.0.0.1,10.0.0.2,10.0.0.3              on the others\n  \
        quorate setup --members 10.0.0.1,10.0.0.2,10.0.0.3 --zone eu --option quorate.log_retain=4G\n  \
        quorate setup --undo"
    )]
    Setup(Setup),
    /// Show and change who belongs to the group
    #[command(
        long_about = "Shows and changes who belongs to the group: roles, priorities, zones. A server \
        is added by starting it (wsrep_cluster_address), a logger by `quorate logger`, and in a cluster of \
        this command both by `member add`; both are removed when they stop cleanly.\n\n\
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
    /// Hand leadership to another node; while every node takes writes, no client sees an error
    #[command(
        long_about = "Hands leadership from the node that leads to another one, for instance before \
        its machine is serviced. Commits that are under way wait for some milliseconds and go to the \
        new leader. Where every node takes writes, no client sees an error: the leader is only where the \
        order of commits is decided. With a single primary the primary moves, too: transactions that are \
        open on the former one are rolled back, and the application repeats them on the new one.\n\n\
        With --at or --after the command looks first whether it could be done now, and then waits in the \
        foreground. systemd can do that instead of you; neither way outlives a reboot:\n\n  \
        systemd-run --unit=switchover --on-calendar='2026-12-01 02:00:00 UTC' quorate switchover --to db2 --cluster shop\n  \
        systemctl list-timers switchover.timer      when it will be\n  \
        journalctl -u switchover                    afterwards: whether it worked\n  \
        systemctl stop switchover.timer             gives it up\n\n\
        Such a unit runs as root, so --cluster names what root keeps (`quorate cluster list`).\n\n\
        Examples:\n  quorate switchover             to the node whose log is furthest\n  \
        quorate switchover --to node2\n  quorate switchover --to node2 --at '2026-12-01 02:00:00'"
    )]
    Switchover(Switchover),
    Rules(Short<Rules>),
    ForceQuorum(Short<Force>),
    Reinit(Short<Reinit>),
    /// Keep leadership and members as they are while you work on the group
    #[command(
        long_about = "While a group is paused, nothing hands leadership over or expels a member by itself: not \
        priorities, not leader_follows_writes, not quorate.expel_timeout. Writes go on, and if the leader fails, \
        another one is elected as ever: a pause does not make the group less available. Orders are carried out. \
        It ends with `quorate resume`; `quorate status` says that the group is paused.\n\n\
        Example:\n  quorate pause && reboot-everything && quorate resume"
    )]
    Pause(Pause),
    /// End a pause
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
