//! One node as a process: a MariaDB server, or a logger.

mod launch;
mod logger;
mod place;
mod watch;

pub use launch::{launch, prepare};
pub use logger::{log_key, LoggerStatus};
pub use place::{make_datadirs, place_provider};
pub use quorate_lab::process::{Activity, ProcessId};
pub use quorate_lab::server::{
    find_mariadbd, find_program, find_provider, has_data, missing, require_programs, Start,
};
pub use watch::{wait_synced, Outcome, Watched};
