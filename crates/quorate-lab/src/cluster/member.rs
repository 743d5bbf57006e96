//! One node of a cluster: its host, its disk and its server.

use super::Seat;
use crate::disk::{self, Disk};
use crate::net::Network;
use crate::server::{self, logger_arguments, Account, Node, Ports, Start};
use anyhow::Result;
use quorate_live::Security;
use std::path::Path;
use std::process::Command;

/// Fields are dropped in order: the server before its disk.
pub(super) struct Member {
    pub seat: Seat,
    pub disk: Disk,
}

impl Member {
    pub fn new(
        index: usize,
        network: &Network,
        disk: disk::Options,
        folder: &Path,
        account: &Account,
    ) -> Result<Member> {
        let disk = Disk::new(disk)?;
        let node = Node {
            host: network.hosts()[index].address().into(),
            disk: disk.path().to_owned(),
            ..Node::new(folder, index as u16 + 1, Ports::USUAL)
        };
        let member = Member { seat: Seat::new(node, index, network), disk };
        member.prepare(account)?;
        Ok(member)
    }

    /// Makes the folders that the server needs, on an empty disk.
    fn prepare(&self, account: &Account) -> Result<()> {
        account.own(self.disk.path(), 0o700)?;
        server::make_folders(&self.seat.node, account)?;
        self.disk.sync_all();
        Ok(())
    }

    pub fn start(
        &self,
        mariadbd: &Path,
        account: &Account,
        start: &Start,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<()> {
        let mut command = Command::new(mariadbd);
        command.args(start.arguments(&self.seat.node, account));
        prepare(&mut command);
        self.seat.run(command, account)
    }

    /// A member without a database. `group`: the addresses of all.
    pub fn start_logger(
        &self,
        program: &Path,
        account: &Account,
        group: &[String],
        security: &Security,
    ) -> Result<()> {
        let mut command = Command::new(program);
        command
            .args(["logger", "--cluster-name", super::GROUP, "--name", &self.seat.node.name])
            .args(["--address", &self.seat.node.group_address(), "--join", &group.join(",")])
            .arg("--log-dir")
            .arg(self.seat.node.log())
            .args(logger_arguments(security));
        self.seat.run(command, account)
    }

    pub fn wipe(&self, account: &Account) -> Result<()> {
        self.disk.wipe()?;
        self.prepare(account)
    }
}

/// The start with the highest position.
pub(super) fn furthest(starts: &[Start]) -> Option<usize> {
    let seqno = |start: &Start| -> Option<i64> {
        // `uuid:seqno`, with a domain's position behind a comma if there is one.
        let (_, seqno) = start.position.as_ref()?.split_once(':')?;
        seqno.split(',').next()?.parse().ok()
    };
    (0..starts.len()).max_by_key(|index| seqno(&starts[*index]))
}
