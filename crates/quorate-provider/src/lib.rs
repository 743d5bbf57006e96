//! `libquorate.so`: the wsrep provider. MariaDB loads it where it would load Galera.
//!
//! ```text
//!  server ──ffi──▶ Node ──▶ replicate (local transactions) ──propose──▶ Group (log, consensus)
//!    ▲                                                                       │ committed, in order
//!    └──host── session (recv threads) ◀──queue── Sequencer (seqno, verdict) ◀┘
//! ```
//!
//! - `abi`, `callbacks`, `ffi`: the interface as raw types, its callbacks, its function table.
//! - `host`, `group`: what a node asks of its server and of its group.
//! - `node`, `link`, `connect`: what a node is, its connection to the group, how that begins; `observer`:
//!   what the group tells it outside of the log.
//! - `replicate`, `trx`, `toi`, `fate`: what local sessions do.
//! - `sequencer`, `queue`, `session`, `order`: from the log to the server, in order; `arrival`: how
//!   that begins.
//! - `transfer`, `genesis`, `galera_cache`, `grastate`, `isolated`: what a node knows of its own data.
//! - `primary`, `server`: who takes writes, and how servers and clients learn it; `exit`: what a node
//!   does that lost its majority; `withdraw`: how one leaves that cannot go on.
//! - `blocking`: the locks, conditions, clock and threads that all of this uses.
//! - `helpers`, `pause`, `wait`, `options`, `command`, `operator`, `encryption`, `stats`, `counters`, `address`: what the names say.

#![cfg_attr(simulated, allow(clippy::new_without_default, clippy::len_without_is_empty))]

pub mod abi;
mod address;
mod arrival;
mod blocking;
mod callbacks;
mod command;
mod connect;
mod counters;
mod durable;
mod encryption;
mod exit;
mod failed;
mod fate;
pub mod ffi;
mod fnv;
mod galera_cache;
mod genesis;
mod grastate;
mod group;
mod helpers;
mod host;
mod isolated;
mod link;
mod live;
mod node;
mod observer;
mod operator;
pub mod options;
mod order;
mod pause;
mod primary;
mod queue;
mod replicate;
mod room;
mod sequencer;
mod server;
pub mod services;
mod session;
mod stats;
mod sync;
mod toi;
mod transfer;
mod trx;
mod vote;
mod wait;
mod withdraw;

/// What the node's simulation (`quorate-node-sim`) takes of this, beside the raw interface.
#[cfg(simulated)]
pub mod simulation {
    pub use crate::blocking::{now, simulated, Condvar, Mutex, MutexGuard};
    pub use crate::genesis::Genesis;
    pub use crate::group::Group;
    pub use crate::host::{ApplyCall, Host, HostCtx, HostView};
    pub use crate::node::{LocalState, Node, NodeConfig};
    pub use crate::observer::NodeObserver;
    pub use crate::session::RecvEnd;
    pub use crate::trx::Handle;
}
