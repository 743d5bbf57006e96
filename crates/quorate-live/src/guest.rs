//! For tests: somebody who has a way in, and says what it likes.

use crate::error::GroupError;
use crate::net::connections::Connections;
use crate::net::dial::{dial, write_packet, Caller, DialError, Dialled};
use crate::net::trust::{Credentials, Operators, Security};
use quorate_consensus::MemberId;
use quorate_wire::{Fragmenter, Packet, PeerIdentity, Want};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A connection with a member, by whatever its key or certificate is let in for.
pub struct Guest(Dialled);

impl Guest {
    /// Dials the member `to` at `addr`, and introduces itself as `identity`. `dir`: where its key is.
    pub fn dial(
        (to, addr): (MemberId, &str),
        identity: PeerIdentity,
        security: &Security,
        dir: Option<&Path>,
    ) -> Result<Guest, GroupError> {
        let read = Credentials::read(security, &Operators::default())?;
        let trust = match dir {
            Some(dir) => read.of_member(dir)?,
            None => read.of_process()?,
        };
        let trust = Arc::new(trust);
        let connections = Connections::default();
        let silence = Duration::from_secs(5);
        let caller = Caller { identity, silence, connections: &connections, trust };
        let dialled = dial(caller, addr, Want::Peer, Some(to));
        dialled.map(Guest).map_err(|error: DialError| GroupError::NoAnswer {
            addr: addr.to_owned(),
            reason: error.to_string(),
        })
    }

    pub fn says(&mut self, packet: &Packet) -> io::Result<()> {
        write_packet(self.0.reader.stream_mut(), packet)
    }

    /// All of it but its last frame: the other side waits for the rest.
    pub fn begins(&mut self, packet: &Packet) -> io::Result<()> {
        // The last frame is in the last one.
        let mut frames = vec![Vec::new()];
        let mut fragmenter = Fragmenter::new(packet.frame_type(), packet.encode());
        while frames.last_mut().is_some_and(|frame| fragmenter.next_frame(frame)) {
            frames.push(Vec::new());
        }
        let begun = frames[..frames.len() - 1].concat();
        let stream = self.0.reader.stream_mut();
        stream.write_all(&begun).and_then(|()| stream.flush())
    }
}
