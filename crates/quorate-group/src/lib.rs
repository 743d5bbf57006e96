//! A live member of a group: threads that drive consensus, log and network.
//! The layer above proposes, and is fed committed entries in order.

mod api;
pub use api::*;
