//! Deterministic simulation of whole groups: seeds in, violations out.
//!
//! A seed chooses a group, its network, its disks, its clients and what goes wrong. The run puts
//! real cores (`quorate-consensus`) and real sequencers (`quorate-certify`) over simulated disks
//! and links, in virtual time, on one thread; nothing else is a source of randomness, so a seed
//! replays exactly. All the while an oracle that sees every member checks the rules in
//! [`Rule`]; in the end everything is healed and must make progress.

mod cli;
mod conflicts;
mod coverage;
mod disk;
mod machine;
mod member;
#[path = "../../quorate-group-sim/src/modes.rs"]
mod modes;
mod net;
mod oracle;
mod plant;
mod rng;
mod run;
mod scenario;
mod schedule;
mod staff;
mod trace;
mod world;

pub use cli::main;
pub use coverage::{Coverage, Mark};
pub use oracle::{Rule, Violation};
pub use plant::Plant;
pub use run::{replay, run_seed, sweep, Sweep, SweepOptions};
pub use scenario::Profile;
pub use world::Report;
