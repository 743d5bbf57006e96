//! Raft (a Multi-Paxos with a strong leader) as a pure state machine.
//!
//! [`Consensus::step`] takes one [`Event`] and fills one [`Effects`]. Nothing in this crate knows a
//! socket, a file, a clock, a thread or a global source of randomness: time comes in with each
//! event, randomness from a seed, and whatever a peer sends is either obeyed, answered with a
//! refusal or ignored, never a panic.

mod config;
mod core;
mod effects;
mod event;
mod history;
mod log;
mod message;
mod progress;
mod quorum;
mod rng;
mod types;

pub use crate::config::{Config, ConfigChange, ConfigDecodeError, MemberInfo, MemberRole};
pub use crate::core::Consensus;
pub use crate::effects::{Effects, Fetch, PeerStatus, ReadReady, RoleState, Status};
pub use crate::event::{Event, Options, Restored, StepError};
pub use crate::message::{Message, MessageBody};
pub use crate::types::{
    Entry, EntryKind, HardState, Index, LogPosition, MemberId, SnapshotMeta, Term,
};
