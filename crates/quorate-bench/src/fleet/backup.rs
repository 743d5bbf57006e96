//! A copy of a running MariaDB over the lab's network, by mariadb-backup.

use super::Fleet;
use anyhow::{ensure, Context, Result};
use quorate_lab::process::Process;
use std::process::{Command, Stdio};
use std::time::Duration;

/// For the copy of any data that is measured here.
const LIMIT: Duration = Duration::from_secs(3600);

impl Fleet {
    /// Fills the empty datadir of `to` from the running `from`.
    pub(crate) fn receive_backup(&self, from: usize, to: usize) -> Result<()> {
        let (donor, joiner) = (self.node(from), self.node(to));
        let (host, port, data) = (joiner.host, joiner.ports.sst, joiner.data());
        let receive = format!(
            "socat -u TCP-LISTEN:{port},bind={host},reuseaddr STDOUT | mbstream -x -C {}",
            data.display()
        );
        let send = format!(
            "mariadb-backup --defaults-file={} --backup --stream=xbstream --user={} --socket={} \
             --target-dir={} | socat -u STDIN TCP:{host}:{port},retry=100,interval=0.1",
            donor.config().display(),
            super::USER,
            donor.socket().display(),
            donor.tmp().display()
        );
        let receiver = self.shell(to, &receive)?;
        let sender = self.shell(from, &send)?;
        for process in [sender, receiver] {
            let ended = process.wait_gone(LIMIT)?;
            let success = process.exit_status().is_some_and(|status| status.success());
            ensure!(ended && success, "the backup of node{} failed", from + 1);
        }
        let prepare = format!("mariadb-backup --prepare --target-dir={}", data.display());
        let process = self.shell(to, &prepare)?;
        ensure!(process.wait_gone(LIMIT)?, "the backup of node{} is never prepared", from + 1);
        let success = process.exit_status().is_some_and(|status| status.success());
        ensure!(success, "the backup of node{} cannot be prepared", from + 1);
        let owner = format!("{0}:{0}", self.account.name);
        let status = Command::new("chown").args(["-R", &owner]).arg(&data).status();
        ensure!(status.context("running chown")?.success(), "chown {owner} failed");
        Ok(())
    }

    /// A pipeline on a member's host, that writes to the member's error log.
    fn shell(&self, member: usize, pipeline: &str) -> Result<Process> {
        let log = quorate_lab::server::open_error_log(self.node(member), &self.account)?;
        let mut command = Command::new("bash");
        command
            .args(["-o", "pipefail", "-c", pipeline])
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("duplicating a file")?)
            .stderr(log);
        Process::start(&self.network.hosts()[member], &mut command)
    }
}
