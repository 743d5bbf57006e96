//! Deterministic simulation of whole groups: seeds in, violations out.
//!
//! A seed chooses a group, its network, its disks, its clients and what goes wrong. The run puts
//! what the product runs (the machine of `quorate-group`, the codec of `quorate-wire`, the log of
//! `quorate-wal`, the sequencing of `quorate-certify`) into a world of simulated disks, connections
//! and clocks, in virtual time, on one thread; nothing else is a source of randomness, so a seed
//! replays exactly. All the while an oracle that sees every member checks the rules in [`Rule`]; in
//! the end everything is healed and must make progress.

mod conflicts;
mod coverage;
mod database;
mod encryption;
mod modes;
mod node;
mod oracle;
mod plant;
mod run;
mod scenario;
mod schedule;
mod staff;
mod world;

pub use oracle::{Rule, Violation};
pub use plant::Plant;
pub use run::Groups;
pub use scenario::Profile;
pub use world::Report;
