//! What members say to each other on a connection: frames, packets, handshake.
//!
//! A [`Packet`] is encoded into a [`Body`] (large payloads by reference, not copied), a
//! [`Fragmenter`] cuts the body into frames of at most [`frame::FRAME_BODY_MAX`] bytes, [`Lanes`] and
//! [`Gatherer`] say which frame is written next, and at the other end a [`FrameReader`] checks and puts them together again.
//!
//! Invariants, whatever the bytes are:
//! - no decoder panics;
//! - no buffer grows beyond what has really arrived, nor beyond the limit its owner set;
//! - every frame is checksummed with its header, so a length or a type is never acted upon damaged.

mod body;
mod consensus;
mod control;
mod error;
pub mod frame;
mod handshake;
mod lanes;
mod packet;
mod reader;
mod standing;

pub use body::{printable, Body, BodyReader, BodyWriter};
pub use control::{Admission, JoinRequest, LeaveAnswer, SnapshotBegin, Wish};
pub use error::WireError;
pub use frame::{Fragmenter, FrameType};
pub use handshake::{Hello, PeerIdentity, Refusal, RefusalCode, Want, Welcome, NAME_MAX};
pub use handshake::{PROTOCOL_MAX, PROTOCOL_MIN};
pub use lanes::{Gatherer, Lanes};
pub use packet::Packet;
pub use reader::{FrameReader, ReadFailure};
pub use standing::Standing;

#[cfg(test)]
mod tests;
