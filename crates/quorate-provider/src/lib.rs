//! `libquorate.so`: the wsrep provider. MariaDB loads it where it would load Galera.
//!
//! ```text
//!  server ──ffi──▶ Node ──▶ session (local transactions) ────propose──▶ Group (log, consensus)
//!    ▲                                                                       │ committed, in order
//!    └──host── applier (its threads)  ◀──queue── Sequencer (seqno, verdict) ◀┘
//! ```
//!
//! What a node decides is in `quorate-node`, without a word of wsrep. Here is what is wsrep's. Rooms, a lower
//! one first; a room imports from those above it in this list only (`tests/tests/rooms.rs`):
//! - `abi`: the interface as raw types. `answers`: what operators' sessions were told.
//! - `options`: what the server is told by its operator, under Galera's names.
//! - `provider`: a node with its options.
//! - `connect`: which group to look for, and on what data. `operator`: status, orders, options that change.
//! - `ffi`: the function table, the callbacks, the services.

pub mod abi;
mod answers;
mod connect;
pub mod ffi;
#[doc(hidden)]
pub mod fuzzing;
mod operator;
pub mod options;
mod provider;
