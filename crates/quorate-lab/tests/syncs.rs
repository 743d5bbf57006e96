//! Syncs that are taken away are not done, and the program does not notice.

use quorate_lab::disk::{Disk, Loss, Options};
use quorate_lab::net::{Network, Topology};
use quorate_lab::process::{Process, Syncs};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// Writes and syncs a file, and cuts the power; what is left of it.
fn left_after_cut(network: &Network, syncs: Syncs) -> u64 {
    let disk = Disk::new(Options::default()).unwrap();
    let path = disk.path().join("file");
    let mut dd = Command::new("dd");
    dd.args(["if=/dev/zero", "bs=4096", "count=3", "conv=fsync"]).stderr(Stdio::null());
    dd.arg(format!("of={}", path.display()));
    let process = Process::start_with(&network.hosts()[0], &mut dd, syncs).unwrap();
    assert!(process.wait_gone(LIMIT).unwrap());
    assert!(process.exit_status().unwrap().success(), "{syncs:?}");
    assert_eq!(fs::metadata(&path).unwrap().len(), 3 * 4096);
    disk.power_off();
    disk.power_on(Loss::All).unwrap();
    fs::metadata(&path).map_or(0, |file| file.len())
}

#[test]
fn what_was_not_synced_is_lost() {
    let network = Network::new(1, Topology::Lan).unwrap();
    assert_eq!(left_after_cut(&network, Syncs::Done), 3 * 4096);
    assert_eq!(left_after_cut(&network, Syncs::TakenAway), 0);
    assert_eq!(left_after_cut(&network, Syncs::Done), 3 * 4096, "of others they are not taken");
}
