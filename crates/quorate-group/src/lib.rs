//! A live member of a group: threads that drive consensus, log and network.
//! The layer above proposes, and is fed committed entries in order.
//!
//! ```text
//!  client threads ─propose─▶ pending ─┐            ┌─▶ wal.append ─▶ log writer ─on_sync─┐
//!  receivers ─────packets─────────────┼─▶ driver ──┤                                     │
//!  log writer ◀───────────────────────┘  (a lock,  ├─▶ outboxes ─▶ sockets               │
//!       └──────────────persisted──────▶   the core)└─▶ progress ─▶ sequencer ─▶ StateMachine
//! ```
//!
//! There is no core thread: whoever has an event takes the core's lock, steps it, and carries out
//! what it decides (`driver`). So a commit costs no hand-over between threads but those to the
//! disk, to the network, and to the sequencer.
//!
//! Entry point: [`Group::open`].

mod admission;
mod ballots;
mod disk_watch;
mod driver;
mod error;
mod forced;
mod founding;
mod group;
mod host_watch;
mod join;
mod keeper;
mod leave;
mod lineage;
mod machine;
mod member;
mod membership;
mod net;
mod notices;
mod open;
mod options;
mod orders;
mod pending;
mod policy;
mod progress;
mod query;
mod reads;
mod restore;
mod room_watch;
mod sequencer;
mod snapshot;
mod status;
mod survive;
mod switchover;
mod threads;
mod view;
mod watches;

pub use error::GroupError;
pub use forced::ForcePlan;
pub use group::Group;
pub use machine::{Committed, LogLevel, Observer, StateMachine};
pub use net::tls::TlsOptions;
pub use options::{GroupOptions, OpenInfo};
pub use orders::Alteration;
pub use query::query_status;
pub use status::GroupStatus;
pub use survive::isolate_process;
pub use view::{View, ViewMember};

#[cfg(test)]
extern crate self as quorate_group;
#[cfg(test)]
mod tests;
