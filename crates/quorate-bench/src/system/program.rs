//! The two servers that systems are made of.

use anyhow::{bail, ensure, Context, Result};
use quorate_lab::server::{self, Account, Node};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LOADER: &str = "lib64/ld-linux-x86-64.so.2";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const SERVER: &str = "usr/sbin/mysqld";
const PLUGIN: &str = "usr/lib/mysql/plugin/group_replication.so";

const HOW_TO_GET_MYSQL: &str = "\
    MySQL Group Replication needs a MySQL beside the MariaDB that is installed here, in a folder of its \
    own that --mysql-root names. On Debian, as root: debootstrap --variant=minbase \
    --include=mysql-server-core,mysql-client-core sid /srv/mysql (650 MB), then --mysql-root /srv/mysql";

#[derive(Clone, Debug)]
pub enum Program {
    /// As installed on this machine.
    MariaDb,
    /// MySQL of another Debian, in the folder where that is installed. It runs with that Debian's own
    /// loader and libraries.
    MySql { root: Option<PathBuf> },
}

impl Program {
    /// An error that says what is missing.
    pub fn check(&self) -> Result<()> {
        match self {
            Program::MariaDb => {
                server::require_programs()?;
                server::find_mariadbd().map(drop)
            }
            Program::MySql { root } => {
                let root = root.as_deref().context(HOW_TO_GET_MYSQL)?;
                for needed in [LOADER, SERVER, PLUGIN] {
                    let path = root.join(needed);
                    ensure!(path.exists(), "{} does not exist. {HOW_TO_GET_MYSQL}", path.display());
                }
                match Account::choose()?.blocked_at(root) {
                    Some(folder) => {
                        bail!("{}: the servers' account may not enter it", folder.display())
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// Starts nothing yet.
    pub fn command(&self) -> Result<Command> {
        match self {
            Program::MariaDb => Ok(Command::new(server::find_mariadbd()?)),
            Program::MySql { root } => {
                let root = root.as_deref().context(HOW_TO_GET_MYSQL)?;
                let mut command = Command::new(root.join(LOADER));
                command.arg("--library-path").arg(root.join(LIBRARIES)).arg(root.join(SERVER));
                Ok(command)
            }
        }
    }

    /// Where it finds what belongs to it: nothing where it is installed.
    pub fn options(&self) -> Vec<(String, String)> {
        let Program::MySql { root: Some(root) } = self else { return Vec::new() };
        let places = [
            ("basedir", "usr"),
            ("plugin_dir", "usr/lib/mysql/plugin"),
            ("lc_messages_dir", "usr/share/mysql"),
        ];
        let path = |below| root.join(below).display().to_string();
        places.map(|(name, below)| (name.to_owned(), path(below))).into()
    }

    /// Datadirs of equal content.
    pub fn make_datadirs(&self, nodes: &[Node], template: &Path, account: &Account) -> Result<()> {
        match self {
            Program::MariaDb => server::make_datadirs(nodes, template, account),
            Program::MySql { .. } => {
                server::copy_datadirs(nodes, template, account, |data, tmp| {
                    self.initialize(data, tmp, account)
                })
            }
        }
    }

    fn initialize(&self, data: &Path, tmp: &Path, account: &Account) -> Result<()> {
        let mut command = self.command()?;
        command.args(["--no-defaults", "--initialize-insecure"]);
        command.args(account.switch.then(|| format!("--user={}", account.name)));
        for (name, value) in self.options() {
            command.arg(format!("--{name}={value}"));
        }
        command.arg(format!("--datadir={}", data.display()));
        command.arg(format!("--tmpdir={}", tmp.display()));
        let output = command.output().context("running mysqld")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "mysqld --initialize-insecure failed:\n{said}");
        // The server's own uuid, which no two of a group may share: each makes its own.
        fs::remove_file(data.join("auto.cnf")).context("removing the server's uuid")
    }
}
