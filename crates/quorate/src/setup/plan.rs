//! What has to be done to make a server a member: decided from what is there, before anything changes.

use super::{Installed, TRANSFERS};
use crate::args::Setup;
use crate::failure::{Failure, USAGE};
use anyhow::{bail, Context, Result};
use quorate_lab::server::{find_provider, transfer_options, SERVER_OPTIONS};
use quorate_live::{page, SecretOptions, Security};
use std::fs;
use std::net::{IpAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};

const HEAD: &str = "# Written by `quorate setup`; `quorate setup --undo` removes it.\n";

pub enum Step {
    /// The group's secret, which the other servers get a copy of.
    MakeSecret(PathBuf),
    /// The directory of the group's log.
    MakeLogDir(PathBuf),
    WriteConfig {
        path: PathBuf,
        text: String,
    },
}

pub struct Plan {
    pub steps: Vec<Step>,
    /// This server's address.
    pub own: String,
    /// All others'.
    pub others: Vec<String>,
    pub secret: PathBuf,
    pub config: PathBuf,
    /// What the file of options says.
    pub text: String,
}

impl Plan {
    pub fn make(args: &Setup, installed: &Installed) -> Result<Plan> {
        if let Some(other) = installed.other_provider() {
            bail!(
                "this server runs with {}: nothing was changed. To take a cluster over from Galera, read {}; for a \
                 new cluster, first remove its wsrep_ lines",
                other.display(),
                page!("docs/from-galera.md")
            );
        }
        let own = match &args.address {
            Some(address) => find_named(address, &args.members)?,
            None => find_own(&args.members)?,
        };
        let datadir = installed.datadir();
        let log_dir = args.log_dir.clone().unwrap_or_else(|| beside(&datadir));
        if log_dir.starts_with(&datadir) {
            let message = format!(
                "--log-dir {} is inside the data directory, which a state transfer replaces: choose \
                 another place",
                log_dir.display()
            );
            return Err(Failure::new(USAGE, message).into());
        }
        let secret = std::path::absolute(&args.secret_file)?;
        let provider = find_provider(args.provider.as_deref())?;
        let text = options(args, &own, &provider, &log_dir, &secret);

        let mut steps = Vec::new();
        if !secret.is_file() {
            if !args.first {
                bail!(
                    "{0} is not there: nothing was changed. Copy it from the server that was set up \
                     with --first, to the same place: scp THAT-SERVER:{0} {0}",
                    secret.display()
                );
            }
            steps.push(Step::MakeSecret(secret.clone()));
        }
        if !log_dir.is_dir() {
            steps.push(Step::MakeLogDir(log_dir));
        }
        let config = std::path::absolute(&args.config)?;
        let present = read(&config)?;
        if present.as_deref() != Some(&text) {
            steps.push(Step::WriteConfig { path: config.clone(), text: text.clone() });
        }
        let others = args.members.iter().filter(|member| **member != own).cloned().collect();
        Ok(Plan { steps, own, others, secret, config, text })
    }
}

/// The file, if it is one that [`Plan`] wrote; an error if it is somebody else's.
pub fn read(config: &Path) -> Result<Option<String>> {
    match fs::read_to_string(config) {
        Ok(text) if text.starts_with(HEAD) => Ok(Some(text)),
        Ok(_) => bail!(
            "{} was not written by `quorate setup`, and stays as it is: move it away, or name another \
             file with --config",
            config.display()
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", config.display())),
    }
}

fn options(args: &Setup, own: &str, provider: &Path, log_dir: &Path, secret: &Path) -> String {
    let provider_options =
        format!("\"quorate.dir={};quorate.secret_file={}\"", log_dir.display(), secret.display());
    let own_options = [
        ("wsrep_provider", provider.display().to_string()),
        ("wsrep_cluster_name", args.cluster_name.clone()),
        ("wsrep_cluster_address", format!("gcomm://{}", args.members.join(","))),
        ("wsrep_node_address", own.to_owned()),
        ("wsrep_provider_options", provider_options),
        ("wsrep_sst_method", "mariabackup".to_owned()),
        // MariaDB's root account of that name lets the system account in, without a password.
        ("wsrep_sst_auth", "mysql:".to_owned()),
        ("bind-address", "0.0.0.0".to_owned()),
    ];
    let file = secret.to_owned();
    let transfers =
        transfer_options(&Security::Secret(SecretOptions { file, dynamic: false }), log_dir);
    let mut text = format!("{HEAD}[mariadbd]\n");
    let shared = SERVER_OPTIONS.iter().map(|(name, value)| (*name, (*value).to_owned()));
    for (name, value) in own_options.into_iter().chain(shared) {
        text += &format!("{name:<30} = {value}\n");
    }
    text += &format!("\n[{TRANSFERS}]\n");
    for (name, value) in transfers {
        text += &format!("{name:<30} = {value}\n");
    }
    text
}

/// The directory's name with `-quorate`, beside it.
fn beside(datadir: &Path) -> PathBuf {
    let mut name = datadir.file_name().unwrap_or_default().to_owned();
    name.push("-quorate");
    datadir.with_file_name(name)
}

fn find_named(address: &str, members: &[String]) -> Result<String> {
    if members.iter().any(|member| member == address) {
        return Ok(address.to_owned());
    }
    let message = format!("--address {address} is not among --members {}", members.join(","));
    Err(Failure::new(USAGE, message).into())
}

/// The one member whose address is this host's.
fn find_own(members: &[String]) -> Result<String> {
    let own: Vec<&String> = members.iter().filter(|member| is_of_this_host(member)).collect();
    let all = members.join(",");
    let message = match own[..] {
        [only] => return Ok(only.clone()),
        [] => format!("none of --members {all} is an address of this host: check the list"),
        _ => format!("several of --members {all} are addresses of this host: say --address"),
    };
    Err(Failure::new(USAGE, message).into())
}

/// Whether a socket can be bound to it: port 0 is any that is free.
fn is_of_this_host(member: &str) -> bool {
    let Ok(addresses) = (host(member), 0).to_socket_addrs() else { return false };
    addresses.into_iter().any(|address| TcpListener::bind(address).is_ok())
}

/// Of `HOST`, `HOST:PORT`, `[V6]:PORT` or a bare V6 address.
fn host(member: &str) -> &str {
    if member.parse::<IpAddr>().is_ok() {
        return member;
    }
    let host = member.rsplit_once(':').map_or(member, |(host, _)| host);
    host.trim_matches(['[', ']'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::collections::BTreeSet;

    #[derive(Parser)]
    struct Told {
        #[command(flatten)]
        setup: Setup,
    }

    fn told(words: &[&str]) -> Setup {
        Told::try_parse_from([&["setup"], words].concat()).unwrap_or_else(|e| panic!("{e}")).setup
    }

    #[test]
    fn hosts_of_members() {
        for (member, of) in [
            ("10.0.0.1", "10.0.0.1"),
            ("db1.example.com:4567", "db1.example.com"),
            ("[2001:db8::1]:4567", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(host(member), of);
        }
    }

    #[test]
    fn a_server_finds_itself_among_the_members() {
        let members = |list: &[&str]| list.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>();
        // 192.0.2.0/24 is for documentation: no host has such an address.
        let found = find_own(&members(&["192.0.2.7", "127.0.0.1:4567", "192.0.2.8"]));
        assert_eq!(found.unwrap(), "127.0.0.1:4567");
        let none = find_own(&members(&["192.0.2.7"])).unwrap_err().to_string();
        assert!(none.contains("is an address of this host"), "{none}");
        let both = find_own(&members(&["127.0.0.1:1", "127.0.0.1:2"])).unwrap_err().to_string();
        assert!(both.contains("--address"), "{both}");
        assert!(find_named("10.9.9.9", &members(&["10.9.9.8"])).is_err());
    }

    #[test]
    fn the_options_are_those_of_the_readme() {
        let args = told(&["--members", "10.0.0.1,10.0.0.2,10.0.0.3", "--cluster-name", "mine"]);
        let text = options(
            &args,
            "10.0.0.1",
            Path::new("/usr/lib/quorate/libquorate.so"),
            Path::new("/var/lib/mysql-quorate"),
            Path::new("/etc/mysql/quorate.secret"),
        );
        // Of each group.
        let settings = |text: &str| {
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            let mut group = "[mariadbd]";
            let mut settings = BTreeSet::new();
            for line in lines {
                match line.split_once('=') {
                    Some((name, value)) => {
                        settings.insert([group, name.trim(), value.trim()].map(str::to_owned));
                    }
                    None if line.starts_with('[') => group = line,
                    None => {}
                }
            }
            settings
        };
        let readme = include_str!("../../../../README.md");
        let (_, block) = readme.split_once("```ini\n[mariadbd]\n").expect("a my.cnf");
        let (block, _) = block.split_once("```").expect("its end");
        assert_eq!(settings(&text), settings(block));
    }

    #[test]
    fn a_log_inside_the_data_is_refused_and_galera_is_left_alone() {
        let members = ["--members", "127.0.0.1", "--first", "--log-dir", "/var/lib/mysql/log"];
        let plan = |defaults: &str| Plan::make(&told(&members), &Installed::of(defaults));
        let refused = plan("").err().expect("an error").to_string();
        assert!(refused.contains("inside the data directory"), "{refused}");
        let refused = plan("--wsrep_provider=/usr/lib/galera/libgalera_smm.so\n");
        let refused = refused.err().expect("an error").to_string();
        assert!(refused.contains("from-galera.md"), "{refused}");
        assert_eq!(beside(Path::new("/srv/data/")), Path::new("/srv/data-quorate"));
    }
}
