//! The group port: accepts connections, and keeps strangers from doing harm.
//!
//! Invariants: connections are counted and bounded, whatever comes; complaints about strangers are
//! at most one line a second.

use super::{receiver, socket};
use crate::error::GroupError;
use crate::machine::LogLevel;
use crate::member::Member;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections at one time, of members and of strangers.
const CONNECTIONS_MAX: usize = 256;
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Acceptor {
    listener: TcpListener,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: HashMap<u64, TcpStream>,
    next: u64,
    closed: bool,
    complained: Option<Instant>,
    suppressed: u64,
}

impl Acceptor {
    pub fn bind(addr: &str) -> Result<Self, GroupError> {
        let bound = addr.to_socket_addrs().and_then(|addrs| {
            let addrs: Vec<_> = addrs.collect();
            TcpListener::bind(&addrs[..])
        });
        let listener =
            bound.map_err(|source| GroupError::Listen { addr: addr.to_owned(), source })?;
        Ok(Self { listener, state: Mutex::default() })
    }

    /// The thread.
    pub fn run(&self, member: &Arc<Member>) {
        loop {
            let accepted = self.listener.accept();
            if self.state.lock().closed {
                return;
            }
            match accepted {
                Ok((stream, addr)) => {
                    if let Err(error) = self.receive(member, stream) {
                        self.complain(member, format!("connection from {addr} dropped: {error}"));
                    }
                }
                Err(error) => {
                    self.complain(member, format!("cannot accept connections: {error}"));
                    // Out of file descriptors, most likely: do not spin until some are free.
                    if !member.membership.pause(Instant::now() + Duration::from_millis(100)) {
                        return;
                    }
                }
            }
        }
    }

    fn receive(&self, member: &Arc<Member>, stream: TcpStream) -> io::Result<()> {
        socket::configure(&stream, member.options.suspect_timeout)?;
        let number = self.register(&stream)?;
        let served = member.clone();
        let spawned = member.threads.spawn("recv", move || {
            receiver::run(&served, stream);
            served.acceptor.unregister(number);
        });
        if !spawned {
            self.unregister(number);
            return Err(io::Error::other("no thread for it"));
        }
        Ok(())
    }

    fn register(&self, stream: &TcpStream) -> io::Result<u64> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(io::Error::other("closing"));
        }
        if state.open.len() >= CONNECTIONS_MAX {
            return Err(io::Error::other(format!("{CONNECTIONS_MAX} are open already")));
        }
        state.next += 1;
        let number = state.next;
        state.open.insert(number, stream.try_clone()?);
        Ok(number)
    }

    fn unregister(&self, number: u64) {
        self.state.lock().open.remove(&number);
    }

    /// A line about a stranger, unless there was one within a second.
    pub fn complain(&self, member: &Member, message: String) {
        let mut state = self.state.lock();
        if state.complained.is_some_and(|at| at.elapsed() < COMPLAINT_INTERVAL) {
            state.suppressed += 1;
            return;
        }
        state.complained = Some(Instant::now());
        let suppressed = std::mem::take(&mut state.suppressed);
        drop(state);
        let more = match suppressed {
            0 => String::new(),
            count => format!(" ({count} similar lines were left out)"),
        };
        member.log(LogLevel::Warn, message + &more);
    }

    /// Stops accepting, and ends every accepted connection.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        for stream in state.open.values() {
            // One that is closed already is as good.
            let _closed = stream.shutdown(Shutdown::Both);
        }
        let _woken = socket::wake_acceptor(&self.listener);
    }
}
