//! Whether a port can be reached, and how far away it is: by connections that say nothing.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

/// A host that is dark is not waited for longer, however many addresses it has.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What came of it.
pub struct Dialled {
    /// The last address that was tried: the one that answered, if one did.
    pub address: SocketAddr,
    pub outcome: io::Result<()>,
    pub took: Duration,
}

impl Dialled {
    /// The host's kernel spoke, whether or not somebody listens there.
    pub fn is_answered(&self) -> bool {
        match &self.outcome {
            Ok(()) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionRefused,
        }
    }
}

/// Tries the host's addresses until one answers. An error: it has none.
pub fn dial(host: &str, port: u16) -> io::Result<Dialled> {
    let end = Instant::now() + CONNECT_TIMEOUT;
    let mut last = None;
    for address in (host, port).to_socket_addrs()? {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let dialled = dial_address(address, left);
        if dialled.is_answered() {
            return Ok(dialled);
        }
        last = Some(dialled);
    }
    last.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "no such address"))
}

pub fn dial_address(address: SocketAddr, patience: Duration) -> Dialled {
    let began = Instant::now();
    let outcome = TcpStream::connect_timeout(&address, patience).map(drop);
    Dialled { address, outcome, took: began.elapsed() }
}

/// Of `HOST:PORT` or `[V6]:PORT`.
pub fn host_and_port(address: &str, usual: u16) -> (&str, u16) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    (host.trim_start_matches('[').trim_end_matches(']'), port.parse().unwrap_or(usual))
}

/// This host's address, as whoever is there sees it if nothing in between changes it. Nothing is sent.
pub fn own_address(there: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = match there {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(there).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
