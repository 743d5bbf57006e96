//! What a logger is told.

use super::certificate::Certificate;
use clap::Args;
use quorate_live::Operators;
use std::path::PathBuf;

#[derive(Args)]
#[command(mut_arg("ssl_ca", |arg| {
    arg.help("Who signs the members' certificates (PEM) [default: the certificate itself]")
}))]
#[command(mut_arg("ssl_names", |arg| {
    arg.help(
        "The names that members' certificates are for (quorate.ssl_names): needed beside --ssl-ca where other hosts \
         can reach it; *: whatever the CA signed",
    )
}))]
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

    /// Where it listens [default: the port of --address, on all IPv4 addresses, or on all IPv6 addresses if
    /// --address is one]
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

    /// The group's secret: the file that quorate.secret_file names on the servers
    #[arg(long, value_name = "FILE", conflicts_with = "ssl_cert")]
    pub secret_file: Option<PathBuf>,

    #[command(flatten)]
    pub certificate: Certificate,

    /// Lists of members' certificates that were revoked (PEM; socket.ssl_crl)
    #[arg(long, value_name = "FILE", requires = "ssl_ca")]
    pub ssl_crl: Option<PathBuf>,

    /// The suites of TLS 1.3 that it speaks (socket.ssl_cipher); those of older versions have no effect [default:
    /// all]
    #[arg(long, value_name = "SUITES", requires = "ssl_cert")]
    pub ssl_cipher: Option<String>,

    /// Which operators are let in (quorate.operators): NAME[:read],... or none [default: with a secret, all
    /// that have a credential]
    #[arg(long, value_name = "NAMES", default_value = "")]
    pub operators: Operators,

    /// This logger's keys (`quorate key new`): its log is encrypted on disk with the first of them
    #[arg(long, value_name = "FILE")]
    pub encrypt_key_file: Option<PathBuf>,

    /// Files of its log that are in the clear are not read (quorate.encrypt=only)
    #[arg(long, requires = "encrypt_key_file")]
    pub encrypt_only: bool,

    /// Plain connections are allowed, too, while the group is switched over (socket.dynamic)
    #[arg(long)]
    pub dynamic: bool,

    /// Without secret and certificates: whoever reaches the port is believed (quorate.insecure)
    #[arg(long, conflicts_with_all = ["secret_file", "ssl_cert"])]
    pub insecure: bool,
}

/// `HOST:PORT`, or `[V6]:PORT`.
pub(super) fn address(text: &str) -> Result<String, String> {
    let form = || format!("{text:?} is not of the form HOST:PORT");
    let (host, port) = text.rsplit_once(':').ok_or_else(form)?;
    match host.is_empty() || port.parse::<u16>().is_err() {
        true => Err(form()),
        false => Ok(text.to_owned()),
    }
}
