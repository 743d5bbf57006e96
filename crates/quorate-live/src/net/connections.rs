//! Every socket that a thread may be waiting on, so that closing the member ends the wait.
//!
//! Invariant: of those that have not introduced themselves, at most [`STRANGERS_MAX`] are open;
//! the oldest makes room for the next, so that nobody can keep the members of the group out.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpStream};

const STRANGERS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Connections {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: BTreeMap<u64, Connection>,
    next: u64,
    closed: bool,
}

struct Connection {
    stream: TcpStream,
    stranger: bool,
}

/// Keeps a connection listed; dropping it takes it off the list.
pub(crate) struct Listed<'a> {
    connections: &'a Connections,
    number: u64,
}

impl Connections {
    /// Lists a connection that this member has dialled, or (`stranger`) accepted.
    pub fn list(&self, stream: &TcpStream, stranger: bool) -> io::Result<Listed<'_>> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(io::Error::other("this member is closing"));
        }
        if stranger {
            state.make_room();
        }
        state.next += 1;
        let number = state.next;
        let stream = stream.try_clone()?;
        state.open.insert(number, Connection { stream, stranger });
        Ok(Listed { connections: self, number })
    }

    /// Ends every connection there is; others may follow.
    pub fn cut(&self) {
        self.state.lock().open.values().for_each(|connection| shut(&connection.stream));
    }

    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.open.values().for_each(|connection| shut(&connection.stream));
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }
}

impl Listed<'_> {
    /// It has introduced itself as a member.
    pub fn known(&self) {
        if let Some(connection) = self.connections.state.lock().open.get_mut(&self.number) {
            connection.stranger = false;
        }
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.connections.state.lock().open.remove(&self.number);
    }
}

impl State {
    fn make_room(&mut self) {
        let strangers = || self.open.iter().filter(|(_, connection)| connection.stranger);
        if strangers().count() >= STRANGERS_MAX {
            if let Some(oldest) = strangers().next().map(|(number, _)| *number) {
                if let Some(connection) = self.open.remove(&oldest) {
                    shut(&connection.stream);
                }
            }
        }
    }
}

/// A socket that is closed already is as good.
pub(crate) fn shut(stream: &TcpStream) {
    let _closed = stream.shutdown(Shutdown::Both);
}
