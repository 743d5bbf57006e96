//! For tests: somebody who has a way in, and says what it likes.

use crate::error::GroupError;
use crate::net::channel::{Channel, NoChannel};
use crate::net::connections::Connections;
use crate::net::dial::{dial, write_packet, Caller, DialError, Dialled, GREETING_BYTES_MAX};
use crate::net::trust::{Credentials, Operators, Security, Trust};
use quorate_consensus::MemberId;
use quorate_wire::{Fragmenter, FrameReader, Packet, PeerIdentity, Want};
use std::io::{self, Write};
use std::net::TcpListener;
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
        let trust = Arc::new(shown(security, dir)?);
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
        let mut fragmenter = Fragmenter::of(packet);
        while frames.last_mut().is_some_and(|frame| fragmenter.next_frame(frame)) {
            frames.push(Vec::new());
        }
        let begun = frames[..frames.len() - 1].concat();
        let stream = self.0.reader.stream_mut();
        stream.write_all(&begun).and_then(|()| stream.flush())
    }
}

/// Where members dial somebody back.
pub struct Host {
    listener: TcpListener,
    trust: Trust,
}

impl Host {
    /// On this host. `dir`: where its key is.
    pub fn bind(security: &Security, dir: Option<&Path>) -> Result<Host, GroupError> {
        let addr = "127.0.0.1:0".to_owned();
        let bound = TcpListener::bind(&addr);
        let listener = bound.map_err(|source| GroupError::Listen { addr, source })?;
        Ok(Host { listener, trust: shown(security, dir)? })
    }

    pub fn addr(&self) -> io::Result<String> {
        Ok(self.listener.local_addr()?.to_string())
    }

    /// Waits for the next greeting, and answers it with this.
    pub fn answers(&self, packet: &Packet) -> io::Result<()> {
        let (stream, _) = self.listener.accept()?;
        let channel = Channel::accept(stream, &self.trust).map_err(|error| match error {
            NoChannel::Failed(error) => error,
            NoChannel::Mismatch(_, why) => io::Error::other(why),
        })?;
        let mut reader = FrameReader::new(channel, GREETING_BYTES_MAX);
        reader.next_packet().map_err(|error| io::Error::other(error.to_string()))?;
        write_packet(reader.stream_mut(), packet)
    }
}

fn shown(security: &Security, dir: Option<&Path>) -> Result<Trust, GroupError> {
    let read = Credentials::read(security, &Operators::default())?;
    Ok(match dir {
        Some(dir) => read.of_member(dir)?,
        None => read.of_process()?,
    })
}
