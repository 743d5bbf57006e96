//! Whether a port can be reached, and how far away it is: by connections that say nothing.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

/// A host that is dark is not waited for longer, however many addresses it has.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// No time at all is none that could be waited for.
const SHARE_MIN: Duration = Duration::from_millis(1);

/// What came of it.
pub struct Dialled {
    /// The one of the host's that this is about.
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

/// Tries the host's addresses until one takes the connection. An error: it has none.
pub fn dial(host: &str, port: u16) -> io::Result<Dialled> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    dial_each(&addresses).ok_or_else(|| io::Error::new(ErrorKind::NotFound, "no such address"))
}

/// A refusal is not the last word: a server may listen at one of the host's addresses only. Where none takes the
/// connection, one that refuses it says more than one that is silent. Each has its share of the time.
fn dial_each(addresses: &[SocketAddr]) -> Option<Dialled> {
    let end = Instant::now() + CONNECT_TIMEOUT;
    let mut best: Option<Dialled> = None;
    for (address, left) in addresses.iter().zip((1..=addresses.len() as u32).rev()) {
        let share = end.saturating_duration_since(Instant::now()) / left;
        let dialled = dial_address(*address, share.max(SHARE_MIN));
        if dialled.outcome.is_ok() {
            return Some(dialled);
        }
        let is_better = |best: &Dialled| dialled.is_answered() && !best.is_answered();
        if best.as_ref().is_none_or(is_better) {
            best = Some(dialled);
        }
    }
    best
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn of_a_hosts_addresses_the_one_that_takes_the_connection_counts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        // Nobody listens at the same port of another address; and nobody connects to a multicast address.
        let refused = SocketAddr::from(([127, 0, 0, 2], open.port()));
        let no_way = SocketAddr::from(([224, 0, 0, 1], open.port()));
        let found = |addresses: &[SocketAddr]| {
            let dialled = dial_each(addresses).unwrap();
            (dialled.address, dialled.outcome.is_ok())
        };
        for addresses in [[refused, open], [open, refused], [no_way, open]] {
            assert_eq!(found(&addresses), (open, true), "{addresses:?}");
        }
        for addresses in [[refused, no_way], [no_way, refused]] {
            assert_eq!(found(&addresses), (refused, false), "{addresses:?}");
        }
        assert!(dial_each(&[]).is_none());
    }
}
