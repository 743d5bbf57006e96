//! What `setup` is told.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct Setup {
    /// Group addresses of all servers and loggers, HOST or HOST:PORT
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',', required_unless_present = "undo")]
    pub members: Vec<String>,

    /// This server's address among them [default: the one that this host has]
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,

    /// This is the server whose data the cluster is to have; makes the secret
    #[arg(long)]
    pub first: bool,

    /// The group's name (wsrep_cluster_name)
    #[arg(long, value_name = "NAME", default_value = "quorate")]
    pub cluster_name: String,

    /// The group's secret, the same file on all servers
    #[arg(long, value_name = "FILE", default_value = "/etc/mysql/quorate.secret")]
    pub secret_file: PathBuf,

    /// Where the group's log is to be [default: beside the data directory, its name with -quorate]
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,

    /// The file that is written
    #[arg(long, value_name = "FILE", default_value = "/etc/mysql/mariadb.conf.d/70-quorate.cnf")]
    pub config: PathBuf,

    /// The library [default: the installed one]
    #[arg(long, value_name = "FILE")]
    pub provider: Option<PathBuf>,

    /// Go ahead without asking
    #[arg(short, long)]
    pub yes: bool,

    /// Take the server out of the cluster's configuration; its data stays
    #[arg(long, conflicts_with_all = ["members", "address", "first"])]
    pub undo: bool,
}
