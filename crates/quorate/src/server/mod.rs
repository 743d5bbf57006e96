//! One MariaDB server as a process.

mod datadir;
mod error_log;
mod launch;
mod recovery;
mod software;
mod watch;

pub use datadir::{has_data, is_template, make_datadirs};
pub use launch::{launch, prepare, Start};
pub use quorate_lab::process::{Activity, ProcessId};
pub use recovery::recovered_position;
pub use software::{find_mariadbd, find_program, find_provider, place_provider, require_programs};
pub use watch::{wait_synced, Outcome, Watched};
