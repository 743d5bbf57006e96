//! The configuration of a server that is installed, as a member of a group.
//!
//! [`plan`] decides what is to be done, and [`steps`] do it. [`installed`] knows the server that is there, [`access`]
//! what its account can do, [`place`] the secret and the directory of the log, [`file`] the file of options that is
//! written, [`provider`] the options of the provider in it. `commands/setup.rs` shows the plan, and asks.
//!
//! Invariant: nothing is changed before the plan has been made and agreed to; the file of options
//! comes last, so that a set-up that fails in the middle leaves the server as it was.

pub mod access;
pub mod address;
pub mod file;
pub mod installed;
pub mod place;
pub mod plan;
pub mod provider;
pub mod steps;

pub use access::Access;
pub use file::Change;
pub use installed::{missing_packages, port_is_held, Installed, SOCKET, TRANSFERS};
pub use plan::{is_adjustable, Plan};
pub use steps::Step;

/// Whose files the server's are, by Debian's unit.
pub const ACCOUNT: &str = "mysql";
