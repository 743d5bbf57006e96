//! A connection, plain or encrypted. After the greeting it is used one way: the side that dialled
//! writes, the side that accepted reads.

use super::trust::{demand, offer, Binding, Holder, OperatorId, Tls, Trust};
use quorate_consensus::KeyId;
use rustls::pki_types::ServerName;
use rustls::{
    AlertDescription, CertificateError, ClientConnection, Connection, Error, ServerConnection,
};
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// The first byte of a TLS handshake; frames begin otherwise.
const TLS_HANDSHAKE: u8 = 0x16;
/// The first bytes of all TLS records: the answers to a handshake.
const TLS_RECORDS: RangeInclusive<u8> = 0x14..=0x17;
/// A TLS session reads small pieces from what it is given.
const READ_BUFFER: usize = 64 << 10;

/// Blocks as its socket does.
pub(crate) struct Channel {
    socket: Socket,
    session: Option<Box<Connection>>,
    /// Of the other side: its key, if it has proved the group's secret, or the name in its certificate.
    peer: KeyId,
    /// The other side has shown that it is no member, but this operator.
    operator: Option<Box<OperatorId>>,
}

/// Why there is no channel.
pub(crate) enum NoChannel {
    Failed(io::Error),
    /// One side encrypts, the other one does not. The plain connection is good for saying so.
    Mismatch(Box<Channel>, &'static str),
}

impl From<io::Error> for NoChannel {
    fn from(error: io::Error) -> Self {
        NoChannel::Failed(error)
    }
}

impl Channel {
    /// On the side that dials. All reads together end at `deadline`, until [`Channel::is_greeted`].
    pub fn dial(
        stream: TcpStream,
        tls: Option<&Tls>,
        deadline: Instant,
    ) -> Result<Channel, NoChannel> {
        let Some(tls) = tls else {
            let mut channel = Channel::plain(stream);
            channel.socket.deadline = Some(deadline);
            return Ok(channel);
        };
        let nameless = ServerName::try_from("quorate").map_err(io::Error::other)?;
        let session = ClientConnection::new(tls.client.clone(), nameless);
        let mut channel = Channel::beginning(stream, session.map_err(io::Error::other)?.into());
        channel.socket.deadline = Some(deadline);
        channel.send_waiting()?;
        let mut first = [0];
        if channel.socket().peek(&mut first)? == 1 && !TLS_RECORDS.contains(&first[0]) {
            let mut plain = Channel::plain(channel.socket.stream.into_inner());
            plain.socket.deadline = Some(deadline);
            return Err(NoChannel::Mismatch(
                Box::new(plain),
                "it does not encrypt its connections",
            ));
        }
        Ok(channel.agreed(tls, "it may have no certificate, or another kind of security")?)
    }

    /// On the side that accepted: what the other side speaks, if that is allowed.
    pub fn accept(stream: TcpStream, trust: &Trust) -> Result<Channel, NoChannel> {
        let mut first = [0];
        let speaks_tls = stream.peek(&mut first)? == 1 && first[0] == TLS_HANDSHAKE;
        match (speaks_tls, &trust.tls) {
            (true, Some(tls)) => {
                let session = ServerConnection::new(tls.server.clone());
                let session = session.map_err(io::Error::other)?;
                let channel = Channel::beginning(stream, session.into());
                Ok(channel.agreed(tls, "its certificate or ours, or another kind of security")?)
            }
            (true, None) => Err(NoChannel::Mismatch(
                Box::new(Channel::plain(stream)),
                "the dialling node encrypts its connections, this one does not: set \
                 quorate.secret_file (or socket.ssl_cert, socket.ssl_key and socket.ssl_ca) on all \
                 nodes alike",
            )),
            (false, Some(_)) if !trust.dynamic => Err(NoChannel::Mismatch(
                Box::new(Channel::plain(stream)),
                "the dialling side does not encrypt its connections, which this node demands: \
                 nothing it said was believed. Set quorate.secret_file (or socket.ssl_*) on all \
                 nodes alike, or socket.dynamic=yes while the group is switched over",
            )),
            (false, _) => Ok(Channel::plain(stream)),
        }
    }

    /// Encrypted, and the secret proved where one is to be.
    fn agreed(mut self, tls: &Tls, hint: &str) -> io::Result<Channel> {
        self.shake_hands().map_err(|error| explained(error, hint))?;
        let Some(session) = &self.session else { return Ok(self) };
        let dialled = matches!(**session, Connection::Client(_));
        if let Some(certified) = &tls.certified {
            let shown = session.peer_certificates().and_then(<[_]>::first);
            let shown =
                shown.ok_or_else(|| io::Error::other("the other side has no certificate"))?;
            match certified.holder(shown).map_err(io::Error::other)? {
                Holder::Member(key) => self.peer = key,
                Holder::Operator(_) if dialled => {
                    return Err(io::Error::other(
                        "it shows an operator's certificate, and no member's",
                    ));
                }
                Holder::Operator(operator) => self.operator = Some(Box::new(operator)),
            }
        }
        let Some(proving) = &tls.proving else { return Ok(self) };
        let binding = Binding::of(session, &proving.public_key)?;
        let peer = binding.peer(session);
        match dialled {
            true => offer(&mut self, &binding, &proving.shown)?,
            false => self.operator = demand(&mut self, &binding, &proving.shown)?.map(Box::new),
        }
        self.peer = peer;
        Ok(self)
    }

    /// The other side has answered: from here on a read waits for so long, and all reads together until the deadline.
    pub fn is_greeted(&mut self, patience: Duration, deadline: Option<Instant>) -> io::Result<()> {
        self.socket.deadline = deadline;
        self.socket().set_read_timeout(Some(patience))
    }

    /// Which operator the other side has shown to be.
    pub fn operator(&self) -> Option<&OperatorId> {
        self.operator.as_deref()
    }

    pub fn is_plain(&self) -> bool {
        self.session.is_none()
    }

    /// What the other side is known by.
    pub fn peer(&self) -> KeyId {
        self.peer
    }

    pub fn socket(&self) -> &TcpStream {
        self.socket.stream.get_ref()
    }

    /// For writing only from here on.
    pub fn into_writer(self) -> (TcpStream, Option<Box<Connection>>) {
        (self.socket.stream.into_inner(), self.session)
    }

    fn plain(stream: TcpStream) -> Channel {
        // Frames are read through a buffer of their own.
        let socket = Socket { stream: BufReader::with_capacity(0, stream), deadline: None };
        Channel { socket, session: None, peer: KeyId::default(), operator: None }
    }

    fn beginning(stream: TcpStream, mut session: Connection) -> Channel {
        // What is written at once is bounded by the caller.
        session.set_buffer_limit(None);
        let stream = BufReader::with_capacity(READ_BUFFER, stream);
        let socket = Socket { stream, deadline: None };
        Channel { socket, session: Some(Box::new(session)), peer: KeyId::default(), operator: None }
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            while session.is_handshaking() {
                session.complete_io(&mut self.socket)?;
            }
        }
        Ok(())
    }

    /// What the session has to say.
    fn send_waiting(&mut self) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            while session.wants_write() {
                session.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.socket.read(buffer) };
        loop {
            match session.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if session.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            session.process_new_packets().map_err(io::Error::other)?;
        }
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.socket.write(bytes) };
        let taken = session.writer().write(bytes)?;
        self.send_waiting()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Encrypts what is in `plain` onto the end of `wire`, and empties it.
pub(crate) fn encrypt(
    session: &mut Connection,
    plain: &mut Vec<u8>,
    wire: &mut Vec<u8>,
) -> io::Result<()> {
    session.writer().write_all(plain)?;
    plain.clear();
    while session.wants_write() {
        session.write_tls(wire)?;
    }
    Ok(())
}

const LATE: &str = "it took too long to answer";

struct Socket {
    stream: BufReader<TcpStream>,
    /// When the greeting is to be over, however slowly it comes.
    deadline: Option<Instant>,
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, LATE));
            }
            let patience = self.stream.get_ref().read_timeout()?;
            if patience.is_none_or(|patience| patience > left) {
                self.stream.get_ref().set_read_timeout(Some(left))?;
            }
        }
        self.stream.read(buffer).map_err(|error| match (error.kind(), self.deadline) {
            // As a read ends whose time is over.
            (io::ErrorKind::WouldBlock, Some(_)) => io::Error::new(io::ErrorKind::TimedOut, LATE),
            _ => error,
        })
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.get_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.get_mut().flush()
    }
}

fn explained(error: io::Error, hint: &str) -> io::Error {
    let said = error.get_ref().and_then(|source| source.downcast_ref::<Error>());
    let remedy = "put a new one there, and FLUSH SSL; nothing has to be restarted";
    let hint = match said {
        Some(Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => format!("renew the other node's certificate, or its CA's: {remedy}"),
        Some(Error::AlertReceived(AlertDescription::CertificateExpired)) => {
            format!("the other node says so of this node's certificate, or of its CA's: {remedy}")
        }
        _ => hint.to_owned(),
    };
    io::Error::new(error.kind(), format!("no TLS connection: {error} ({hint})"))
}
