//! Raft (a Multi-Paxos with a strong leader) as a pure state machine.
//!
//! [`Consensus::step`] takes one [`Event`] and fills one [`Effects`]. Nothing in this crate knows a
//! socket, a file, a clock, a thread or a global source of randomness: time comes in with each
//! event, randomness from a seed, and whatever a peer sends is either obeyed, answered with a
//! refusal or ignored, never a panic.
//!
//! What it adds to the Raft paper: pre-vote, check-quorum and a leader lease, always on; commits
//! counted on *persisted* indexes, the leader's own sync running in parallel to sending; a window
//! of messages and bytes for each follower; linearizable reads; learners, and loggers that vote but
//! lead only to hand over; priorities of who should lead; commits in several zones; joint consensus;
//! leadership transfer; a broken connection as a hint to elect at once; a disk or host that stands
//! still as a reason to hand over, a failed disk as one to be silent.
//!
//! # What a driver does
//!
//! 1. [`Consensus::new`] with what the disk holds.
//! 2. Each event at the time of a monotonic clock: [`Event::Tick`] regularly,
//!    [`Event::Receive`] for messages, [`Event::Persisted`] after each sync of the log.
//! 3. The effects, in the order of their fields: the term file first, durably; then the log, queued;
//!    then everything else, without waiting.

mod config;
mod core;
mod effects;
mod event;
mod history;
pub mod level;
mod log;
mod message;
pub mod placement;
mod progress;
mod quorum;
mod rng;
mod types;
mod words;

pub use crate::config::{
    Config, ConfigChange, ConfigDecodeError, MemberInfo, MemberRole, Primaries, PriorityRule,
    Rules, PRIORITY_DEFAULT, PRIORITY_MAX,
};
pub use crate::core::Consensus;
pub use crate::effects::{
    Effects, Fault, Fetch, Objection, PeerStatus, ReadReady, Rejected, RoleState, Status,
};
pub use crate::event::{Event, Options, Restored, StepError};
pub use crate::level::{Level, LEVEL, LEVEL_MIN};
pub use crate::message::{Message, MessageBody};
pub use crate::types::{
    checksum, Charter, Entry, EntryKind, HardState, Index, KeyId, LogPosition, MemberId, Proposal,
    SnapshotMeta, Term, AHEAD_MAX,
};
