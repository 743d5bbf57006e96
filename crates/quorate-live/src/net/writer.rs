//! The writing end of a connection: packets to frames to the socket.

use super::channel::encrypt;
use super::peer::Outbox;
use super::socket::{send_now, send_waiting};
use parking_lot::Mutex;
use quorate_wire::Gatherer;
use rustls::Connection;
use std::io;
use std::net::TcpStream;

/// What a thread that has other things to do writes at most before it leaves the rest to the
/// sender thread.
const IN_PASSING: usize = 512 * 1024;

#[derive(Default)]
pub(crate) struct Writer {
    stream: Option<TcpStream>,
    /// Encrypts what is written.
    session: Option<Box<Connection>>,
    /// Frames on their way into the session.
    plain: Vec<u8>,
    /// What goes to the socket.
    buffer: Vec<u8>,
    sent: usize,
    gatherer: Gatherer,
}

pub(crate) enum Pumped {
    /// Nothing is left to write.
    Drained,
    /// The rest is for the sender thread.
    Blocked,
    /// There is no (working) connection.
    Broken(Option<io::Error>),
}

impl Writer {
    pub fn connect(&mut self, stream: TcpStream, session: Option<Box<Connection>>) {
        *self = Writer { stream: Some(stream), session, ..Writer::default() };
    }

    pub fn disconnect(&mut self) {
        *self = Writer::default();
    }

    /// Writes until the outbox was found empty; or, unless `wait`, until the socket is full or enough
    /// was done in passing.
    pub fn pump(&mut self, outbox: &Mutex<Outbox>, wait: bool) -> Pumped {
        let Some(stream) = self.stream.take() else { return Pumped::Broken(None) };
        let send = if wait { send_waiting } else { send_now };
        let (mut written, mut more) = (0, true);
        let pumped = loop {
            if self.sent == self.buffer.len() {
                if !more {
                    break Pumped::Drained;
                }
                more = match self.fill(outbox) {
                    Ok(more) => more,
                    Err(error) => break Pumped::Broken(Some(error)),
                };
                if self.buffer.is_empty() {
                    break Pumped::Drained;
                }
                if !wait && written >= IN_PASSING {
                    break Pumped::Blocked;
                }
                written += self.buffer.len();
            }
            match send(&stream, &self.buffer[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Pumped::Blocked,
                Err(error) => break Pumped::Broken(Some(error)),
            }
        };
        self.stream = Some(stream);
        pumped
    }

    /// Gathers what goes into one write; whether there is more.
    fn fill(&mut self, outbox: &Mutex<Outbox>) -> io::Result<bool> {
        self.buffer.clear();
        self.sent = 0;
        let frames = match self.session {
            Some(_) => &mut self.plain,
            None => &mut self.buffer,
        };
        let left = outbox.lock().hand_to(&mut self.gatherer);
        self.gatherer.gather(frames);
        if let Some(session) = &mut self.session {
            encrypt(session, &mut self.plain, &mut self.buffer)?;
        }
        Ok(left || !self.gatherer.is_empty())
    }
}
