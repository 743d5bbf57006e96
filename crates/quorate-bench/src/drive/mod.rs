//! What drives a fleet: programs of the ecosystem, that others have measured with, too.

pub mod sysbench;
