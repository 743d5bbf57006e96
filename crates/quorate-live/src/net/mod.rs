//! Connections to the other members.
//!
//! Each member dials each other member, and a connection carries packets one way: from the side
//! that dialled. So a pair of members has two connections and there is nothing to resolve when
//! both dial at once. Whom to dial, and whom to welcome, is the machine's to say.
//!
//! ```text
//!  any thread ──push (under its lock)──▶ Peer outbox ──flush──▶ socket      (links, peer, writer)
//!  sender thread, one a peer: dials, writes what did not fit, reads the log for it (sender)
//!  acceptor thread ──▶ receiver thread, one a connection: handshake, packets ──▶ machine
//! ```

pub(crate) mod allowed;
pub(crate) mod channel;
pub(crate) mod complaints;
pub(crate) mod connections;
pub(crate) mod dial;
pub(crate) mod listener;
pub(crate) mod peer;
pub(crate) mod socket;
pub(crate) mod trust;
pub(crate) mod writer;
