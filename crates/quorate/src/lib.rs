//! The `quorate` command: runs a cluster of MariaDB servers on one machine, watches it, stops it.
//!
//! What lives where:
//!
//! * [`args`]: the command line, and with it the help a user reads.
//! * [`cluster`]: a cluster's directory, its state file, ports and generated configuration.
//! * [`server`]: one server as a process: start, signals, watching it come up. What a server needs
//!   beyond that (datadir, configuration, position) is in `quorate_lab::server`.
//! * [`sql`]: asking a running server.
//! * [`view`]: how a person is shown something (progress, table).
//! * [`commands`]: the subcommands, each a short story over the modules above.
//! * [`logger`]: a member without a database.
//! * [`setup`]: the configuration of a server that is installed on this machine.
//! * [`check`]: whether servers are fit for a group.
//! * [`remote`]: any group, asked as an operator on its own port; the cluster of this machine, too.
//! * [`failure`]: exit codes. [`output`]: what is said on standard output.
//!
//! Everything that is known about a cluster is in its directory; the command keeps nothing
//! elsewhere (but for a list of other clusters, if it is told to) and no daemon runs beside the servers.

#[macro_use]
pub mod output;

pub mod args;
pub mod check;
pub mod cluster;
pub mod commands;
pub mod failure;
pub mod logger;
pub mod remote;
pub mod server;
pub mod setup;
pub mod view;

pub use quorate_lab::server::sql;
