//! The library of an older release and this one in one group, under load: node by node to the new one, back as
//! long as that is possible, and refused afterwards. `make upgrade-test` builds the older library and runs this.

use anyhow::{bail, ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_lab::cluster::{Cluster, Plan, System};
use quorate_lab::leftovers::Folder;
use quorate_lab::server::error_log;
use quorate_tests::power::quorate;
use quorate_tests::writers::{self, create_table_at, missing_at};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const OLD: &str = "QUORATE_OLD_PROVIDER";
const CLIENTS: usize = 8;
const CALM: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(120);
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Clients leave a server that stops, and find another.
const GAP_LIMIT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);

/// Servers load the library from one place, and find there what was put there last.
struct Upgrade {
    cluster: Cluster,
    libraries: [PathBuf; 2],
    place: PathBuf,
    // Removed behind the servers.
    _folder: Folder,
}

const BEFORE: usize = 0;
const AFTER: usize = 1;

#[test]
#[ignore = "needs the library of an older release: make upgrade-test"]
fn nodes_are_upgraded_one_after_the_other_and_back_until_all_are() -> Result<()> {
    let upgrade = Upgrade::begin()?;
    let cluster = &upgrade.cluster;
    let releases = [upgrade.release(0)?, this_release()];
    ensure!(releases[BEFORE] != releases[AFTER], "both libraries are {}", releases[AFTER]);
    ensure!(upgrade.levels()? == [1, 1, 1], "{:?}", upgrade.levels()?);

    let leader = cluster.leader().context("nobody leads")?;
    let followers: Vec<usize> = cluster.nodes().filter(|node| *node != leader).collect();
    let sockets: Vec<PathBuf> = cluster.nodes().map(|node| cluster.socket(node)).collect();
    let load = writers::start_failing_over_at(&sockets, CLIENTS, 1);
    let there_and_back = [
        (followers[0], AFTER),
        (followers[1], AFTER),
        (followers[0], BEFORE),
        (followers[1], BEFORE),
        (followers[0], AFTER),
        (followers[1], AFTER),
    ];
    for (node, which) in there_and_back {
        upgrade.restart(node, which)?;
        let release = upgrade.release(node)?;
        ensure!(release == releases[which], "node{} runs {release}", node + 1);
        thread::sleep(CALM);
        ensure!(upgrade.levels()? == [1, 1, 1], "one is left that knows no other");
    }
    cluster.connect(leader, CLIENT_TIMEOUT)?.query_drop(format!(
        "SET GLOBAL wsrep_provider_options = 'quorate.switchover=node{}'",
        followers[0] + 1
    ))?;
    upgrade.restart(leader, AFTER)?;
    let end = Instant::now() + LIMIT;
    while upgrade.levels()? != [2, 2, 2] {
        ensure!(Instant::now() < end, "the levels are {:?}", upgrade.levels()?);
        thread::sleep(POLL);
    }
    thread::sleep(CALM);
    let acks = load.stop();
    println!(
        "{} -> {}: rows per second {:?}",
        releases[BEFORE],
        releases[AFTER],
        acks.per_second()
    );
    println!("longest time without an acknowledgement: {:?}", acks.longest_gap());
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
        let new = quorate().provider().to_owned();
        let folder = Folder::new()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let place = folder.path().join("libquorate.so");
        put(&old, &place)?;
        let cluster = Cluster::start(&Plan::new(System::Quorate(place.clone())))?;
        create_table_at(&cluster.socket(0))?;
        Ok(Upgrade { cluster, libraries: [old, new], place, _folder: folder })
    }

    fn restart(&self, node: usize, which: usize) -> Result<()> {
        self.cluster.stop(node, LIMIT)?;
        put(&self.libraries[which], &self.place)?;
        self.cluster.start_node(node)?;
        self.cluster.wait_synced(&[node], LIMIT)
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
        put(&self.libraries[BEFORE], &self.place)?;
        if self.cluster.start_node(node).is_ok()
            && self.cluster.wait_synced(&[node], Duration::from_secs(20)).is_ok()
        {
            bail!("a node with the old release is back in the group");
        }
        let said = error_log::errors_since(&log, before).join("\n");
        ensure!(said.contains("this release knows"), "{said}");
        self.cluster.kill(&[node])?;
        put(&self.libraries[AFTER], &self.place)?;
        self.cluster.start_node(node)?;
        self.cluster.wait_level(&self.cluster.nodes().collect::<Vec<_>>(), LIMIT)
    }
}

/// In one step: servers that run keep what they have loaded.
fn put(library: &Path, place: &Path) -> Result<()> {
    let new = place.with_extension("new");
    fs::copy(library, &new).with_context(|| format!("copying {}", library.display()))?;
    fs::rename(new, place)?;
    Ok(())
}

fn this_release() -> String {
    format!("26.4.23(quorate-{})", env!("CARGO_PKG_VERSION"))
}
