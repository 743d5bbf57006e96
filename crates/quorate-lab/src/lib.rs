//! A laboratory for clusters of real database servers: networks and disks that fail on demand.
//!
//! * [`net`]: hosts as network namespaces, joined by a user-space forwarder: delay, loss,
//!   bandwidth, partitions, changed while running.
//! * [`disk`]: a file system that forgets what was not synced when its power is cut, and that
//!   fails, stalls, fills up or freezes.
//! * [`server`]: a MariaDB server on this machine, without faults.
//! * [`process`]: one server process on a host: kill, pause, starve.
//! * [`cluster`]: N servers of a [`cluster::System`], each on a host and a disk of its own.
//! * [`history`]: what clients did and were told, one operation a line.
//! * [`check`]: pure functions of a history that find what must not be.
//! * [`target`]: a cluster under test, as workloads and schedules see it.
//! * [`workload`]: what clients do while things fail.
//! * [`schedule`]: what fails, when.
//! * [`chaos`]: a whole run, from the first client to the verdict.
//! * [`random`]: small seeded choices.
//!
//! Hosts, disks and nodes are counted from 0; node 0 is shown as `node1`.
//!
//! Everything the lab makes carries the pid of the process that made it, and is removed when the
//! last handle is dropped, on SIGINT and SIGTERM too. What a killed run left, the next one
//! removes ([`leftovers`]). Needs root.

pub mod chaos;
pub mod check;
pub mod cluster;
pub mod disk;
pub mod history;
pub mod leftovers;
pub mod net;
pub mod process;
pub mod random;
pub mod schedule;
pub mod server;
pub mod target;
pub mod workload;
