//! Write sets, and the verdict on each: a pure function of the group log.
//!
//! The origin of a transaction collects its keys and its payload in a [`WriteSetBuilder`] and
//! proposes the bytes. When the log has ordered them, every member parses a [`WriteSet`] and hands
//! it to its [`Certifier`], which assigns the wsrep seqno, decides whether the transaction may
//! commit and says which seqno must be applied before it.
//!
//! Nothing here does I/O, reads a clock or draws a random number: two members that were fed the
//! same log have, bit for bit, the same state and gave the same verdicts.

mod builder;
mod certifier;
mod index;
mod key;
mod key_table;
mod members;
mod snapshot;
pub mod votes;
mod window;
mod write_set;

pub use builder::WriteSetBuilder;
pub use certifier::{Certifier, Limits, Outcome, Verdict, KEYS_MAX_DEFAULT, WINDOW_DEFAULT};
pub use index::{relation, Relation};
pub use key::{Key, KeyType};
pub use members::Members;
pub use snapshot::RestoreError;
pub use write_set::{flags, Header, Keys, Kind, ParseError, WriteSet};

/// A wsrep sequence number. The first item of a group has 1; 0 is "before everything".
pub type Seqno = i64;
