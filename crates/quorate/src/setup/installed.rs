//! The MariaDB server that is installed on this machine, and what its files of options say.

use super::file::canonical;
use anyhow::{bail, Context, Result};
use quorate_lab::server::{find_program, missing};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The group of options of the scripts that transfer the state.
pub const TRANSFERS: &str = "sst";

/// Programs of state transfers, with Debian's packages: with whom there is none the transfer fails, and not before.
const TRANSFER_PROGRAMS: [(&str, &str); 3] =
    [("mariadb-backup", "mariadb-backup"), ("socat", "socat"), ("openssl", "openssl")];

/// Debian's packages of the programs of state transfers that are not there.
pub fn missing_packages() -> Vec<&'static str> {
    let missing = TRANSFER_PROGRAMS.iter().filter(|(program, _)| find_program(program).is_none());
    missing.map(|(_, package)| *package).collect()
}

/// By which systemd may hold the server's port while the server is not there.
pub const SOCKET: &str = "mariadb.socket";
/// The server's unit.
const SERVICE: &str = "mariadb.service";

/// Whether it does, or will from the next boot on. Then the server cannot start as a member: what looks for its position
/// before, `galera_recovery`, binds that port.
pub fn port_is_held() -> bool {
    let is = |what| {
        let asked = Command::new("systemctl").args([what, "--quiet", SOCKET]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    runs_systemd() && (is("is-active") || is("is-enabled"))
}

fn runs_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// What systemd leaves the server of the folders of users, in the words of its units; `no`: all.
pub fn protect_home() -> String {
    let show = ["show", "--property=ProtectHome", "--value", SERVICE];
    let asked = runs_systemd().then(|| Command::new("systemctl").args(show).output());
    match asked {
        Some(Ok(output)) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => "no".to_owned(),
    }
}

/// Has systemd let go of the port, from now on.
pub fn free_port() -> Result<()> {
    let asked = Command::new("systemctl").args(["disable", "--now", SOCKET]).output();
    let output = asked.context("running systemctl")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "systemctl disable --now {SOCKET} failed: {}. The option file was not written, and the server was not \
             touched. With this unit no member can start: disable it, then run quorate setup again",
            said.trim()
        );
    }
    Ok(())
}

/// The options that a program would start with, in the order in which it reads them: the last one
/// of a name is in force.
pub struct Installed {
    options: Vec<(String, String)>,
}

impl Installed {
    /// Of the server.
    pub fn look() -> Result<Installed> {
        Installed::read("--mysqld")
    }

    /// Of the scripts that transfer the state.
    pub fn of_transfers() -> Result<Installed> {
        Installed::read(TRANSFERS)
    }

    /// Asks MariaDB's own reader of option files for a group of options, or those of a program.
    fn read(group: &str) -> Result<Installed> {
        let program = find_program("my_print_defaults").ok_or_else(|| {
            missing("my_print_defaults", &["mariadb-server", "mariadb-backup", "socat"])
        })?;
        let output = Command::new(&program)
            .arg(group)
            .output()
            .with_context(|| format!("running {}", program.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("the server's files of options cannot be read: {}", said.trim());
        }
        Ok(Installed::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Lines of the form `--name=value`.
    #[cfg(test)]
    pub fn of(lines: &str) -> Installed {
        Installed::parse(lines)
    }

    fn parse(lines: &str) -> Installed {
        let option = |line: &str| {
            let option = line.trim().strip_prefix("--")?;
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            Some((canonical(name), value.to_owned()))
        };
        Installed { options: lines.lines().filter_map(option).collect() }
    }

    /// The value in force.
    pub fn option(&self, name: &str) -> Option<&str> {
        let name = canonical(name);
        let found = self.options.iter().rev().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn datadir(&self) -> PathBuf {
        PathBuf::from(self.option("datadir").unwrap_or("/var/lib/mysql"))
    }

    /// The library that the server loads now, if that is not Quorate's.
    pub fn other_provider(&self) -> Option<&Path> {
        let path = Path::new(self.option("wsrep_provider")?);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let other = !name.is_empty() && name != "none" && !name.starts_with("libquorate");
        other.then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_option_of_a_name_is_in_force() {
        let installed = Installed::parse(
            "--datadir=/srv/a\n--bind-address=127.0.0.1\n--skip-log-bin\n--bind_address=0.0.0.0\n",
        );
        assert_eq!(installed.option("bind-address"), Some("0.0.0.0"));
        assert_eq!(installed.option("skip_log_bin"), Some(""));
        assert_eq!(installed.option("port"), None);
        assert_eq!(installed.datadir(), Path::new("/srv/a"));
        assert_eq!(Installed::parse("").datadir(), Path::new("/var/lib/mysql"));
    }

    #[test]
    fn a_server_with_galera_is_noticed() {
        let other = |line: &str| Installed::parse(line).other_provider().map(Path::to_owned);
        let galera = "/usr/lib/galera/libgalera_smm.so";
        assert_eq!(other(&format!("--wsrep-provider={galera}")), Some(PathBuf::from(galera)));
        for none in ["", "--wsrep_provider=none", "--wsrep_provider=/usr/lib/quorate/libquorate.so"]
        {
            assert_eq!(other(none), None, "{none}");
        }
    }
}
