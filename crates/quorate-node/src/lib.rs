//! A node of a group: what it decides about the writes of its sessions and of others, whatever server it is
//! part of.
//!
//! ```text
//!  host ──▶ session (local transactions) ────propose──▶ Group (log, consensus)
//!    ▲                                                     │ committed, in order
//!    └───── applier (its threads) ◀──queue── Sequencer ◀───┘ (seqno, verdict)
//! ```
//!
//! A host (today `quorate-provider`) calls [`node::Node`] and is called by it as a [`host::Host`]. Rooms, a
//! lower one first; a room imports from those above it in this list only (`tests/tests/rooms.rs`):
//! - `blocking`, `sync`, `fnv`: what a thread can wait for; places where tests hold a thread; a hash.
//! - `settings`: what an operator decides about the node.
//! - `order`: commit order, apply order, the queue of the appliers.
//! - `fate`: a local transaction, and what the log decided about it.
//! - `host`, `group`: what a node asks of its host and of its group.
//! - `start`: what the data directory says of the database in it, and where a start continues.
//! - `link`: a connection to the group; waiting for fates, and giving up.
//! - `node`: what all calls share: state, votes on errors, state transfer, the primary, pauses, leaving.
//! - `session`: what local sessions do. `applier`: what the applier threads do.
//! - `sequencer`: from the log to both of them.
//! - `connection`: how a connection begins and ends.

#![forbid(unsafe_code)]

pub mod applier;
pub mod blocking;
pub mod connection;
pub mod fate;
mod fnv;
pub mod group;
pub mod host;
pub mod link;
pub mod node;
mod order;
pub mod sequencer;
pub mod session;
pub mod settings;
pub mod start;
pub mod sync;
