//! Connections between processes: dialled, refused, timed out, reset, held up. What is said on them is
//! encoded, cut into frames, and put together and decoded again by the product's codec.
//!
//! A connection carries packets one way, in order and whole, as TCP does: loss is delay, and what is
//! too long on its way ends it. What is under way when it ends is lost.

use super::event::Life;
use super::{Mark, Micros, Outgoing, Phase, World};
use quorate_consensus::{KeyId, MemberId};
use quorate_group::{Assembly, Input, FORWARD_BYTES};
use quorate_wire::{Fragmenter, FrameReader, Gatherer, Hello, Lanes, Packet, Welcome};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::time::Duration;

/// Longest packet between members.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
const GREETING_BYTES_MAX: usize = 32 << 10;
/// How long one write takes.
const WRITE_US: Micros = 1_000;

/// One that `from` dialled. Packets go to `to`.
pub struct Connection {
    pub(super) from: Life,
    to: Life,
    pub(super) dialler: MemberId,
    pub(super) peer: MemberId,
    /// Which of the addresses was dialled.
    pub(super) addr: usize,
    /// By the accepting member.
    pub(super) number: u64,
    lanes: Lanes,
    gatherer: Gatherer,
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
struct Pipe(VecDeque<u8>);

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.0.read(buffer)
    }
}

impl World {
    pub(super) fn push(&mut self, m: usize, to: MemberId, packet: Packet) {
        let Some(id) = self.connection_to(m, to) else { return };
        let Some(connection) = self.connections.get_mut(&id).filter(|c| !c.ended) else { return };
        connection.lanes.push(packet);
    }

    /// Writes what was put into the outboxes of `m`.
    pub(super) fn flush(&mut self, m: usize) {
        let Some(process) = &self.nodes[m].process else { return };
        let ids: Vec<u64> = process.links.values().filter_map(|link| link.connection).collect();
        for id in ids {
            let waits = |c: &Connection| !c.pumping && c.lanes.bytes() > 0;
            if self.connections.get(&id).is_some_and(waits) {
                self.pump(id);
            }
        }
    }

    /// One write.
    pub(super) fn pump(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id).filter(|c| !c.ended) else { return };
        let Connection { lanes, gatherer, .. } = connection;
        let mut bytes = Vec::new();
        gatherer.take(lanes);
        gatherer.gather(&mut bytes);
        let more = !lanes.is_empty() || !gatherer.is_empty();
        connection.pumping = more;
        if bytes.is_empty() {
            return;
        }
        let room = connection.room_wanted && connection.lanes.bytes() < FORWARD_BYTES;
        connection.room_wanted &= !room;
        let (life, to, peer) = (connection.from, connection.to.0, connection.peer);
        let from = life.0;
        if more {
            self.later_to(life, WRITE_US, move |w| w.pump(id));
        }
        if !self.net.works(from, to) || !self.connections[&id].held.is_empty() {
            self.hold(id, bytes);
        } else {
            self.transmit(id, bytes);
        }
        if room {
            self.step(from, Input::Room(peer));
        }
    }

    fn hold(&mut self, id: u64, bytes: Vec<u8>) {
        let silence = self.scenario.silence_us();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.held.push(bytes);
        if connection.held.len() == 1 {
            self.later(silence, move |w| w.link_timeout(id));
        }
    }

    fn transmit(&mut self, id: u64, bytes: Vec<u8>) {
        let Some(connection) = self.connections.get(&id) else { return };
        let (from, to) = (connection.from.0, connection.to);
        let delay = self.latency(from, to.0);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let now = self.schedule.now();
        connection.last_arrival = connection.last_arrival.max(now + delay);
        let delay = connection.last_arrival - now;
        self.later_to(to, delay, move |w| w.arrive(to.0, id, bytes));
    }

    pub(super) fn arrive(&mut self, m: usize, id: u64, bytes: Vec<u8>) {
        let Some(connection) = self.connections.get_mut(&id).filter(|c| !c.ended) else { return };
        let (run, peer, own) = (self.nodes[m].run, connection.dialler, connection.peer);
        connection.reader.stream_mut().0.extend(bytes);
        loop {
            let Some(connection) = self.connections.get_mut(&id).filter(|c| !c.ended) else {
                return;
            };
            let packet = connection.reader.buffered_packet().expect("what was sent");
            let Some((kind, body)) = packet else {
                if connection.reader.fill().is_ok() {
                    continue;
                }
                return;
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
        let id = asked.and_then(|peer| self.connection_to(m, peer));
        if let Some(connection) = id.and_then(|id| self.connections.get_mut(&id)) {
            connection.room_wanted = true;
        }
    }

    pub(super) fn connection_to(&self, m: usize, peer: MemberId) -> Option<u64> {
        self.nodes[m].process.as_ref()?.links.get(&peer)?.connection
    }

    // ---- ends ----

    /// A cut that lasts ends the connection at both ends.
    pub(super) fn link_timeout(&mut self, id: u64) {
        let Some(connection) = self.connections.get(&id).filter(|c| !c.ended) else { return };
        if connection.held.is_empty() {
            return;
        }
        if self.net.works(connection.from.0, connection.to.0) {
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
        connection.let_go();
        let (from, to) = (connection.from, connection.to);
        let works = self.net.works(from.0, to.0);
        let silence = if works { 0 } else { self.scenario.silence_us() / 2 };
        let (back, there) = (self.latency(to.0, from.0), self.latency(from.0, to.0) + silence);
        self.later_to(from, back, move |w| w.outgoing_ended(from.0, id));
        self.later_to(to, there, move |w| w.incoming_ended(to.0, id));
    }

    pub(super) fn outgoing_ended(&mut self, m: usize, id: u64) {
        let now = self.schedule.now();
        let Some(Connection { peer, .. }) = self.connections.get(&id) else { return };
        let peer = *peer;
        let this = |link: &&mut Outgoing| link.connection == Some(id);
        let Some(link) = self.link(m, peer).filter(this) else { return };
        link.connection = None;
        let pause = link.redial.ended(Duration::from_micros(now - link.since));
        self.step(m, Input::Disconnected(peer));
        self.dial_soon(m, peer, pause);
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
        if let Some(id) = self.connection_to(m, peer) {
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
        self.open_connections(Some(m)).into_iter().for_each(|id| self.end(id));
    }

    /// Of `m` if it is given.
    fn open_connections(&self, m: Option<usize>) -> Vec<u64> {
        let own = |c: &Connection| m.is_none_or(|m| c.from.0 == m || c.to.0 == m);
        let open = self.connections.iter().filter(|(_, c)| !c.ended && own(c));
        open.map(|(id, _)| *id).collect()
    }

    /// Forgets connections that ended, once both sides have seen that, or are gone.
    pub(super) fn forget_ended(&mut self) {
        let nodes = &self.nodes;
        self.connections.retain(|id, connection| {
            let process =
                |(m, run): Life| nodes[m].process.as_ref().filter(|_| nodes[m].run == run);
            let (from, to) = (process(connection.from), process(connection.to));
            let link = from.and_then(|process| process.links.get(&connection.peer));
            let used = |link: &Outgoing| link.connection == Some(*id) || link.greeting == Some(*id);
            let incoming = to.and_then(|process| process.incoming.get(&connection.dialler));
            let known =
                link.is_some_and(used) || incoming.is_some_and(|(_, current)| current == id);
            !connection.ended || known || (!connection.told && to.is_some())
        });
    }

    /// The process at `m` is gone, and its connections with it.
    pub(super) fn process_ended(&mut self, m: usize) {
        if self.nodes[m].off {
            // Nobody is told: the others have to find out.
            let silence = self.scenario.silence_us();
            for id in self.open_connections(Some(m)) {
                let Some(connection) = self.connections.get_mut(&id) else { continue };
                connection.let_go();
                let (from, to) = (connection.from, connection.to);
                match from.0 == m {
                    true => self.later_to(to, silence, move |w| w.incoming_ended(to.0, id)),
                    false => self.later_to(from, silence, move |w| w.outgoing_ended(from.0, id)),
                }
            }
        } else {
            self.cut_all(m);
        }
    }

    /// A device between the members resets connections.
    pub(super) fn reset_some(&mut self, per_mille: u32) {
        for id in self.open_connections(None) {
            if self.rng.chance(per_mille) {
                self.mark(Mark::Reset);
                self.end(id);
            }
        }
    }
}

impl Connection {
    pub(super) fn new(
        (from, dialler): (Life, MemberId),
        (to, peer): (Life, MemberId),
        addr: usize,
    ) -> Self {
        Connection {
            from,
            to,
            dialler,
            peer,
            addr,
            number: 0,
            lanes: Lanes::default(),
            gatherer: Gatherer::default(),
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

    /// It ends, and what was under way is lost.
    fn let_go(&mut self) {
        self.ended = true;
        (self.lanes, self.gatherer) = (Lanes::default(), Gatherer::default());
        self.held.clear();
        self.reader = FrameReader::new(Pipe::default(), 0);
    }
}

pub(super) fn encode(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    Fragmenter::of(packet).all_frames(&mut bytes);
    bytes
}

/// One packet before both sides know each other, on a connection that has shown the speaker's key.
pub(super) fn decode(bytes: &[u8]) -> Packet {
    let mut reader = FrameReader::new(bytes, GREETING_BYTES_MAX);
    let (kind, body) = reader.next_packet().expect("what was sent");
    let mut packet = Packet::decode(kind, body, MemberId(0), MemberId(0)).expect("what was sent");
    if let Packet::Hello(Hello { from, .. }) | Packet::Welcome(Welcome { from, .. }) = &mut packet {
        from.key = key_of(from.member);
    }
    packet
}

/// It is in the directory that draws the id, and lost and rolled back with it.
pub(super) fn key_of(member: MemberId) -> KeyId {
    let mut key = KeyId([1; 32]);
    key.0[..16].copy_from_slice(&member.0.to_le_bytes());
    key
}
