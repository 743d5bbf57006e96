//! A local transaction from its first key to its release: where it stands, and what the log decided.

pub mod stream;
pub mod trx;
