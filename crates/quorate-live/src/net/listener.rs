//! The group port: accepts connections, and keeps strangers from doing harm.

use super::allowed::Allowed;
use super::complaints::Complaints;
use super::connections::Connections;
use super::{dial, socket};
use crate::error::GroupError;
use parking_lot::Mutex;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long a connection takes from this host to itself at most.
const ARRIVAL: Duration = Duration::from_millis(100);

pub(crate) struct Acceptor {
    listener: TcpListener,
    complaints: Mutex<Complaints>,
    pub connections: Connections,
    pub allowed: Allowed,
}

impl Acceptor {
    pub fn bind(addr: &str) -> Result<Self, GroupError> {
        let bound = addr.to_socket_addrs().and_then(|addrs| {
            let addrs: Vec<_> = addrs.collect();
            TcpListener::bind(&addrs[..])
        });
        let listener =
            bound.map_err(|source| GroupError::Listen { addr: addr.to_owned(), source })?;
        Ok(Self {
            listener,
            complaints: Mutex::default(),
            connections: Connections::default(),
            allowed: Allowed::default(),
        })
    }

    /// Whether `addr` is this port under another name: a connection to it arrives here. For the
    /// time before [`Acceptor::accept`]. Strangers that come meanwhile are turned away.
    pub fn is_at(&self, addr: &str) -> io::Result<bool> {
        let Ok(probe) = dial::connect(addr) else { return Ok(false) };
        let (wanted, there) = (probe.local_addr()?, probe.peer_addr()?);
        // On this host: then it is here as good as at once.
        let local = wanted.ip() == there.ip() || there.ip().is_loopback();
        let patience = if local { ARRIVAL } else { Duration::ZERO };
        while socket::has_news(self.listener.as_fd(), patience) {
            if self.listener.accept()?.1 == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.listener.accept()
    }

    /// A line about a stranger, unless there was one for the same reason a while ago.
    pub fn complaint(&self, who: &str, reason: &str) -> Option<String> {
        self.complaints.lock().line(who, reason, Instant::now())
    }

    /// Stops accepting, and ends every connection.
    pub fn close(&self) {
        self.connections.close();
        let _woken = socket::wake_acceptor(&self.listener);
    }
}
