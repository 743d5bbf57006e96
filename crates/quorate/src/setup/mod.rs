//! The configuration of a server that is installed, as a member of a group.
//!
//! [`plan`] decides what is to be done, [`installed`] knows the server that is there, [`file`] the file of options that
//! is written, [`provider`] the options of the provider in it, and `commands/setup.rs` shows the plan, asks, and carries
//! it out.
//!
//! Invariant: nothing is changed before the plan has been made and agreed to; the file of options
//! comes last, so that a set-up that fails in the middle leaves the server as it was.

pub mod address;
pub mod file;
pub mod installed;
pub mod plan;
pub mod provider;

pub use file::Change;
pub use installed::{free_port, missing_packages, port_is_held, Installed, SOCKET, TRANSFERS};
pub use plan::{Plan, Step};
