//! Connecting to an address and introducing oneself.

use super::channel::{Channel, NoChannel};
use super::connections::Connections;
use super::socket;
use super::trust::{Tls, Trust};
use quorate_consensus::{KeyId, MemberId};
use quorate_wire::{
    Body, Fragmenter, FrameReader, FrameType, Hello, Packet, PeerIdentity, ReadFailure, Refusal,
    RefusalCode, Want, Welcome, WireError, PROTOCOL_MAX, PROTOCOL_MIN,
};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a host may take to answer a connection attempt, and a process a question.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// How long all of a greeting may take: whoever answers byte by byte keeps nobody from asking others.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest packet before both sides know each other.
pub(crate) const GREETING_BYTES_MAX: usize = 32 << 10;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// There is no connection.
    #[error("{0}")]
    Connect(io::Error),
    /// There was one, but what was needed on it could not be said or heard.
    #[error("{0}")]
    Handshake(io::Error),
    /// By who showed `key`.
    #[error("refused: {}", .refusal.text)]
    Refused { refusal: Refusal, key: KeyId },
    /// The other side says that it encrypts nothing, and this one does.
    #[error("{0}")]
    Unencrypted(String),
    #[error("{0}")]
    Protocol(#[from] ReadFailure),
}

/// A connection on which both sides know each other.
pub(crate) struct Dialled {
    pub reader: FrameReader<Channel>,
    pub welcome: Welcome,
    /// The other side encrypts nothing, and this one does; it is allowed.
    pub plain: bool,
    /// What was in force when it was dialled.
    pub trust: Arc<Trust>,
    /// When one question is to be answered, if it is asked at once.
    deadline: Instant,
}

/// Who dials.
pub(crate) struct Caller<'a> {
    pub identity: PeerIdentity,
    /// Without a sign of life for so long, a connection ends.
    pub silence: Duration,
    pub connections: &'a Connections,
    pub trust: Arc<Trust>,
}

impl Dialled {
    pub fn socket(&self) -> &TcpStream {
        self.reader.stream().socket()
    }

    /// One question, one answer.
    pub fn ask(&mut self, own: MemberId, question: &Packet) -> Result<Packet, DialError> {
        let channel = self.reader.stream_mut();
        channel.is_greeted(ANSWER_TIMEOUT, Some(self.deadline)).map_err(DialError::Handshake)?;
        write_packet(channel, question).map_err(DialError::Handshake)?;
        read_packet(&mut self.reader, self.welcome.from.member, own)
    }
}

pub(crate) fn dial(
    caller: Caller<'_>,
    addr: &str,
    want: Want,
    expects: Option<MemberId>,
) -> Result<Dialled, DialError> {
    let tls = caller.trust.tls.as_ref();
    match attempt(&caller, addr, want, expects, tls) {
        // It is not switched over yet.
        Err(DialError::Unencrypted(_)) if caller.trust.dynamic => {
            let dialled = attempt(&caller, addr, want, expects, None)?;
            Ok(Dialled { plain: true, ..dialled })
        }
        other => other,
    }
}

fn attempt(
    caller: &Caller<'_>,
    addr: &str,
    want: Want,
    expects: Option<MemberId>,
    tls: Option<&Tls>,
) -> Result<Dialled, DialError> {
    let stream = connect(addr).map_err(DialError::Connect)?;
    let there = stream.peer_addr().map_err(DialError::Connect)?;
    if let Some(why) = caller.trust.bars(there.ip()) {
        let reason = format!("it is on another host, and {why}");
        return Err(DialError::Handshake(io::Error::other(reason)));
    }
    // Until the answer is here: closing the member ends the wait for it.
    let _listed = caller.connections.list(&stream).map_err(DialError::Connect)?;
    let prepared = socket::configure(&stream, caller.silence)
        .and_then(|()| stream.set_read_timeout(Some(ANSWER_TIMEOUT)))
        .and_then(|()| stream.set_write_timeout(Some(ANSWER_TIMEOUT)));
    prepared.map_err(DialError::Handshake)?;
    let deadline = Instant::now() + GREETING_TIMEOUT;
    let mut channel = Channel::dial(stream, tls, deadline).map_err(|error| match error {
        NoChannel::Failed(error) => DialError::Handshake(error),
        NoChannel::Mismatch(plain, what) => unencrypted(*plain, what),
    })?;
    let versions = (PROTOCOL_MIN, PROTOCOL_MAX);
    let own = caller.identity.member;
    let hello = Hello { versions, want, from: caller.identity.clone(), expects };
    write_packet(&mut channel, &Packet::Hello(hello)).map_err(DialError::Handshake)?;
    let mut reader = FrameReader::new(channel, GREETING_BYTES_MAX);
    match read_packet(&mut reader, MemberId(0), own)? {
        Packet::Welcome(mut welcome) => {
            welcome.from.key = reader.stream().peer();
            reader.stream_mut().is_greeted(ANSWER_TIMEOUT, None).map_err(DialError::Handshake)?;
            Ok(Dialled { reader, welcome, plain: false, trust: caller.trust.clone(), deadline })
        }
        Packet::Refuse(refusal) => Err(DialError::Refused { refusal, key: reader.stream().peer() }),
        other => {
            let value = (other.frame_type() as u8).into();
            let error = WireError::BadValue { what: "the answer to hello", value };
            Err(DialError::Protocol(error.into()))
        }
    }
}

/// Anybody can answer in the clear. Of what it says, only that it is a member that encrypts nothing is
/// listened to, and none of its words gets into a log; any other refusal would be one of a member's, which
/// this has not shown to be.
fn unencrypted(plain: Channel, what: &str) -> DialError {
    let mut reader = FrameReader::new(plain, GREETING_BYTES_MAX);
    let refuses = || {
        let (FrameType::Refuse, body) = reader.next_packet().ok()? else { return None };
        Packet::decode(FrameType::Refuse, body, MemberId(0), MemberId(0)).ok()
    };
    match { refuses }() {
        Some(Packet::Refuse(refusal)) if refusal.code == RefusalCode::Security => {
            DialError::Unencrypted(what.to_owned())
        }
        _ => DialError::Handshake(io::Error::other(format!("{what}, and this node does"))),
    }
}

/// What is allowed for a while must not be forgotten.
pub(crate) fn plain_line(connection: &str) -> String {
    format!(
        "{connection} is NOT encrypted, which socket.dynamic=yes allows. Take socket.dynamic out when all \
         nodes are switched over"
    )
}

pub(crate) fn write_packet(channel: &mut Channel, packet: &Packet) -> io::Result<()> {
    write_frames(channel, packet.frame_type(), packet.encode())
}

pub(crate) fn write_frames(channel: &mut Channel, kind: FrameType, body: Body) -> io::Result<()> {
    let mut frames = Vec::new();
    Fragmenter::new(kind, body).all_frames(&mut frames);
    channel.write_all(&frames).and_then(|()| channel.flush())
}

fn read_packet(
    reader: &mut FrameReader<Channel>,
    from: MemberId,
    to: MemberId,
) -> Result<Packet, DialError> {
    let (frame_type, body) = reader.next_packet()?;
    Packet::decode(frame_type, body, from, to).map_err(|error| DialError::Protocol(error.into()))
}

/// To the first address of this name that answers. A refusal says that the process is gone (`Input::NotThere`), so it
/// is the error only if all addresses refuse: a host may refuse at an address at which the process does not listen.
pub(crate) fn connect(addr: &str) -> io::Result<TcpStream> {
    connect_to(addr.to_socket_addrs()?, |addr| TcpStream::connect_timeout(addr, CONNECT_TIMEOUT))
}

fn connect_to<T>(
    addrs: impl Iterator<Item = SocketAddr>,
    connect: impl Fn(&SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    let mut told: Option<io::Error> = None;
    for addr in addrs {
        match connect(&addr) {
            Ok(stream) => return Ok(stream),
            Err(error) if told.as_ref().is_none_or(refused) => told = Some(error),
            Err(_) => {}
        }
    }
    Err(told.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such address")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::ErrorKind::{ConnectionRefused, TimedOut};

    #[test]
    fn a_process_is_gone_only_if_all_addresses_of_its_host_refuse() {
        let addrs: Vec<SocketAddr> =
            vec!["127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap()];
        let told = |errors: [Option<io::ErrorKind>; 2]| {
            let connect = |addr: &SocketAddr| match errors[usize::from(addr.is_ipv6())] {
                Some(kind) => Err(kind.into()),
                None => Ok(()),
            };
            connect_to(addrs.iter().copied(), connect).map_err(|error| error.kind())
        };
        let (refused, silent) = (Some(ConnectionRefused), Some(TimedOut));
        assert_eq!(told([refused, refused]), Err(ConnectionRefused));
        assert_eq!(told([refused, silent]), Err(TimedOut));
        assert_eq!(told([silent, refused]), Err(TimedOut));
        assert_eq!(told([refused, None]), Ok(()));
    }
}
