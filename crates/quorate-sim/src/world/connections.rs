//! Connections between processes: dialled, refused, timed out, reset, held up. What is said on them is
//! encoded, cut into frames, and put together and decoded again by the product's codec.
//!
//! A connection carries packets one way, in order and whole, as TCP does: loss is delay, and what is
//! too long on its way ends it. What is under way when it ends is lost.

use super::{Event, Phase, World};
use crate::coverage::Mark;
use crate::node::Outgoing;
use crate::schedule::Micros;
use quorate_consensus::MemberId;
use quorate_group::{Assembly, Input, FORWARD_BYTES};
use quorate_wire::{Fragmenter, FrameReader, Packet};
use std::collections::VecDeque;
use std::io::{self, Read};

/// Longest packet between members.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
const GREETING_BYTES_MAX: usize = 32 << 10;
/// Bytes gathered for one write, and how long each takes.
const GATHER: usize = 128 << 10;
const GATHER_US: Micros = 1_000;

/// One that `from` dialled. Packets go to `to`.
pub struct Connection {
    pub(super) from: usize,
    pub(super) from_run: u32,
    to: usize,
    to_run: u32,
    pub(super) dialler: MemberId,
    pub(super) peer: MemberId,
    /// Which of the addresses was dialled.
    pub(super) addr: usize,
    /// By the accepting member.
    pub(super) number: u64,
    pub(super) open: bool,
    urgent: VecDeque<Packet>,
    bulk: VecDeque<Packet>,
    fragments: Option<Fragmenter>,
    queued_bytes: usize,
    room_wanted: bool,
    pumping: bool,
    last_arrival: Micros,
    /// Written, and held up by a cut link.
    held: Vec<Vec<u8>>,
    reader: FrameReader<Pipe>,
    assembly: Assembly,
    pub(super) ended: bool,
    /// The accepting side has seen it end.
    told: bool,
}

/// Bytes that have arrived.
#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.bytes.read(buffer)
    }
}

impl World {
    pub(super) fn push(&mut self, m: usize, to: MemberId, packet: Packet) {
        let Some(process) = &self.nodes[m].process else { return };
        let Some(id) = process.links.get(&to).and_then(|link| link.connection) else { return };
        let Some(connection) = self.connections.get_mut(&id).filter(|c| !c.ended) else { return };
        connection.queued_bytes += packet.size_hint();
        match packet.is_urgent() {
            true => connection.urgent.push_back(packet),
            false => connection.bulk.push_back(packet),
        }
    }

    /// Writes what was put into the outboxes of `m`.
    pub(super) fn flush(&mut self, m: usize) {
        let Some(process) = &self.nodes[m].process else { return };
        let ids: Vec<u64> = process.links.values().filter_map(|link| link.connection).collect();
        for id in ids {
            let waits = |c: &Connection| !c.pumping && c.queued_bytes > 0;
            if self.connections.get(&id).is_some_and(waits) {
                self.pump(id);
            }
        }
    }

    /// One write: urgent packets first, then frames of bulk ones.
    pub(super) fn pump(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id).filter(|c| !c.ended) else { return };
        connection.pumping = false;
        let mut bytes = Vec::new();
        connection.gather(&mut bytes);
        if bytes.is_empty() {
            return;
        }
        let (from, run, more) = (connection.from, connection.from_run, connection.has_more());
        let (to, room) = (connection.to, connection.room_wanted);
        let has_room = connection.queued_bytes < FORWARD_BYTES;
        let peer = connection.peer;
        connection.pumping = more;
        if more {
            self.schedule.after(GATHER_US, Event::Pump { m: from, run, connection: id });
        }
        if !self.net.works(from, to) || !self.connections[&id].held.is_empty() {
            self.hold(id, bytes);
        } else {
            self.transmit(id, bytes);
        }
        if room && has_room {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.room_wanted = false;
            }
            self.step(from, Input::Room(peer));
        }
    }

    fn hold(&mut self, id: u64, bytes: Vec<u8>) {
        let silence = self.scenario.silence_us();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.held.is_empty() {
            self.schedule.after(silence, Event::LinkTimeout { connection: id });
        }
        connection.held.push(bytes);
    }

    fn transmit(&mut self, id: u64, bytes: Vec<u8>) {
        let Some(connection) = self.connections.get(&id) else { return };
        let (from, m, run) = (connection.from, connection.to, connection.to_run);
        let delay = self.latency(from, m);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let at = (self.schedule.now() + delay).max(connection.last_arrival);
        connection.last_arrival = at;
        self.schedule.at(at, Event::Arrive { m, run, connection: id, bytes });
    }

    pub(super) fn arrive(&mut self, m: usize, id: u64, bytes: Vec<u8>) {
        let Some(connection) = self.connections.get_mut(&id).filter(|c| !c.ended) else { return };
        let (run, peer, own) = (self.nodes[m].run, connection.dialler, connection.peer);
        connection.reader.stream_mut().bytes.extend(bytes);
        loop {
            let Some(connection) = self.connections.get_mut(&id).filter(|c| !c.ended) else {
                return;
            };
            let packet = connection.reader.buffered_packet().expect("what was sent");
            let Some((kind, body)) = packet else {
                match connection.reader.fill() {
                    Ok(()) => continue,
                    Err(_) => return,
                }
            };
            let packet = Packet::decode(kind, body, peer, own).expect("what was sent");
            if Assembly::takes(&packet) {
                let whole = connection.assembly.take(packet).expect("what was sent");
                self.step(m, Input::Heard(peer));
                if let Some((received, content)) = whole {
                    self.snapshot_arrived(m, received, content);
                }
            } else {
                self.step(m, Input::Packet { from: peer, packet });
            }
            if self.nodes[m].run != run || !self.nodes[m].is_up() || self.nodes[m].disk.is_dead() {
                return;
            }
        }
    }

    pub(super) fn look_for_room(&mut self, m: usize, asked: Option<MemberId>) {
        let Some(peer) = asked else { return };
        let Some(process) = &self.nodes[m].process else { return };
        let id = process.links.get(&peer).and_then(|link| link.connection);
        if let Some(connection) = id.and_then(|id| self.connections.get_mut(&id)) {
            connection.room_wanted = true;
        }
    }

    /// Whether a snapshot could be pushed whole.
    pub(super) fn is_connected(&self, m: usize, peer: MemberId) -> bool {
        let process = self.nodes[m].process.as_ref();
        process.is_some_and(|p| p.links.get(&peer).is_some_and(|link| link.connection.is_some()))
    }

    // ---- ends ----

    /// A cut that lasts ends the connection at both ends.
    pub(super) fn link_timeout(&mut self, id: u64) {
        let Some(connection) = self.connections.get(&id).filter(|c| !c.ended) else { return };
        if connection.held.is_empty() {
            return;
        }
        if self.net.works(connection.from, connection.to) {
            return self.release_held(id);
        }
        self.mark(Mark::LinkTimeout);
        self.end(id);
    }

    fn release_held(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        for bytes in std::mem::take(&mut connection.held) {
            self.transmit(id, bytes);
        }
    }

    /// All links work again.
    pub(super) fn join_links(&mut self) {
        if self.phase == Phase::WithoutMinority {
            return;
        }
        self.net.join_all();
        let ids: Vec<u64> = self.connections.keys().copied().collect();
        ids.into_iter().for_each(|id| self.release_held(id));
    }

    /// Both ends see it end, each in its time.
    pub(super) fn end(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id).filter(|c| !c.ended) else { return };
        connection.ended = true;
        connection.let_go();
        let (from, from_run, to, to_run) =
            (connection.from, connection.from_run, connection.to, connection.to_run);
        let silence = if self.net.works(from, to) { 0 } else { self.scenario.silence_us() / 2 };
        let (back, there) = (self.latency(to, from), self.latency(from, to) + silence);
        self.schedule.after(back, Event::OutgoingEnded { m: from, run: from_run, connection: id });
        self.schedule.after(there, Event::IncomingEnded { m: to, run: to_run, connection: id });
    }

    pub(super) fn outgoing_ended(&mut self, m: usize, id: u64) {
        let now = self.schedule.now();
        let long = self.scenario.election_us();
        let Some(peer) = self.connections.get(&id).map(|connection| connection.peer) else {
            return;
        };
        let Some(process) = &mut self.nodes[m].process else { return };
        let Some(link) = process.links.get_mut(&peer).filter(|l| l.connection == Some(id)) else {
            return;
        };
        link.connection = None;
        let stood_long = now - link.since >= long;
        link.at_once |= stood_long;
        let delay = match std::mem::take(&mut link.at_once) {
            true => 0,
            false => {
                link.backoff_us = (link.backoff_us * 2).clamp(5_000, long);
                link.at_once = true;
                link.backoff_us
            }
        };
        self.step(m, Input::Disconnected(peer));
        self.dial_soon(m, peer, delay);
    }

    pub(super) fn incoming_ended(&mut self, m: usize, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.told = true;
        let (peer, number) = (connection.dialler, connection.number);
        let Some(process) = &mut self.nodes[m].process else { return };
        if process.incoming.get(&peer).is_some_and(|(_, current)| *current == id) {
            process.incoming.remove(&peer);
        }
        if number > 0 {
            self.step(m, Input::IncomingClosed { peer, connection: number });
        }
    }

    pub(super) fn break_off(&mut self, m: usize, peer: MemberId) {
        let Some(process) = &self.nodes[m].process else { return };
        if let Some(id) = process.links.get(&peer).and_then(|link| link.connection) {
            self.end(id);
        }
    }

    /// Ends the connections with `peer`, both ways.
    pub(super) fn cut_peer(&mut self, m: usize, peer: MemberId) {
        self.break_off(m, peer);
        let Some(process) = &self.nodes[m].process else { return };
        if let Some((_, id)) = process.incoming.get(&peer) {
            self.end(*id);
        }
    }

    pub(super) fn drop_link(&mut self, m: usize, peer: MemberId) {
        self.break_off(m, peer);
        if let Some(process) = &mut self.nodes[m].process {
            process.links.remove(&peer);
        }
    }

    pub(super) fn cut_all(&mut self, m: usize) {
        let own = |c: &Connection| c.from == m || c.to == m;
        let ids: Vec<u64> =
            self.connections.iter().filter(|(_, c)| own(c)).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.end(id));
    }

    /// Forgets connections that ended, once both sides have seen that, or are gone.
    pub(super) fn forget_ended(&mut self) {
        let nodes = &self.nodes;
        self.connections.retain(|id, connection| {
            let Connection { from, from_run, to, to_run, peer, dialler, .. } = *connection;
            let process = |m: usize, run: u32| {
                let there = nodes[m].run == run;
                nodes[m].process.as_ref().filter(|_| there)
            };
            let used = |link: &Outgoing| link.connection == Some(*id) || link.greeting == Some(*id);
            let known = process(from, from_run)
                .is_some_and(|process| process.links.get(&peer).is_some_and(used))
                || process(to, to_run).is_some_and(|process| {
                    process.incoming.get(&dialler).is_some_and(|(_, current)| current == id)
                });
            !connection.ended || known || (!connection.told && process(to, to_run).is_some())
        });
    }

    /// The process at `m` is gone, and its connections with it.
    pub(super) fn process_ended(&mut self, m: usize) {
        if self.nodes[m].off {
            // Nobody is told: the others have to find out.
            let silence = self.scenario.silence_us();
            for (id, connection) in &mut self.connections {
                if connection.from == m && !connection.ended {
                    connection.ended = true;
                    connection.let_go();
                    let (m, run) = (connection.to, connection.to_run);
                    self.schedule.after(silence, Event::IncomingEnded { m, run, connection: *id });
                } else if connection.to == m && !connection.ended {
                    connection.ended = true;
                    connection.let_go();
                    let (m, run) = (connection.from, connection.from_run);
                    self.schedule.after(silence, Event::OutgoingEnded { m, run, connection: *id });
                }
            }
        } else {
            self.cut_all(m);
        }
    }

    /// A device between the members resets connections.
    pub(super) fn reset_some(&mut self, per_mille: u32) {
        let ids: Vec<u64> =
            self.connections.iter().filter(|(_, c)| !c.ended).map(|(id, _)| *id).collect();
        for id in ids {
            if self.rng.chance(per_mille) {
                self.mark(Mark::Reset);
                self.end(id);
            }
        }
    }
}

impl Connection {
    /// `from` and `to` are processes: where they run, and which life of them.
    pub(super) fn new(
        from: (usize, u32),
        to: (usize, u32),
        dialler: MemberId,
        peer: MemberId,
        addr: usize,
    ) -> Self {
        Connection {
            from: from.0,
            from_run: from.1,
            to: to.0,
            to_run: to.1,
            dialler,
            peer,
            addr,
            number: 0,
            open: false,
            urgent: VecDeque::new(),
            bulk: VecDeque::new(),
            fragments: None,
            queued_bytes: 0,
            room_wanted: false,
            pumping: false,
            last_arrival: 0,
            held: Vec::new(),
            reader: FrameReader::new(Pipe::default(), MESSAGE_BYTES_MAX),
            assembly: Assembly::new(dialler),
            ended: false,
            told: false,
        }
    }

    /// What was under way is lost.
    fn let_go(&mut self) {
        self.urgent.clear();
        self.bulk.clear();
        self.held.clear();
        self.fragments = None;
        self.queued_bytes = 0;
        self.reader = FrameReader::new(Pipe::default(), 0);
    }

    fn has_more(&self) -> bool {
        !self.urgent.is_empty() || !self.bulk.is_empty() || self.fragments.is_some()
    }

    fn gather(&mut self, frames: &mut Vec<u8>) {
        while frames.len() < GATHER {
            if let Some(packet) = self.urgent.pop_front() {
                self.queued_bytes -= packet.size_hint();
                let mut fragments = Fragmenter::new(packet.frame_type(), packet.encode());
                while fragments.next_frame(frames) {}
                continue;
            }
            if self.fragments.is_none() {
                if let Some(packet) = self.bulk.pop_front() {
                    self.queued_bytes -= packet.size_hint();
                    self.fragments = Some(Fragmenter::new(packet.frame_type(), packet.encode()));
                }
            }
            let Some(fragments) = &mut self.fragments else { return };
            if !fragments.next_frame(frames) {
                self.fragments = None;
            }
        }
    }
}

pub(super) fn encode(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut fragments = Fragmenter::new(packet.frame_type(), packet.encode());
    while fragments.next_frame(&mut bytes) {}
    bytes
}

/// One packet before both sides know each other.
pub(super) fn decode(bytes: &[u8]) -> Packet {
    let mut reader = FrameReader::new(bytes, GREETING_BYTES_MAX);
    let (kind, body) = reader.next_packet().expect("what was sent");
    Packet::decode(kind, body, MemberId(0), MemberId(0)).expect("what was sent")
}
