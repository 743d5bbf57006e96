//! What was built and installed, for tests that start servers.

use quorate_bench::fleet::Fleet;
use quorate_bench::system::{named, Sources};
use quorate_lab::net::Topology;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// One fleet at a time.
static ALONE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// As built, or where the variables say. There is MySQL only where `QUORATE_MYSQL_ROOT` names it.
pub fn sources() -> Sources {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/libquorate.so");
    let provider = std::env::var_os("QUORATE_PROVIDER").map_or(built, PathBuf::from);
    let mysql_root = std::env::var_os("QUORATE_MYSQL_ROOT").map(PathBuf::from);
    Sources { provider: Some(provider), mysql_root }
}

pub fn start(name: &str, members: usize) -> Fleet {
    Fleet::start(named(name, &sources()).unwrap(), Topology::Lan, members).unwrap()
}
