//! What drives a fleet: programs of the ecosystem, that others have measured with, too, and clients that
//! remember what they were told.

pub(crate) mod beside;
pub(crate) mod clients;
pub(crate) mod commits;
pub mod steady;
pub mod sysbench;
pub mod tools;
pub mod tpcc;
pub mod writers;
