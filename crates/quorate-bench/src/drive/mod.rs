//! What drives a fleet: programs of the ecosystem, that others have measured with, too.

pub(crate) mod commits;
pub mod sysbench;
