//! The command line. Help texts are the manual: they say what happens and show an example.

use crate::cluster::Role;
use clap::{Args, Parser, Subcommand, ValueEnum};
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
        "  quorate sql node1          open a client on node1\n",
        "  quorate kill node1         kill -9, to see that nothing is lost\n",
        "  quorate up                 start whatever is not running\n",
        "  quorate down --wipe        stop everything and delete the data\n\n",
        "Exit codes:\n",
        "  0   done; status: every node is Synced\n",
        "  1   failed; status: degraded (some node is not Synced, but writes are accepted)\n",
        "  2   status: no node accepts writes, or nothing runs; chaos: a promise was broken\n",
        "  64  wrong command line\n",
        "  69  software is missing (the message names the package)\n",
        "  75  time limit passed; servers keep running\n\n",
        "Where the cluster is: --dir, else $QUORATE_DIR, else ./quorate-data, else\n",
        "/var/lib/quorate if ./quorate-data does not exist and a cluster is there."
    )
)]
pub struct Cli {
    #[command(flatten)]
    pub place: Place,

    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed or degraded, 2 no node accepts writes, \
    64 usage, 69 software missing, 75 time limit. More: quorate --help, quorate COMMAND --help";

#[derive(Args, Clone)]
pub struct Place {
    /// The cluster's directory
    #[arg(long, global = true, env = "QUORATE_DIR", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum Command {
    Up(Up),
    Status(Status),
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
        --address 10.0.0.3:4567 --join 10.0.0.1:4567,10.0.0.2:4567"
    )]
    Logger(Logger),
    /// Show and change who belongs to the group
    #[command(
        long_about = "Shows and changes who belongs to the group: roles, weights, zones. A server \
        is added by starting it (wsrep_cluster_address), a logger by `quorate logger`, and in a cluster of \
        this command both by `member add`; both are removed when they stop cleanly.\n\n\
        Examples:\n  quorate member list\n  quorate member add --role learner\n  \
        quorate member add --role logger\n  \
        quorate member set-role node3 learner\n  \
        quorate member set node1 --weight 100\n  quorate member remove node4"
    )]
    Member {
        #[command(subcommand)]
        what: Member,
    },
    /// Hand leadership to another node, without an error for any client
    #[command(
        long_about = "Hands leadership from the node that leads to another one, for instance before \
        its machine is serviced. Commits that are under way wait for some milliseconds and go to the \
        new leader; no client sees an error. Every node takes writes all the time: the leader is \
        only where the order of commits is decided.\n\n\
        Examples:\n  quorate switchover             to the node whose log is furthest\n  \
        quorate switchover --to node2"
    )]
    Switchover(Switchover),
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
}

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
        Example:\n  quorate status --json | jq '.nodes[] | select(.state != \"Synced\")'"
)]
pub struct Status {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
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

#[derive(Subcommand)]
pub enum Member {
    /// Every member: role, weight, votes, zone, address
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
    /// Change a member's role, weight or zone
    Set(MemberSet),
    /// Remove a member that will not come back
    Remove {
        /// Its name, as `member list` shows it
        name: String,
    },
    /// Show or set what holds for the whole group
    Rules {
        /// Zones that must have a commit on disk, besides a majority of all votes
        #[arg(long, value_name = "N")]
        zones: Option<u8>,

        /// When a leader makes room for a heavier member: optimistic (once that has caught up) or
        /// forced (at once)
        #[arg(long, value_name = "RULE")]
        weights: Option<String>,

        /// Who takes writes: every node (multi), or the leader alone (single), while the others are
        /// read_only
        #[arg(long, value_name = "MODE")]
        primary_mode: Option<String>,

        /// With a single primary: whether a new one takes writes at once (serve), or when it has
        /// applied its backlog (wait)
        #[arg(long, value_name = "RULE")]
        primary_failover: Option<String>,

        /// Whether leadership goes to the node that all writes come from: yes or no
        #[arg(long, value_name = "YES|NO")]
        leader_follows_writes: Option<String>,
    },
    /// Go on without a majority that is lost for good; says first what may be lost
    #[command(
        name = "force-quorum",
        long_about = "Goes on without a majority that is lost for good. Without --reason it only says \
        what would be kept and what may be lost, and changes nothing. It refuses while a majority may \
        be alive, and when a kept member has more in its log than the first one named: name that one \
        first then. The reason stands in the log with the change. The members given up never come back \
        with their logs: empty their directories before they are started again.\n\n\
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
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,

    /// Who leads rather: 0 (never) to 100
    #[arg(long, value_name = "WEIGHT")]
    pub weight: Option<u8>,

    /// The data centre it stands in
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
}

#[derive(Args)]
pub struct Force {
    /// The nodes that go on, the one with the longest log first
    #[arg(long, value_name = "NODES", value_delimiter = ',', required = true)]
    pub keep: Vec<String>,

    /// Why; does it
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Args)]
pub struct Logger {
    /// Its name, as `member list` shows it
    #[arg(long, value_name = "NAME")]
    pub name: String,

    /// The group's name (wsrep_cluster_name of the servers)
    #[arg(long, value_name = "NAME")]
    pub cluster_name: String,

    /// Where the others reach it, HOST:PORT
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub address: String,

    /// Where it listens [default: the port of --address on all addresses]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub listen: Option<String>,

    /// Group addresses of the servers, HOST:PORT
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',', required = true, value_parser = address)]
    pub join: Vec<String>,

    /// Where it keeps the log; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub log_dir: PathBuf,

    /// The data centre it stands in
    #[arg(long, value_name = "ZONE", default_value = "")]
    pub zone: String,

    /// Its certificate (PEM), if the group is encrypted
    #[arg(long, value_name = "FILE", requires = "ssl_key")]
    pub ssl_cert: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "ssl_cert")]
    pub ssl_key: Option<PathBuf>,

    /// Who signs the members' certificates (PEM) [default: the certificate itself]
    #[arg(long, value_name = "FILE", requires = "ssl_cert")]
    pub ssl_ca: Option<PathBuf>,
}

/// `HOST:PORT`, or `[V6]:PORT`.
fn address(text: &str) -> Result<String, String> {
    let form = || format!("{text:?} is not of the form HOST:PORT");
    let (host, port) = text.rsplit_once(':').ok_or_else(form)?;
    match host.is_empty() || port.parse::<u16>().is_err() {
        true => Err(form()),
        false => Ok(text.to_owned()),
    }
}

#[derive(Args)]
pub struct Switchover {
    /// The node that is to lead (node2, or just 2) [default: the one whose log is furthest]
    #[arg(long, value_name = "NODE")]
    pub to: Option<String>,
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

#[derive(Args)]
#[command(
    about = "Let things fail on a cluster made for it, and check that nothing promised was broken",
    long_about = "Makes a cluster of its own, lets clients work on it while nodes die, hang, are cut \
        off and lose their disks, mends everything, and checks: nothing acknowledged is lost, all \
        nodes are equal byte for byte, transfers balance, no causal read was stale, and which \
        isolation anomalies were seen.\n\n\
        The cluster's hosts are network namespaces and its disks a file system of this command's \
        own, so it needs root; --loopback uses plain processes, whose networks and disks do not \
        fail. Nothing of it is left afterwards but the folder of results: histories, faults, \
        the nodes' logs, verdict.txt, timeline.svg, report.html.\n\n\
        Exit code 0: everything held. 2: something did not. 75: the nodes did not come back in \
        time, or nothing was acknowledged. 1: the run could not be carried out.\n\n\
        Examples:\n  quorate chaos --minutes 5\n  \
        quorate chaos --schedule all --workload set,bank --seed 7\n  \
        quorate chaos --nodes 2 --loggers 1 --learners 1\n  \
        quorate chaos --system galera --schedule all --set innodb_flush_log_at_trx_commit=0"
)]
pub struct Chaos {
    /// What replicates
    #[arg(long, value_enum, default_value = "quorate")]
    pub system: ChaosSystem,

    /// Decides everything the schedule leaves open; printed, so that a run can be repeated
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// How many servers
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub nodes: u16,

    /// Members besides with a log and a vote, and no database; they are numbered last
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=4))]
    pub loggers: u16,

    /// Servers besides without a vote
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=4))]
    pub learners: u16,

    /// How long things fail
    #[arg(long, value_name = "M", default_value_t = 5.0)]
    pub minutes: f64,

    /// What clients do, see --list
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    pub workload: Vec<String>,

    /// What fails, see --list
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "every")]
    pub schedule: Vec<String>,

    /// Whether clients write to one node, or each to its own
    #[arg(long, value_enum, default_value = "all")]
    pub writers: ChaosWriters,

    /// The network: bare, lan, region, two-regions, three-regions
    #[arg(long, value_name = "NAME", default_value = "lan")]
    pub preset: String,

    /// Where results go [default: chaos-SEED]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// A server option; wins over those that `quorate up` sets, too
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Options of the provider: `key=value;key=value`
    #[arg(long, value_name = "OPTIONS")]
    pub provider_options: Option<String>,

    /// Plain processes on 127.0.0.1, without networks and disks that fail
    #[arg(long)]
    pub loopback: bool,

    /// Name all workloads and schedules
    #[arg(long)]
    pub list: bool,

    /// Only run the checkers again, on the folder of an earlier run
    #[arg(long, value_name = "DIR")]
    pub check: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChaosSystem {
    Quorate,
    /// As installed; to see that the checkers notice
    Galera,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChaosWriters {
    One,
    All,
}
