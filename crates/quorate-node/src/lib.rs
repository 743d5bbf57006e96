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
//! lower one first. Each owns its state, is handed the parts below it that it needs, and knows none above
//! (`tests/tests/rooms.rs`):
//! - `blocking`, `sync`, `fnv`: what a thread can wait for; places where tests hold a thread; a hash.
//! - `flow`: how fast a node may write while another is behind. `settings`: what an operator decides about the node.
//! - `order`: commit order, apply order, the queue of the appliers.
//! - `fate`: a local transaction, and what the log decided about it.
//! - `host`, `group`: what a node asks of its host and of its group.
//! - `start`: what the data directory says of the database in it, and where a start continues.
//! - `link`: a connection to the group; waiting for fates, and giving up. `counters`, `lag`: for status
//!   variables. `backlog`: when what waits to be applied is too much.
//! - `local`: what all parts stand on: host, configuration, state, orders, queue, connection.
//! - `whole_data`: the data of a write set as a server is given it.
//! - `records`: what the node notes in the data directory. `proposals`: what it proposes. `views`: what the
//!   server is shown of the group. `gtid_domain`: the domain of GTIDs. `catch_up`: from joined to synced.
//! - `withdraw`: how a node that cannot go on leaves; the node's own threads.
//! - `pause`: holding still. `primary`: who takes writes. `votes`: what becomes of an error.
//! - `transfer`: the state, received or sent. `exit`: what a node does that is long without a majority.
//! - `session`: what local sessions do. `applier`: what the applier threads do.
//! - `delivered`: as what a write set comes to the appliers. `rehearsal`: whether a log reaches a database.
//!   `sequencer`: from the log to sessions and appliers.
//! - `node`: all of them wired together, what a host may call, how a connection begins and ends.

#![forbid(unsafe_code)]

pub mod applier;
mod backlog;
pub mod blocking;
mod catch_up;
pub mod counters;
mod delivered;
mod exit;
pub mod fate;
pub mod flow;
mod fnv;
#[doc(hidden)]
pub mod fuzzing;
pub mod group;
mod gtid_domain;
pub mod host;
mod lag;
pub mod link;
mod local;
pub mod node;
mod order;
mod pause;
mod primary;
mod proposals;
mod records;
mod rehearsal;
pub mod sequencer;
pub mod session;
pub mod settings;
pub mod start;
pub mod sync;
mod transfer;
mod views;
mod votes;
mod whole_data;
mod withdraw;
