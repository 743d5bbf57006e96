//! What was built, for tests that start servers.

use quorate_lab::cluster::{Plan, System};
use std::path::{Path, PathBuf};

/// As built, or where the variable says.
pub fn built(variable: &str, name: &str) -> PathBuf {
    let release = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release");
    std::env::var_os(variable).map_or_else(|| release.join(name), PathBuf::from)
}

/// Three nodes.
pub fn plan() -> Plan {
    Plan::new(System::Quorate(built("QUORATE_PROVIDER", "libquorate.so")))
}
