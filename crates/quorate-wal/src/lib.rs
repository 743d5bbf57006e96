//! The durable log of one member: preallocated, recycled segments, group commit, recovery; and the
//! small checksummed file of term, vote and identity.
//!
//! ```text
//!  append ─> queue ─> writer ──pwrite, fdatasync──> log-…1  log-…2  log-…3   (segments)
//!    │                  │  └─ OnSync(position)                      ▲
//!    └─> cache ─> read  └─ "next segment, please" ─> recycler ──────┘
//!                  └──────── sparse index ─> segments      meta: term, vote, identity
//! ```
//!
//! What holds:
//!
//! * The log is written strictly forward. A truncation, a reset, the end of a segment are records
//!   like any other; recovery replays them in order ([`replay`]). So there is no place where a
//!   crash could bring back what was taken out after something newer was written.
//! * What `OnSync` reported is on disk, and is found again by every later open, or the open is
//!   refused ([`scan`] says how a torn write is told from damage, and what remains).
//! * Bytes of a recycled segment, and the remains of torn writes, never pass as entries
//!   ([`record`]).
//! * A failed write or sync is final, and so is a bug that ends a thread. Readers are still served.
//! * A disk without room is no failure: the writer waits, acknowledges nothing, and goes on
//!   ([`supply`] says what is kept in reserve).
//! * Appends wait for nothing but the sync before theirs: the next segment is prepared by the
//!   recycler, and preallocated space never runs out.
//! * With keys ([`DiskKeys`]) segments and snapshots are encrypted, and nothing is read that was not
//!   written with them ([`seal`] says how). The meta file holds no rows, and is as it always is.
//! * The threads decide nothing: simulations (feature `sim`) run the same steps without them.

mod cache;
mod codec;
#[cfg(test)]
mod crash_tests;
mod crowd;
#[cfg(test)]
mod damage_tests;
mod directory;
mod disk;
#[cfg(test)]
mod encryption_tests;
mod error;
#[cfg(test)]
mod full_tests;
#[doc(hidden)]
pub mod fuzzing;
mod index;
mod meta;
mod options;
mod reader;
mod record;
mod recovery;
mod recycler;
mod replay;
mod scan;
mod seal;
mod segment;
mod segment_files;
mod shared;
#[cfg(feature = "sim")]
pub mod sim;
mod snapshot_file;
mod state;
mod supply;
mod tail;
mod term_runs;
mod threads;
mod wal;
#[cfg(test)]
mod wal_tests;
mod window;
mod writer;

pub use error::{ReadError, WalError};
pub use options::{Identity, Recovered, Room, WalOptions, WalStats};
pub use seal::{DiskKeyId, DiskKeys};
pub use segment_files::give_up_prepared;
pub use snapshot_file::{SnapshotFile, SnapshotFiles};
pub use wal::{OnSync, Wal};
