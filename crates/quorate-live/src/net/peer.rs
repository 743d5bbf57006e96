//! What this member has of another one: an outbox, and the connections to and from it.
//!
//! Invariants:
//! - packets of one lane leave in the order of `push`; they are pushed under the machine's lock;
//! - after a push, somebody writes: the pusher, the thread that holds the writer, or, when the
//!   socket is full, the sender thread;
//! - the outbox holds nothing while there is no connection. The core's window bounds what it holds
//!   beside packets of any length; beyond [`OUTBOX_BYTES_MAX`] a peer must go on taking something: if
//!   it takes nothing for the suspect timeout it is cut off, and the core probes it anew;
//! - answers, which a peer can cause as many of as it likes, are urgent: one that leaves [`URGENT_MAX`]
//!   untaken is cut off at once, however slowly it takes them.

mod again;

use self::again::Again;
use super::connections::shut;
use super::writer::{Pumped, Writer};
use parking_lot::{Condvar, Mutex};
use quorate_consensus::{Fetch, MemberId, Term};
use quorate_group::FORWARD_BYTES;
use quorate_wire::{Gatherer, Lanes, Packet};
use rustls::Connection;
use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The core's window to one follower is far below this.
pub(crate) const OUTBOX_BYTES_MAX: usize = 64 << 20;
/// More than pile up at the highest commit rates before a silent member is suspected; about 8 MiB of memory.
const URGENT_MAX: usize = 32_768;

pub(crate) struct Peer {
    pub id: MemberId,
    /// How long it may take nothing of an outbox that is full.
    patience: Duration,
    outbox: Mutex<Outbox>,
    /// Wakes the sender thread.
    wake: Condvar,
    writer: Mutex<Writer>,
}

pub(crate) struct Outbox {
    pub(super) lanes: Lanes,
    /// Since when, as far as was looked, the outbox is full and nothing leaves it.
    stuck: Option<Instant>,
    /// Outgoing connection, for shutting it down from any thread.
    outgoing: Option<TcpStream>,
    broken: bool,
    blocked: bool,
    probe: bool,
    fetches: VecDeque<Fetch>,
    /// A snapshot is to be sent, by the leader of this term.
    snapshot_wanted: Option<Term>,
    again: Again,
    /// Where to dial it.
    addrs: Vec<String>,
    redial: bool,
    stop: bool,
    /// Somebody waits for less than [`FORWARD_BYTES`].
    room_wanted: bool,
    incoming: Option<Incoming>,
}

struct Incoming {
    connection: u64,
    stream: TcpStream,
}

/// What the sender thread is to do next.
pub(crate) enum Work {
    Stop,
    Reconnect,
    /// Their connection to us has ended: find out whether ours has, too.
    Probe,
    /// Write what did not fit into the socket.
    Write,
    Fetch(Fetch),
    Snapshot(Term),
}

impl Peer {
    pub fn new(id: MemberId, patience: Duration) -> Self {
        let outbox = Outbox {
            lanes: Lanes::default(),
            stuck: None,
            outgoing: None,
            broken: false,
            blocked: false,
            probe: false,
            fetches: VecDeque::new(),
            snapshot_wanted: None,
            again: Again::default(),
            addrs: Vec::new(),
            redial: false,
            stop: false,
            room_wanted: false,
            incoming: None,
        };
        Self {
            id,
            patience,
            outbox: Mutex::new(outbox),
            wake: Condvar::new(),
            writer: Mutex::new(Writer::default()),
        }
    }

    /// Puts a packet in the outbox; false (and the packet is gone) without a connection.
    pub fn push(&self, packet: Packet) -> bool {
        let mut outbox = self.outbox.lock();
        if outbox.outgoing.is_none() || outbox.broken {
            return false;
        }
        let crowded = outbox.lanes.urgent() >= URGENT_MAX;
        let full = outbox.lanes.bytes() > OUTBOX_BYTES_MAX;
        if crowded || full && outbox.is_stuck_for(self.patience) {
            outbox.break_off();
            self.wake.notify_one();
            return false;
        }
        outbox.lanes.push(packet);
        true
    }

    #[cfg(test)]
    fn queued_bytes(&self) -> usize {
        self.outbox.lock().lanes.bytes()
    }

    /// Writes what is in the outbox without waiting, unless another thread is at it (which then
    /// writes ours too). True, once: there is room in the outbox that somebody waited for.
    pub fn flush(&self) -> bool {
        loop {
            let Some(mut writer) = self.writer.try_lock() else {
                return self.outbox.lock().take_room();
            };
            let pumped = writer.pump(&self.outbox, false);
            drop(writer);
            // Who pushed before that, and found the writer taken, has left it to this look.
            let mut outbox = self.outbox.lock();
            match pumped {
                Pumped::Drained if outbox.is_drained() => {}
                Pumped::Drained => continue,
                Pumped::Broken(None) => {}
                Pumped::Blocked => {
                    outbox.blocked = true;
                    self.wake.notify_one();
                }
                Pumped::Broken(Some(_)) => {
                    outbox.broken = true;
                    self.wake.notify_one();
                }
            }
            return outbox.take_room();
        }
    }

    /// Writes everything, waiting for the socket. Only the sender thread calls it. True, once: as for
    /// [`Peer::flush`].
    pub fn flush_waiting(&self) -> bool {
        loop {
            let pumped = self.writer.lock().pump(&self.outbox, true);
            let mut outbox = self.outbox.lock();
            match pumped {
                Pumped::Drained if outbox.is_drained() => {}
                Pumped::Drained | Pumped::Blocked => continue,
                Pumped::Broken(_) => outbox.broken = true,
            }
            return outbox.take_room();
        }
    }

    /// Makes `stream` the connection to write to. False if the peer was stopped meanwhile.
    pub fn connect(&self, stream: TcpStream, session: Option<Box<Connection>>) -> bool {
        let Ok(handle) = stream.try_clone() else { return false };
        let mut writer = self.writer.lock();
        let mut outbox = self.outbox.lock();
        if outbox.stop {
            return false;
        }
        writer.connect(stream, session);
        outbox.outgoing = Some(handle);
        outbox.broken = false;
        true
    }

    /// Forgets the connection and all that waited for it.
    pub fn disconnect(&self) {
        self.shut_outgoing();
        let mut writer = self.writer.lock();
        let mut outbox = self.outbox.lock();
        writer.disconnect();
        outbox.outgoing = None;
        outbox.lanes = Lanes::default();
        outbox.stuck = None;
        outbox.broken = false;
        outbox.blocked = false;
        outbox.probe = false;
        outbox.again = Again::default();
    }

    /// Ends the outgoing connection: a writer that waits returns, the sender thread dials again.
    pub fn break_connection(&self) {
        self.outbox.lock().break_off();
        self.wake.notify_one();
    }

    /// Ends both connections.
    pub fn cut(&self) {
        if let Some(incoming) = &self.outbox.lock().incoming {
            shut(&incoming.stream);
        }
        self.break_connection();
    }

    /// Registers an accepted connection, in place of one with a lower number.
    pub fn incoming_opened(&self, connection: u64, stream: TcpStream) {
        let mut outbox = self.outbox.lock();
        let newer = |old: &Incoming| old.connection > connection;
        let older = match outbox.incoming.as_ref().is_some_and(newer) {
            true => Some(Incoming { connection, stream }),
            false => outbox.incoming.replace(Incoming { connection, stream }),
        };
        if let Some(older) = older {
            shut(&older.stream);
        }
    }

    /// If it was the current one, the peer is (for now) not heard any more. What became of it, our own
    /// connection tells, or a new one.
    pub fn incoming_closed(&self, connection: u64) {
        let mut outbox = self.outbox.lock();
        if outbox.incoming.as_ref().is_some_and(|incoming| incoming.connection == connection) {
            outbox.incoming = None;
            outbox.probe = outbox.outgoing.is_some();
            self.wake.notify_one();
        }
    }

    /// Where to dial it from now on; not later than now, if there is no connection.
    pub fn dial(&self, addrs: Vec<String>) {
        let mut outbox = self.outbox.lock();
        outbox.addrs = addrs;
        outbox.redial = true;
        self.wake.notify_one();
    }

    pub fn addrs(&self) -> Vec<String> {
        self.outbox.lock().addrs.clone()
    }

    /// [`Peer::flush`] is to say when there is room.
    pub fn ask_room(&self) {
        self.outbox.lock().room_wanted = true;
    }

    pub fn is_connected(&self) -> bool {
        let outbox = self.outbox.lock();
        outbox.outgoing.is_some() && !outbox.broken
    }

    pub fn request_fetch(&self, fetch: Fetch) {
        self.outbox.lock().fetches.push_back(fetch);
        self.wake.notify_one();
    }

    pub fn request_snapshot(&self, term: Term) {
        self.outbox.lock().snapshot_wanted = Some(term);
        self.wake.notify_one();
    }

    /// The snapshot of [`Work::Snapshot`] has left, or could not.
    pub fn snapshot_left(&self) {
        self.outbox.lock().again.left(Instant::now());
    }

    pub fn stop(&self) {
        let mut outbox = self.outbox.lock();
        outbox.stop = true;
        for stream in outbox.outgoing.iter().chain(outbox.incoming.iter().map(|i| &i.stream)) {
            shut(stream);
        }
        self.wake.notify_all();
    }

    pub fn is_stopped(&self) -> bool {
        self.outbox.lock().stop
    }

    /// While connected: waits for the next thing to do.
    pub fn next_work(&self) -> Work {
        let mut outbox = self.outbox.lock();
        loop {
            if outbox.stop {
                return Work::Stop;
            }
            if outbox.broken {
                return Work::Reconnect;
            }
            if std::mem::take(&mut outbox.probe) {
                return Work::Probe;
            }
            if std::mem::take(&mut outbox.blocked) {
                return Work::Write;
            }
            if let Some(fetch) = outbox.fetches.pop_front() {
                return Work::Fetch(fetch);
            }
            let due = outbox.again.due().filter(|_| outbox.snapshot_wanted.is_some());
            let now = Instant::now();
            if let Some(later) = due.filter(|due| *due > now) {
                self.wake.wait_until(&mut outbox, later);
            } else if let Some(term) = outbox.snapshot_wanted.take() {
                outbox.again.begun(now);
                return Work::Snapshot(term);
            } else {
                self.wake.wait(&mut outbox);
            }
        }
    }

    /// While not connected: waits before the next dial, at most `pause`; cut short when the
    /// peer dialled us or its address changed. False if stopped.
    pub fn wait_redial(&self, pause: Duration) -> bool {
        let deadline = Instant::now() + pause;
        let mut outbox = self.outbox.lock();
        while !outbox.stop && !outbox.redial {
            if self.wake.wait_until(&mut outbox, deadline).timed_out() {
                break;
            }
        }
        outbox.redial = false;
        !outbox.stop
    }

    /// What the machine asked for and nobody has served: fetches, and whether a snapshot.
    pub fn take_requests(&self) -> (VecDeque<Fetch>, bool) {
        let mut outbox = self.outbox.lock();
        (std::mem::take(&mut outbox.fetches), outbox.snapshot_wanted.take().is_some())
    }

    fn shut_outgoing(&self) {
        if let Some(stream) = &self.outbox.lock().outgoing {
            shut(stream);
        }
    }
}

impl Outbox {
    /// For the next write, where the socket has taken all before it; whether anything is left.
    pub fn hand_to(&mut self, gatherer: &mut Gatherer) -> bool {
        self.stuck = None;
        gatherer.take(&mut self.lanes);
        !self.lanes.is_empty()
    }

    /// Whoever writes may be waiting for the socket.
    fn break_off(&mut self) {
        self.outgoing.iter().for_each(shut);
        self.broken = true;
    }

    /// The socket has taken all that was handed over: whether nothing came meanwhile.
    fn is_drained(&mut self) -> bool {
        self.stuck = None;
        self.lanes.is_empty()
    }

    /// Whether there is room that somebody waited for: true once.
    fn take_room(&mut self) -> bool {
        self.lanes.bytes() < FORWARD_BYTES && std::mem::take(&mut self.room_wanted)
    }

    fn is_stuck_for(&mut self, patience: Duration) -> bool {
        self.stuck.get_or_insert_with(Instant::now).elapsed() >= patience
    }
}

#[cfg(test)]
mod tests;
