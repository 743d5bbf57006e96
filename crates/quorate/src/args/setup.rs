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

    /// This is the server whose data the group is to have. Makes the secret
    #[arg(long)]
    pub first: bool,

    /// The group's name (wsrep_cluster_name) [default: as it is, or quorate]
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,

    /// The data centre that this server is in (quorate.zone). It counts when the server joins for the first
    /// time; later: quorate member set NAME --zone ZONE
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    pub zone: Option<String>,

    /// An option of the provider, as in wsrep_provider_options. May be given several times. NAME= removes one
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = setting)]
    pub options: Vec<(String, String)>,

    /// The group's secret, the same file on all servers [default: as it is, or /etc/mysql/quorate.secret]
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,

    /// The directory of the group's log [default: as it is, or beside the data directory, with -quorate added to its
    /// name]
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,

    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "/etc/mysql/mariadb.conf.d/70-quorate.cnf")]
    pub config: PathBuf,

    /// The library that the server loads [default: as it is, or the installed one]
    #[arg(long, value_name = "FILE")]
    pub provider: Option<PathBuf>,

    /// Go ahead without asking
    #[arg(short, long)]
    pub yes: bool,

    /// Print one JSON object. Without --yes, nothing is changed, and it shows what would be done
    #[arg(long)]
    pub json: bool,

    /// Make the server a standalone one again, at its next start. Its data stays
    #[arg(long, conflicts_with_all = [
        "members", "address", "first", "cluster_name", "zone", "options", "secret_file", "log_dir", "provider"
    ])]
    pub undo: bool,
}

fn zone(text: &str) -> Result<String, String> {
    setting(&format!("{ZONE}={text}")).map(|(_, zone)| zone)
}
