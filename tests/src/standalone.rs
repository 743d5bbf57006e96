//! A single server without replication: what a commit costs at least.

use anyhow::{ensure, Context, Result};
use quorate_cli::cluster::Account;
use quorate_cli::server::{find_mariadbd, find_program};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
const START_LIMIT: Duration = Duration::from_secs(60);
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs until dropped. Configured like a cluster's node (`innodb_flush_log_at_trx_commit=0`).
pub struct Standalone {
    dir: PathBuf,
    server: Child,
}

impl Standalone {
    /// Makes and starts it in `dir`, which must not exist.
    pub fn start(dir: &Path) -> Result<Standalone> {
        let account = Account::choose()?;
        fs::create_dir_all(dir)?;
        account.own(dir, 0o700)?;
        let data = format!("--datadir={}", dir.join("data").display());
        let user = account.switch.then(|| format!("--user={}", account.name));
        let install = find_program("mariadb-install-db").context("no mariadb-install-db")?;
        let output = Command::new(install)
            .args(["--no-defaults", "--skip-test-db", &data])
            .args(["--auth-root-authentication-method=socket"])
            .args(&user)
            .output()?;
        ensure!(output.status.success(), "{}", crate::cluster::shown(&output));

        let file = |option: &str, name: &str| format!("--{option}={}", dir.join(name).display());
        let server = Command::new(find_mariadbd()?)
            .args(["--no-defaults", &data, "--skip-networking", "--skip-name-resolve"])
            .arg(file("socket", "mariadb.sock"))
            .arg(file("pid-file", "mariadbd.pid"))
            .arg(file("log-error", "error.log"))
            .args(["--innodb-buffer-pool-size=128M", "--innodb-flush-log-at-trx-commit=0"])
            .args(&user)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting mariadbd")?;
        let standalone = Standalone { dir: dir.to_owned(), server };
        let end = Instant::now() + START_LIMIT;
        while standalone.connect().is_err() {
            ensure!(Instant::now() < end, "the standalone server does not answer");
            std::thread::sleep(POLL);
        }
        Ok(standalone)
    }

    pub fn connect(&self) -> mysql::Result<mysql::Conn> {
        quorate_cli::sql::connect(&self.dir.join("mariadb.sock"), "root", CLIENT_TIMEOUT)
    }
}

impl Drop for Standalone {
    fn drop(&mut self) {
        let ended = self.server.kill().and_then(|()| self.server.wait());
        if let Err(error) = ended.and_then(|_| fs::remove_dir_all(&self.dir)) {
            eprintln!("clearing {}: {error}", self.dir.display());
        }
    }
}
