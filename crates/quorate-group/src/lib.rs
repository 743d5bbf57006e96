//! A member of a group as a pure state machine: consensus, forwarding, admission, views, orders.
//!
//! [`Member::step`] takes one [`Input`] and adds to one [`Output`]. Nothing in this crate knows a
//! thread, a socket, a clock, a file, a lock or a source of randomness: time comes in with each input
//! (milliseconds of one monotonic clock), randomness from a seed. The shell (`quorate-live`, or a
//! simulator) brings the inputs and carries the outputs out; it decides nothing.
//!
//! Each folder owns its state and is handed what it needs. A lower layer knows no higher one:
//!
//! ```text
//!  member        the machine: which input goes where, housekeeping
//!  orders        what an operator or the layer above asks for, until it is answered
//!  membership  alone  read  watch  noting  standing    what a leader keeps right, and what a member asks for
//!  driver        the consensus core, the peers, proposals on their way to the leader
//!  opening       what a start does on the disk, before there is a machine
//!  feed  lineage  start  forward  status  happened  redial     pure parts, used beside the machine, too
//!  input  output  snapshot  order  view  options  note  author  error  rejected     what is said
//! ```
//!
//! Beside the machine, without its lock, run [`Feed`] (committed entries for the layer above),
//! [`Assembly`] and [`Parcel`] (snapshots on their way).

mod alone;
mod author;
mod depth;
mod driver;
mod error;
mod feed;
mod forward;
mod happened;
mod input;
mod lineage;
mod member;
mod membership;
mod note;
mod noting;
mod opening;
mod options;
mod order;
mod orders;
mod output;
mod paced;
mod read;
mod redial;
mod rejected;
mod snapshot;
mod standing;
mod start;
mod status;
mod view;
mod watch;

pub use author::{Author, Mandate};
pub use depth::Depth;
pub use error::{memory_fault, OrderError, StartError};
pub use feed::{Committed, Feed, FeedError, Noted};
pub use forward::{Intake, FORWARD_BYTES};
pub use input::{Applied, AskAnswer, Input, LogRoom};
pub use member::{AtLength, Greeting, Member};
pub use note::{
    EventKind, EventNote, Note, NoteId, Notes, OrderNote, OrderTaken, EVENTS_MAX, NOTES_MAX,
    NOTE_BYTES_MAX,
};
pub use opening::{prepare, Opened, Opening};
pub use options::Options;
pub use order::{Alteration, Answer, Done, ForcePlan, Order};
pub use output::{
    Ask, Link, LogLevel, LogQueue, Notice, Output, Release, ServerStanding, SnapshotOrder,
};
pub use paced::Paced;
pub use redial::Redial;
pub use snapshot::{Assembly, Content, Outline, Parcel, Received, Stored};
pub use start::{fit, Directory, Fit, SeedAnswer};
pub use status::{GroupStatus, LogFigures, PeerLook};
pub use view::{View, ViewMember};
