//! What `setup` is told.

use crate::setup::provider::{setting, ZONE};
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct Setup {
    /// Group addresses of all servers and loggers, HOST or HOST:PORT
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',', required_unless_present = "undo")]
    pub members: Vec<String>,

    /// This server's address among them [default: as it is, or the one that this host has]
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,

    /// This is the server whose data the cluster is to have; makes the secret
    #[arg(long)]
    pub first: bool,

    /// The group's name (wsrep_cluster_name) [default: as it is, or quorate]
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,

    /// The data centre that this server stands in (quorate.zone). It counts when the server joins for the first
    /// time; later: quorate member set NAME --zone ZONE
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    pub zone: Option<String>,

    /// An option of the provider, as in wsrep_provider_options; may be given several times. NAME= takes one out
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = setting)]
    pub options: Vec<(String, String)>,

    /// The group's secret, the same file on all servers [default: as it is, or /etc/mysql/quorate.secret]
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,

    /// Where the group's log is to be [default: as it is, or beside the data directory, its name with -quorate]
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,

    /// The file that is written
    #[arg(long, value_name = "FILE", default_value = "/etc/mysql/mariadb.conf.d/70-quorate.cnf")]
    pub config: PathBuf,

    /// The library [default: as it is, or the installed one]
    #[arg(long, value_name = "FILE")]
    pub provider: Option<PathBuf>,

    /// Go ahead without asking
    #[arg(short, long)]
    pub yes: bool,

    /// Print one JSON object; without --yes it has what would be done, and nothing is changed
    #[arg(long)]
    pub json: bool,

    /// Take the server out of the cluster's configuration; its data stays
    #[arg(long, conflicts_with_all = ["members", "address", "first", "zone", "options"])]
    pub undo: bool,
}

fn zone(text: &str) -> Result<String, String> {
    setting(&format!("{ZONE}={text}")).map(|(_, zone)| zone)
}
