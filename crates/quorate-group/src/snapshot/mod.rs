//! Snapshots of the state after a log index: what their files say, their way between members, and
//! how much of the log they make needless.

mod arrivals;
mod assembly;
mod content;
mod logger;
mod parcel;
mod release;

pub(crate) use arrivals::Arrivals;
pub use assembly::{Assembly, Received};
pub use content::{Content, Outline, Stored};
pub(crate) use logger::{had_without_loggers, voting_servers};
pub use parcel::Parcel;
pub(crate) use release::Releases;
