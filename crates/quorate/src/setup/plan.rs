//! What has to be done to make a server a member: decided from what is there, before anything changes.
//!
//! Invariant: what is not said stays as the file of options has it, so that a second run with other members changes
//! those alone.

use super::access::Aim;
use super::address::{bracketed, find_named, find_own, is_v6, port};
use super::file::{self, changes, Change, Settings, PROVIDER_OPTIONS};
use super::place::{self, holds_log};
use super::provider::{is_file, ProviderOptions, DIR, LISTEN, SECRET_FILE, ZONE};
use super::{missing_packages, port_is_held, Access, Installed, Step};
use crate::args::Setup;
use crate::failure::{Failure, USAGE};
use anyhow::{bail, Result};
use quorate_lab::server::{find_provider, transfer_options, Ports, SERVER_OPTIONS};
use quorate_live::{page, SecretOptions, Security};
use std::path::{Path, PathBuf};

const CLUSTER_NAME: &str = "quorate";
const SECRET: &str = "/etc/mysql/quorate.secret";
/// All addresses, of IPv4 and of both.
const ANY: [&str; 2] = ["0.0.0.0", "::"];
/// Options of the server that a member works without, or with other values: whoever chose those keeps them.
const ADJUSTABLE: [&str; 6] = [
    "bind-address",
    "wsrep_sst_method",
    "wsrep_sst_auth",
    "wsrep_slave_threads",
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
];

pub fn is_adjustable(name: &str) -> bool {
    ADJUSTABLE.iter().any(|known| file::canonical(known) == file::canonical(name))
}

pub struct Plan {
    pub steps: Vec<Step>,
    /// This server's address.
    pub own: String,
    /// All others'.
    pub others: Vec<String>,
    /// Of a group whose members know each other by it.
    pub secret: Option<PathBuf>,
    pub config: PathBuf,
    /// What is decided here: the file has it, and what is kept of the former one.
    pub text: String,
    /// None of a new file.
    pub former: Option<String>,
    /// The server has been a member by the former file: its data is the group's.
    pub is_member: bool,
    pub changes: Vec<Change>,
    /// Debian's packages without which no state transfer succeeds.
    pub missing: Vec<&'static str>,
}

impl Plan {
    pub fn make(args: &Setup, installed: &Installed, access: &Access) -> Result<Plan> {
        if let Some(other) = installed.other_provider() {
            bail!(
                "this server runs with {}: nothing was changed. To take a cluster over from Galera, read {}; for a \
                 new cluster, first remove its wsrep_ lines",
                other.display(),
                page!("docs/from-galera.md")
            );
        }
        let config = std::path::absolute(&args.config)?;
        let former = file::read(&config)?;
        let decided = Decided::of(args, installed, former.as_deref().unwrap_or_default())?;
        if let Some(why) = access.barred(&config, Aim::Read) {
            bail!("--config {}: {why}. Nothing was changed", config.display());
        }
        decided.check_read(access)?;
        let log_dir = Path::new(decided.options.get(DIR).unwrap_or_default());
        let secret = decided.options.get(SECRET_FILE).map(PathBuf::from);

        let mut steps = Vec::new();
        if let Some(secret) = &secret {
            steps.extend(place::secret(secret, args.first, access)?);
        }
        steps.extend(place::log_dir(log_dir, access)?);
        let (text, whole) = decided.render(former.as_deref().unwrap_or_default());
        let changes = changes(former.as_deref().unwrap_or_default(), &whole);
        let is_read = access.unread(&config).is_none();
        // Of another log, or of none, it would be a new member; and by a file that it could not read, it was none.
        let is_member = former.is_some() && is_read && holds_log(log_dir);
        if port_is_held() {
            steps.push(Step::FreePort);
        }
        if former.as_deref() != Some(&*whole) || !is_read {
            steps.push(Step::WriteConfig { path: config.clone(), text: whole });
        }
        let Decided { own, members, .. } = decided;
        let others = members.into_iter().filter(|member| *member != own).collect();
        let missing = missing_packages();
        Ok(Plan { steps, own, others, secret, config, text, former, is_member, changes, missing })
    }
}

/// What the file of options is to say.
struct Decided {
    own: String,
    members: Vec<String>,
    cluster_name: String,
    provider: PathBuf,
    options: ProviderOptions,
    security: Security,
}

impl Decided {
    fn of(args: &Setup, installed: &Installed, former: &str) -> Result<Decided> {
        let members: Vec<String> = args.members.iter().map(|member| bracketed(member)).collect();
        let present = |name| file::value(former, name);
        let own = match (&args.address, present("wsrep_node_address")) {
            (Some(address), _) => find_named(&bracketed(address), &members)?,
            (None, Some(before)) if members.contains(&before) => before,
            (None, _) => find_own(&members)?,
        };
        let name = args.cluster_name.clone().or_else(|| present("wsrep_cluster_name"));
        // Without a file of ours, another one may have some already, which ours would hide.
        let in_force = || installed.option(PROVIDER_OPTIONS).map(ProviderOptions::parse);
        let mut options = file::provider_options(former).or_else(in_force).unwrap_or_default();
        let dir = log_dir(args, installed, options.take(DIR))?;
        let secret = options.take(SECRET_FILE);
        for (name, value) in &args.options {
            let path = Path::new(value);
            if is_file(name) && !value.is_empty() && !(path.is_absolute() && path.is_file()) {
                let message = format!(
                    "{name}={value}: there is no such file (name it from / on). Nothing was changed"
                );
                return Err(Failure::new(USAGE, message).into());
            }
            options.set(name, value);
        }
        if let Some(zone) = &args.zone {
            options.set(ZONE, zone);
        }
        let base = options.get("base_port").and_then(|port| port.parse().ok());
        let told = port(&own);
        let port = told.or(base).unwrap_or(Ports::USUAL.group);
        // The group's port is on all IPv4 addresses otherwise.
        if is_v6(&own) && options.get(LISTEN).is_none() {
            options.set(LISTEN, &format!("tcp://[::]:{port}"));
        }
        let mut first = vec![(DIR, dir.display().to_string())];
        let security = security(args, &options, secret)?;
        // The server would refuse to start.
        let group = if told.is_some() { own.clone() } else { format!("{own}:{port}") };
        let unfit = |error| Failure::new(USAGE, format!("{error}. Nothing was changed"));
        security.check_reach(&group, &group).map_err(unfit)?;
        if let Security::Secret(SecretOptions { file, .. }) = &security {
            first.push((SECRET_FILE, file.display().to_string()));
        }
        options.begin_with(first);
        let before = present("wsrep_provider").map(PathBuf::from).filter(|path| path.is_file());
        let provider =
            find_provider(args.provider.as_ref().or(before.as_ref()).map(PathBuf::as_path))?;
        let cluster_name = name.unwrap_or_else(|| CLUSTER_NAME.to_owned());
        Ok(Decided { own, members, cluster_name, provider, options, security })
    }

    /// Refuses files that the server needs, and its account cannot read. The secret is looked at for itself.
    fn check_read(&self, access: &Access) -> Result<()> {
        if let Some(why) = access.unread(&self.provider) {
            bail!(
                "the library {}: {why}. The package quorate-provider puts it where the server finds it; --provider \
                 names another place. Nothing was changed",
                self.provider.display()
            );
        }
        let files = self.options.iter().filter(|(name, _)| is_file(name) && *name != SECRET_FILE);
        for (name, file) in files {
            let path = Path::new(file);
            if let Some(why) = access.unread(path).filter(|_| path.is_absolute()) {
                bail!("{name}={file}: {why}. Nothing was changed");
            }
        }
        Ok(())
    }

    /// What is decided, and the whole file, with what is kept of the former one.
    fn render(&self, former: &str) -> (String, String) {
        let any = if is_v6(&self.own) { ANY[1] } else { ANY[0] };
        let own_options = [
            ("wsrep_provider", self.provider.display().to_string()),
            ("wsrep_cluster_name", self.cluster_name.clone()),
            ("wsrep_cluster_address", format!("gcomm://{}", self.members.join(","))),
            ("wsrep_node_address", self.own.clone()),
            (PROVIDER_OPTIONS, format!("\"{}\"", self.options.render())),
            ("wsrep_sst_method", "mariabackup".to_owned()),
            // MariaDB's root account of that name lets the system account in, without a password.
            ("wsrep_sst_auth", "mysql:".to_owned()),
            ("bind-address", any.to_owned()),
        ];
        let shared = SERVER_OPTIONS.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let server = own_options.into_iter().chain(shared);
        let server: Vec<_> =
            server.map(|(name, value)| (name, adjusted(former, name, value))).collect();
        let log_dir = Path::new(self.options.get(DIR).unwrap_or_default());
        let transfers = transfer_options(&self.security, log_dir);
        let settings = Settings { server: &server, transfers: &transfers };
        (settings.render(""), settings.render(former))
    }
}

/// As the former file has it, if somebody may have chosen that. All addresses are our own choice, of the one family or the
/// other.
fn adjusted(former: &str, name: &str, value: String) -> String {
    let chosen = file::value(former, name).filter(|before| !ANY.contains(&before.as_str()));
    match is_adjustable(name) {
        true => chosen.unwrap_or(value),
        false => value,
    }
}

/// As it is said, or as it is, or beside the data.
fn log_dir(args: &Setup, installed: &Installed, before: Option<String>) -> Result<PathBuf> {
    let datadir = installed.datadir();
    let dir = args.log_dir.clone().or(before.map(PathBuf::from));
    let dir = std::path::absolute(dir.unwrap_or_else(|| beside(&datadir)))?;
    if dir.starts_with(&datadir) {
        let message = format!(
            "--log-dir {} is inside the data directory, which a state transfer replaces: choose \
             another place",
            dir.display()
        );
        return Err(Failure::new(USAGE, message).into());
    }
    Ok(dir)
}

/// By the secret, unless the options say otherwise.
fn security(args: &Setup, options: &ProviderOptions, before: Option<String>) -> Result<Security> {
    let usage = |message: String| anyhow::Error::from(Failure::new(USAGE, message));
    let otherwise = Security::in_options(&options.render());
    match (otherwise.map_err(|error| usage(error.to_string()))?, &args.secret_file) {
        (None, given) => {
            let file = given.clone().or(before.map(PathBuf::from));
            let file = std::path::absolute(file.unwrap_or_else(|| PathBuf::from(SECRET)))?;
            Ok(Security::Secret(SecretOptions { file, dynamic: false }))
        }
        (Some(other), None) => Ok(other),
        (Some(_), Some(_)) => Err(usage(
            "--secret-file: the options of the provider say already how members know each other (socket.ssl_cert, \
             quorate.insecure). Take those out (--option NAME=), or leave --secret-file out. Nothing was changed"
                .to_owned(),
        )),
    }
}

/// The directory's name with `-quorate`, beside it.
fn beside(datadir: &Path) -> PathBuf {
    let mut name = datadir.file_name().unwrap_or_default().to_owned();
    name.push("-quorate");
    datadir.with_file_name(name)
}

#[cfg(test)]
mod tests;
