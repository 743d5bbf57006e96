//! One run of MariaDB's test runner with one provider, as an ordinary user: as root its rsync
//! transfers fail.

use super::results::{Results, Told};
use super::tree;
use anyhow::{bail, ensure, Context, Result};
use quorate_cli::cluster::Account;
use quorate_lab::leftovers::clear;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The runner gives each of its workers this many ports, from 10,000 on.
const PORTS_PER_WORKER: u16 = 30;
/// Workers whose ports are below those that the kernel hands out.
const WORKERS: std::ops::Range<u16> = 340..730;
/// Minutes for one test, and for all.
const TEST_MINUTES: u32 = 6;
const RUN_MINUTES: u32 = 360;
/// The runner's own ends, where tests failed, or servers warned of something when they stopped (its
/// spelling): not errors of the run.
const TESTS_FAILED: [&str; 2] = ["there were failing test cases", "There where errors/warnings"];
/// How much of what a failed test wrote is shown at once.
const SHOWN_OF_FAILURE: usize = 16;

pub struct Run<'a> {
    pub provider: &'a Path,
    pub suites: &'a [String],
    /// Empty: all tests of the suites.
    pub tests: &'a [String],
    pub parallel: u16,
    pub retry: u32,
    /// For this run alone: servers' directories, logs of failed tests.
    pub dir: &'a Path,
}

impl Run<'_> {
    /// Runs to the end; `shown` hears of each test. An error if the run itself was cut short.
    pub fn results(&self, mut shown: impl FnMut(&str)) -> Result<Results> {
        let log_path = self.dir.join("mtr.log");
        let (mut command, provider) = self.command()?;
        let mut log =
            File::create(&log_path).with_context(|| format!("creating {}", log_path.display()))?;
        let errors = log.try_clone()?;
        let mut runner = command
            .env("WSREP_PROVIDER", provider)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .context("starting MariaDB's test runner")?;
        let mut results = Results::default();
        let output = runner.stdout.take().context("the runner has no output")?;
        let mut of_failure = 0;
        for line in BufReader::new(output).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            writeln!(log, "{line}")?;
            match results.read_line(&line) {
                Told::Failure => of_failure = SHOWN_OF_FAILURE,
                Told::End => of_failure = 0,
                Told::Nothing if of_failure == 0 || line.trim().is_empty() => continue,
                Told::Nothing => of_failure -= 1,
            }
            shown(&line);
        }
        let status = runner.wait()?;
        let text = fs::read(&log_path)?;
        let text = String::from_utf8_lossy(&text);
        let tests_failed = |text: &str| TESTS_FAILED.iter().any(|end| text.contains(end));
        let broken = text.lines().find(|line| line.contains("*** ERROR") && !tests_failed(line));
        match broken {
            Some(line) => bail!("the run ended early: {line}; see {}", log_path.display()),
            None if !status.success() && !tests_failed(&text) => {
                bail!("the runner ended with {status}; see {}", log_path.display())
            }
            None => {
                if status.success() {
                    // They tell of failures only.
                    clear(&self.var())?;
                }
                Ok(results)
            }
        }
    }

    /// The servers' directories.
    fn var(&self) -> PathBuf {
        self.dir.join("var")
    }

    /// The runner's command line, and the copy of the provider that its account can read.
    fn command(&self) -> Result<(Command, PathBuf)> {
        ensure!(
            tree::runner().exists(),
            "MariaDB's test runner is missing: apt-get install mariadb-test"
        );
        let account = Account::choose()?;
        let var = self.var();
        clear(&var)?;
        fs::create_dir_all(&var).with_context(|| format!("creating {}", var.display()))?;
        account.own(&var, 0o755)?;
        if let Some(blocked) = account.blocked_at(&var) {
            bail!(
                "the servers run as {}, who may not enter {}: set CARGO_TARGET_DIR to a directory \
                 that others may enter",
                account.name,
                blocked.display()
            );
        }
        let suites = tree::make(&self.dir.join("suites"), &account)?;
        let provider = self.dir.join("provider.so");
        fs::copy(self.provider, &provider)
            .with_context(|| format!("copying {}", self.provider.display()))?;
        fs::set_permissions(&provider, fs::Permissions::from_mode(0o755))?;

        // The runner, and with it its servers, end with this process.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]);
        if account.switch {
            command.args(["--reuid", &account.name, "--regid", &account.name, "--clear-groups"]);
        }
        command
            .args(["perl", "./mariadb-test-run", "--force", "--max-test-fail=0"])
            .arg(format!("--vardir={}", var.display()))
            .arg(format!("--suite={}", self.suites.join(",")))
            .arg(format!("--parallel={}", self.parallel))
            .arg(format!("--retry={0}", self.retry))
            .arg(format!("--retry-failure={0}", self.retry))
            .arg(format!("--testcase-timeout={TEST_MINUTES}"))
            .arg(format!("--suite-timeout={RUN_MINUTES}"))
            .args(self.tests)
            .current_dir(suites)
            .env("HOME", &var)
            .env("USER", &account.name)
            .env("LOGNAME", &account.name)
            .env("MTR_BUILD_THREAD", free_workers(self.parallel)?.to_string());
        Ok((command, provider))
    }
}

/// The first of `count` of the runner's workers whose ports are free.
fn free_workers(count: u16) -> Result<u16> {
    let choices = WORKERS.end - WORKERS.start - count;
    let first = (std::process::id() as u16).wrapping_mul(7) % choices;
    (0..choices)
        .map(|step| WORKERS.start + (first + step) % choices)
        .find(|worker| {
            let ports = |worker: u16| 10_000 + worker * PORTS_PER_WORKER;
            (ports(*worker)..ports(worker + count))
                .all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        })
        .context("no free block of ports")
}
