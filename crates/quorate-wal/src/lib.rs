//! The durable log of one member: preallocated, recycled segments, group commit, recovery; and the
//! small checksummed file of term, vote and identity.

mod api;
pub use api::*;
