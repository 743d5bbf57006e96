//! A connection, plain or encrypted. After the greeting it is used one way: the side that dialled
//! writes, the side that accepted reads.

use super::tls::Tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;

/// The first byte of a TLS handshake; frames begin otherwise.
const TLS_HANDSHAKE: u8 = 0x16;
/// A TLS session reads small pieces from what it is given.
const READ_BUFFER: usize = 64 << 10;

/// Blocks as its socket does.
pub(crate) struct Channel {
    socket: Socket,
    session: Option<Box<Connection>>,
}

impl Channel {
    /// On the side that dials.
    pub fn dial(stream: TcpStream, tls: Option<&Tls>) -> io::Result<Channel> {
        let Some(tls) = tls else { return Ok(Channel::plain(stream)) };
        let nameless = ServerName::try_from("quorate").map_err(io::Error::other)?;
        let session = ClientConnection::new(tls.client.clone(), nameless);
        let session = session.map_err(io::Error::other)?;
        Channel::encrypted(stream, session.into())
            .map_err(|error| explained(error, "it may have no certificate, or not speak TLS"))
    }

    /// On the side that accepted: what the other side speaks, if that is allowed.
    pub fn accept(stream: TcpStream, tls: Option<&Tls>) -> io::Result<Channel> {
        let mut first = [0];
        let speaks_tls = stream.peek(&mut first)? == 1 && first[0] == TLS_HANDSHAKE;
        match (speaks_tls, tls) {
            (true, Some(tls)) => {
                let session = ServerConnection::new(tls.server.clone());
                let session = session.map_err(io::Error::other)?;
                Channel::encrypted(stream, session.into())
                    .map_err(|error| explained(error, "its certificate or ours may be at fault"))
            }
            (true, None) => Err(io::Error::other(
                "it speaks TLS, this node does not: set socket.ssl, socket.ssl_cert, \
                 socket.ssl_key and socket.ssl_ca on all nodes alike",
            )),
            (false, Some(tls)) if !tls.dynamic => Err(io::Error::other(
                "it does not speak TLS, which this node demands (socket.ssl): nothing it said was \
                 believed; set socket.ssl on it, too, or socket.dynamic=yes on all nodes while the \
                 group is switched over",
            )),
            (false, _) => Ok(Channel::plain(stream)),
        }
    }

    pub fn socket(&self) -> &TcpStream {
        self.socket.0.get_ref()
    }

    /// For writing only from here on.
    pub fn into_writer(self) -> (TcpStream, Option<Box<Connection>>) {
        (self.socket.0.into_inner(), self.session)
    }

    fn plain(stream: TcpStream) -> Channel {
        // Frames are read through a buffer of their own.
        Channel { socket: Socket(BufReader::with_capacity(0, stream)), session: None }
    }

    fn encrypted(stream: TcpStream, mut session: Connection) -> io::Result<Channel> {
        // What is written at once is bounded by the caller.
        session.set_buffer_limit(None);
        let mut socket = Socket(BufReader::with_capacity(READ_BUFFER, stream));
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Channel { socket, session: Some(Box::new(session)) })
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
        while session.wants_write() {
            session.write_tls(&mut self.socket)?;
        }
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

struct Socket(BufReader<TcpStream>);

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
    }
}

fn explained(error: io::Error, hint: &str) -> io::Error {
    io::Error::new(error.kind(), format!("no TLS connection: {error} ({hint})"))
}
