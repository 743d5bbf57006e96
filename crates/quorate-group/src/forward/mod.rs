//! Proposals of this member on their way into the log.

mod intake;
mod pending;

pub use intake::Intake;
pub(crate) use pending::Pending;

/// Proposals given to the core (or to the leader) in one piece.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
pub(crate) const BATCH_COUNT: usize = 1 << 14;
/// Forwarded proposals that may wait in the outbox to the leader.
pub const FORWARD_BYTES: usize = 8 << 20;
