//! The comparisons that others have published of replicated MySQL systems, repeated on this machine,
//! with Quorate among them.
//!
//! * [`record`]: what was measured, as it is kept: a cell is one system at one point of a test's grid in
//!   one round.
//! * [`published`]: the figures that others have published, and whether the peers here show their shape.
//! * [`report`]: a run for people: one page, and the same for programs and the terminal.
//! * [`system`]: the systems, each a description: which server, which options, how a group is formed.
//! * [`fleet`]: a system as it runs, on hosts of the lab.
//! * [`drive`]: programs that put a load on a fleet. [`meter`]: what that costs.
//! * [`suite`]: the tests, each named after what it repeats.
//! * [`plan`]: in which order everything is measured. [`run`]: doing so.

pub mod drive;
pub mod fleet;
pub mod meter;
pub mod plan;
pub mod published;
pub mod record;
pub mod report;
pub mod run;
pub mod suite;
pub mod system;
