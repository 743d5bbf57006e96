//! What a member watches about itself: its disk and the room on it, its host, its contact with a quorum.

mod contact;
mod disk;
mod host;
mod room;

pub(crate) use contact::{Change, Contact};
pub(crate) use disk::DiskWatch;
pub(crate) use host::HostWatch;
pub(crate) use room::{RoomWatch, StandStill};
