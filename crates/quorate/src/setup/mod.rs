//! The configuration of a server that is installed, as a member of a group.
//!
//! [`plan`] decides what is to be done, [`installed`] knows the server that is there, and
//! `commands/setup.rs` shows the plan, asks, and carries it out.
//!
//! Invariant: nothing is changed before the plan has been made and agreed to; the file of options
//! comes last, so that a set-up that fails in the middle leaves the server as it was.

pub mod installed;
pub mod plan;

pub use installed::{Installed, TRANSFERS};
pub use plan::{Plan, Step};
