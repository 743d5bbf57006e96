//! Where a start continues: what the data directory says of the database in it, and which history of
//! which group that belongs to.

pub mod durable;
pub mod failed;
pub mod genesis;
pub mod grastate;
pub mod isolated;
pub mod refused;
pub mod resume;

/// A uuid as files have it, with hyphens or without.
pub fn parse_uuid(text: &str) -> Option<u128> {
    u128::from_str_radix(&text.replace('-', ""), 16).ok()
}

/// A place in a history of write sets: the interface's GTID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    pub uuid: u128,
    pub seqno: i64,
}
