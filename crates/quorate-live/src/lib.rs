//! A live member of a group: the threads, sockets and files around the machine of `quorate-group`.
//! It carries out, and decides nothing. The layer above proposes, and applies committed entries in
//! order.
//!
//! ```text
//!  client threads ─propose─▶ intake ──┐            ┌─▶ wal.append ─▶ log writer ─on_sync─┐
//!  receivers ─────packets─────────────┼─▶  core  ──┤                                     │
//!  log writer ◀───────────────────────┘  (a lock,  ├─▶ outboxes ─▶ sockets               │
//!       └──────────────persisted──────▶ the machine)└─▶ gate ─▶ feeder ─▶ StateMachine
//! ```
//!
//! There is no core thread: whoever has an event takes the machine's lock, steps it, and carries out
//! what it decides (`core`). So a commit costs no hand-over between threads but those to the disk and to
//! the network; a receiver even feeds what it hears to be committed, where that is a moment's work (`feeding`).
//!
//! Each part knows only those below it:
//!
//! ```text
//!  group                 the handle
//!  operator              orders, each with its author
//!  open                  from a directory to a running member
//!  threads  syncs        what each thread does
//!  live                  what the threads share
//!  feeding               committed entries on their way to the layer above
//!  core                  the machine behind its lock, and what its output is carried out with
//!  port                  what operators say, and are answered
//!  at_rest              with what files are encrypted
//!  net  host  spawn ...  connections, the layer above, threads as such
//! ```
//!
//! Entry point: [`Group::open`].

/// A page of the documentation, as messages name it: in the sources, and where the packages put it.
#[macro_export]
macro_rules! page {
    ($page:literal) => {
        concat!($page, " (in packages below /usr/share/doc/quorate-provider)")
    };
}

mod at_rest;
mod core;
mod error;
mod feeding;
#[doc(hidden)]
pub mod fuzzing;
mod group;
#[doc(hidden)]
pub mod guest;
mod host;
mod live;
mod net;
mod open;
mod operator;
mod options;
pub mod port;
mod private_file;
mod process;
mod query;
mod spawn;
mod syncs;
mod threads;

pub use at_rest::{AtRest, DiskKey};
pub use error::GroupError;
pub use group::{Group, StartingPoint};
pub use host::{
    CommitLatencyReport, CommitReport, Frozen, KeptLog, Observer, Rehearsal, ServerReport,
    StateMachine,
};
pub use net::connections::{host_of, oldest_of_most};
pub use net::trust::{
    https, parse_bool, read_private, Credential, Expiry, Https, OperatorId, OperatorIdentity,
    Operators, Privilege, Secret, SecretOptions, Security, SecurityError, TlsOptions,
    TransferFiles, ANY_NAME,
};
pub use operator::Operator;
pub use options::{everywhere, GroupOptions, OpenInfo, LOG_SEGMENTS_MIN};
pub use private_file::replace as replace_private;
pub use process::isolate_process;
pub use query::query_status;
pub use quorate_group::{
    Alteration, Author, Committed, Depth, EventKind, ForcePlan, GroupStatus, LogLevel, OrderError,
    OrderNote, Paced, ServerStanding, StartError, View, ViewMember,
};
pub use quorate_wire::{printable, Standing};

#[cfg(test)]
extern crate self as quorate_live;
#[cfg(test)]
mod tests;
