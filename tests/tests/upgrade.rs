//! An older release and this one in one group of three servers and a logger, under load: member by member to the new
//! one, back as long as that is possible, and refused afterwards. `make upgrade-test` builds the older release and runs
//! this.

use anyhow::{bail, ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_lab::cluster::{Cluster, Plan, System};
use quorate_lab::leftovers::Folder;
use quorate_lab::server::error_log;
use quorate_tests::cluster::command_path;
use quorate_tests::power::quorate;
use quorate_tests::writers::{self, create_table_at, missing_at};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Where its library is; its command is beside it.
const OLD: &str = "QUORATE_OLD_PROVIDER";
const LIBRARY: &str = "libquorate.so";
const COMMAND: &str = "quorate";
const CLIENTS: usize = 8;
const CALM: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(120);
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// As of a switchover under load.
const GAP_LIMIT: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(50);

/// What servers load, and what runs the logger.
struct Release {
    library: PathBuf,
    command: PathBuf,
}

/// Servers and the logger take theirs from one place, and find there what was put there last.
struct Upgrade {
    cluster: Cluster,
    releases: [Release; 2],
    // Removed behind the servers.
    place: Folder,
}

const BEFORE: usize = 0;
const AFTER: usize = 1;

#[test]
#[ignore = "needs an older release: make upgrade-test"]
fn members_are_upgraded_one_after_the_other_and_back_until_all_are() -> Result<()> {
    let upgrade = Upgrade::begin()?;
    let cluster = &upgrade.cluster;
    let releases = [upgrade.release(0)?, this_release()];
    ensure!(releases[BEFORE] != releases[AFTER], "both libraries are {}", releases[AFTER]);
    ensure!(upgrade.levels()? == [1, 1, 1], "{:?}", upgrade.levels()?);

    let leader = cluster.leader().context("nobody leads")?;
    let followers: Vec<usize> = cluster.nodes().filter(|node| *node != leader).collect();
    let logger = cluster.loggers().start;
    let sockets: Vec<PathBuf> = cluster.nodes().map(|node| cluster.socket(node)).collect();
    let load = writers::start_failing_over_at(&sockets, CLIENTS, 1);
    let there_and_back = [
        (followers[0], AFTER),
        (logger, AFTER),
        (followers[1], AFTER),
        (followers[0], BEFORE),
        (logger, BEFORE),
        (followers[1], BEFORE),
        (followers[0], AFTER),
        (followers[1], AFTER),
    ];
    for (member, which) in there_and_back {
        upgrade.restart(member, which)?;
        if member != logger {
            let release = upgrade.release(member)?;
            ensure!(release == releases[which], "node{} runs {release}", member + 1);
        }
        thread::sleep(CALM);
        ensure!(upgrade.levels()? == [1, 1, 1], "some are left that know no other");
    }
    cluster.connect(leader, CLIENT_TIMEOUT)?.query_drop(format!(
        "SET GLOBAL wsrep_provider_options = 'quorate.switchover=node{}'",
        followers[0] + 1
    ))?;
    upgrade.restart(leader, AFTER)?;
    thread::sleep(CALM);
    ensure!(upgrade.levels()? == [1, 1, 1], "the logger is left, which knows no other");
    upgrade.restart(logger, AFTER)?;
    let end = Instant::now() + LIMIT;
    while upgrade.levels()? != [2, 2, 2] {
        ensure!(Instant::now() < end, "the levels are {:?}", upgrade.levels()?);
        thread::sleep(POLL);
    }
    thread::sleep(CALM);
    let acks = load.stop();
    println!("{} -> {}", releases[BEFORE], releases[AFTER]);
    println!("rows per second {:?}", acks.per_second());
    println!("longest time without an acknowledgement {:.0?}", acks.longest_gap());
    cluster.wait_level(&cluster.nodes().collect::<Vec<_>>(), LIMIT)?;
    for socket in &sockets {
        let missing = missing_at(socket, &acks.ids())?;
        ensure!(missing.is_empty(), "{} lacks {} rows", socket.display(), missing.len());
    }
    ensure!(acks.longest_gap() < GAP_LIMIT, "{:?}", acks.longest_gap());
    upgrade.there_is_no_way_back(leader)
}

impl Upgrade {
    /// All run the old one.
    fn begin() -> Result<Upgrade> {
        let old = std::env::var_os(OLD).map(PathBuf::from);
        let old = old.with_context(|| format!("{OLD} names no library: make upgrade-test"))?;
        let old = Release { command: old.with_file_name(COMMAND), library: old };
        let new = Release { command: command_path(), library: quorate().provider().to_owned() };
        let place = Folder::new()?;
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755))?;
        old.put(place.path())?;
        let plan = Plan {
            loggers: 1,
            logger_program: place.path().join(COMMAND),
            ..Plan::new(System::Quorate(place.path().join(LIBRARY)))
        };
        let cluster = Cluster::start(&plan)?;
        create_table_at(&cluster.socket(0))?;
        Ok(Upgrade { cluster, releases: [old, new], place })
    }

    fn restart(&self, member: usize, which: usize) -> Result<()> {
        self.cluster.stop(member, LIMIT)?;
        self.releases[which].put(self.place.path())?;
        self.cluster.start_node(member)?;
        match self.cluster.loggers().contains(&member) {
            true => self.cluster.wait_votes(&[member], LIMIT),
            false => self.cluster.wait_synced(&[member], LIMIT),
        }
    }

    fn release(&self, node: usize) -> Result<String> {
        let status = self.cluster.status(node)?;
        Ok(status.get("wsrep_provider_version").context("no version")?.to_owned())
    }

    fn levels(&self) -> Result<Vec<i64>> {
        let level = |node| {
            let status = self.cluster.status(node)?;
            status.number("wsrep_quorate_level").context("no level")
        };
        self.cluster.nodes().map(level).collect()
    }

    fn there_is_no_way_back(&self, node: usize) -> Result<()> {
        let log = self.cluster.error_log(node);
        self.cluster.stop(node, LIMIT)?;
        let before = error_log::length(&log);
        self.releases[BEFORE].put(self.place.path())?;
        if self.cluster.start_node(node).is_ok()
            && self.cluster.wait_synced(&[node], Duration::from_secs(20)).is_ok()
        {
            bail!("a node with the old release is back in the group");
        }
        let said = error_log::errors_since(&log, before).join("\n");
        ensure!(said.contains("this release knows"), "{said}");
        self.cluster.kill(&[node])?;
        self.releases[AFTER].put(self.place.path())?;
        self.cluster.start_node(node)?;
        self.cluster.wait_level(&self.cluster.nodes().collect::<Vec<_>>(), LIMIT)
    }
}

impl Release {
    /// In one step each: what runs keeps what it has loaded.
    fn put(&self, place: &Path) -> Result<()> {
        for (file, name) in [(&self.library, LIBRARY), (&self.command, COMMAND)] {
            let new = place.join(format!("{name}.new"));
            fs::copy(file, &new).with_context(|| format!("copying {}", file.display()))?;
            fs::rename(new, place.join(name))?;
        }
        Ok(())
    }
}

fn this_release() -> String {
    format!("26.4.23(quorate-{})", env!("CARGO_PKG_VERSION"))
}
