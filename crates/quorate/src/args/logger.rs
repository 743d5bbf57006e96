//! What a logger is told.

use super::certificate::Certificate;
use clap::Args;
use quorate_live::Operators;
use std::path::PathBuf;

#[derive(Args)]
#[command(mut_arg("ssl_ca", |arg| {
    arg.help("The CA that signs the members' certificates (PEM) [default: the certificate itself]")
}))]
#[command(mut_arg("ssl_names", |arg| {
    arg.help(
        "The names in the members' certificates (quorate.ssl_names). Needed with --ssl-ca if other hosts can reach \
         the logger. *: any certificate that the CA signed",
    )
}))]
pub struct Logger {
    /// The logger's name, as `member list` shows it
    #[arg(long, value_name = "NAME")]
    pub name: String,

    /// The group's name (wsrep_cluster_name of the servers)
    #[arg(long, value_name = "NAME")]
    pub cluster_name: String,

    /// The address at which the other members reach it, HOST:PORT
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub address: String,

    /// The address to listen on [default: the port of --address, on all IPv4 addresses, or on all IPv6 addresses if
    /// --address is one]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub listen: Option<String>,

    /// The group addresses of the servers, HOST:PORT
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',', required = true, value_parser = address)]
    pub join: Vec<String>,

    /// The directory of its log. It is made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub log_dir: PathBuf,

    /// The data centre that it is in
    #[arg(long, value_name = "ZONE", default_value = "")]
    pub zone: String,

    /// The group's secret: the file that quorate.secret_file names on the servers
    #[arg(long, value_name = "FILE", conflicts_with = "ssl_cert")]
    pub secret_file: Option<PathBuf>,

    #[command(flatten)]
    pub certificate: Certificate,

    /// The revocation lists for the members' certificates (PEM; socket.ssl_crl)
    #[arg(long, value_name = "FILE", requires = "ssl_ca")]
    pub ssl_crl: Option<PathBuf>,

    /// The cipher suites of TLS 1.3 that it may use (socket.ssl_cipher). Those of older versions have no effect
    /// [default: all]
    #[arg(long, value_name = "SUITES", requires = "ssl_cert")]
    pub ssl_cipher: Option<String>,

    /// The operators that are let in (quorate.operators): NAME[:read],... or none [default: with a secret, all that
    /// have a credential]
    #[arg(long, value_name = "NAMES", default_value = "")]
    pub operators: Operators,

    /// The file with this logger's keys (`quorate key new`). Its log is encrypted on disk with the first of them
    #[arg(long, value_name = "FILE")]
    pub encrypt_key_file: Option<PathBuf>,

    /// Refuse files of its log that are not encrypted (quorate.encrypt=only)
    #[arg(long, requires = "encrypt_key_file")]
    pub encrypt_only: bool,

    /// Allow plain connections, too, while the group changes over to encrypted ones, or back (socket.dynamic)
    #[arg(long)]
    pub dynamic: bool,

    /// Use neither a secret nor certificates: whoever reaches the port is trusted (quorate.insecure)
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
