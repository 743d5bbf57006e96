//! What of a large transaction is on its way to the group ahead of its write set.

use quorate_certify::PartsOf;

/// The parts of a transaction so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// The process that sends them.
    pub origin: u128,
    pub parts: PartsOf,
    /// No more of it is sent, nor will its write set be.
    pub broken: Option<Broken>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// The transaction was aborted, or the group lost.
    Ended,
    /// For what a transaction may have, or for the disk of the log: what that has in reserve is for what lets the log
    /// become shorter.
    TooLarge,
}
