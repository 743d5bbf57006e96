//! What each thread of a member does.

pub(crate) mod acceptor;
pub(crate) mod asker;
pub(crate) mod clock;
pub(crate) mod feeder;
mod operators;
mod receiver;
pub(crate) mod sender;
pub(crate) mod snapshots;
