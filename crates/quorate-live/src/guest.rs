//! For tests: somebody who has a way in, and says what it likes.

use crate::error::GroupError;
use crate::net::connections::Connections;
use crate::net::dial::{dial, write_packet, Caller, DialError, Dialled};
use crate::net::trust::{Security, Trust};
use quorate_consensus::MemberId;
use quorate_wire::{Packet, PeerIdentity, Want};
use std::io;
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
        let trust = Arc::new(Trust::load(security, dir)?);
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
}
