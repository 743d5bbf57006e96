//! Dialling: one address after the other, refusals and silence told apart, hello and welcome.

use super::connections::{decode, encode, Connection};
use super::{Event, World};
use crate::coverage::Mark;
use crate::node::Outgoing;
use crate::plant::Plant;
use crate::scenario::slot_of;
use crate::schedule::Micros;
use quorate_consensus::MemberId;
use quorate_group::{refusal_proves_absence, Greeting, Input};
use quorate_wire::{Hello, Packet, Want, Welcome, PROTOCOL_MAX, PROTOCOL_MIN};

impl World {
    pub(super) fn keep_connected(&mut self, m: usize, peer: MemberId, addrs: Vec<String>) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let link = process
            .links
            .entry(peer)
            .or_insert_with(|| Outgoing { at_once: true, ..Outgoing::default() });
        link.addrs = addrs;
        link.backoff_us = 0;
        link.wanted_now = true;
        self.dial_soon(m, peer, 0);
    }

    /// Dials, unless there is a connection, or somebody is at it.
    pub(super) fn dial_soon(&mut self, m: usize, peer: MemberId, delay: Micros) {
        let run = self.nodes[m].run;
        let Some(process) = &mut self.nodes[m].process else { return };
        let Some(link) = process.links.get_mut(&peer) else { return };
        if link.connection.is_some() || link.addrs.is_empty() || link.greeting.is_some() {
            return;
        }
        if link.dialling && (delay > 0 || !link.wanted_now) {
            return;
        }
        link.dialling = true;
        link.wanted_now = false;
        link.attempt += 1;
        let attempt = link.attempt;
        self.schedule.after(delay, Event::Dial { m, run, peer, attempt, addr: 0, refused: true });
    }

    /// Tries the address of this number; `refused`: all before it were.
    pub(super) fn dial(
        &mut self,
        m: usize,
        peer: MemberId,
        attempt: u64,
        addr: usize,
        refused: bool,
    ) {
        let run = self.nodes[m].run;
        let Some(process) = &self.nodes[m].process else { return };
        let identity = process.member.identity();
        let Some(link) = process.links.get(&peer).filter(|link| link.attempt == attempt) else {
            return;
        };
        let Some(to) = link.addrs.get(addr).and_then(|addr| slot_of(addr)) else {
            return self.not_connected(m, peer, attempt, refused);
        };
        let failed = |refused| Event::DialFailed { m, run, peer, attempt, addr, refused };
        let host_answers = to < self.nodes.len() && !self.nodes[to].off && self.net.works(m, to);
        if !host_answers {
            let absent = refused && self.plant == Some(Plant::SilenceIsAbsence);
            return self.schedule.after(self.scenario.silence_us(), failed(absent));
        }
        let there = self.latency(m, to);
        if !self.nodes[to].is_up() {
            let back = self.latency(to, m);
            return self.schedule.after(there + back, failed(refused));
        }
        self.mark(Mark::Dialled);
        let id = self.next_number();
        let to_run = self.nodes[to].run;
        let connection = Connection::new((m, run), (to, to_run), identity.member, peer, addr);
        self.connections.insert(id, connection);
        self.set_greeting(m, peer, Some(id));
        let versions = (PROTOCOL_MIN, PROTOCOL_MAX);
        let hello = Hello { versions, want: Want::Peer, from: identity, expects: Some(peer) };
        let bytes = encode(&Packet::Hello(hello));
        let event = Event::Hello { m: to, run: to_run, connection: id, addr, refused, bytes };
        self.schedule.after(there, event);
        self.schedule.after(self.scenario.silence_us() * 2, failed(false));
    }

    fn set_greeting(&mut self, m: usize, peer: MemberId, connection: Option<u64>) {
        let Some(process) = &mut self.nodes[m].process else { return };
        if let Some(link) = process.links.get_mut(&peer) {
            link.greeting = connection;
        }
    }

    /// At the accepting side.
    pub(super) fn hello(&mut self, m: usize, id: u64, addr: usize, refused: bool, bytes: Vec<u8>) {
        let Some(connection) = self.connections.get(&id).filter(|c| !c.ended) else { return };
        let (from, from_run) = (connection.from, connection.from_run);
        let Packet::Hello(hello) = decode(&bytes) else { unreachable!("it said hello") };
        let peer = hello.from.member;
        let answer = self.greet(m, &hello);
        let answer = match answer {
            Ok(Greeting { welcome, connection: number }) => {
                self.accepted(m, peer, id, number.expect("a peer's"));
                Packet::Welcome(welcome)
            }
            Err(refusal) => Packet::Refuse(refusal),
        };
        let bytes = encode(&answer);
        let delay = self.latency(m, from);
        let event = Event::Greeted { m: from, run: from_run, connection: id, addr, refused, bytes };
        if self.net.works(m, from) {
            self.schedule.after(delay, event);
        }
    }

    pub(super) fn greet(
        &mut self,
        m: usize,
        hello: &Hello,
    ) -> Result<Greeting, quorate_wire::Refusal> {
        let now_ms = self.now_ms(m);
        let Some(process) = &mut self.nodes[m].process else { unreachable!("it runs") };
        let isolated = Input::ProcessIsolated(process.isolated);
        process.member.step(now_ms, isolated, &mut process.out);
        let answer = process.member.greet(now_ms, hello, &mut process.out);
        self.carry_out(m);
        answer
    }

    fn accepted(&mut self, m: usize, peer: MemberId, id: u64, number: u64) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.number = number;
        }
        let Some(process) = &mut self.nodes[m].process else { return };
        if let Some((_, older)) = process.incoming.insert(peer, (number, id)) {
            self.end(older);
        }
    }

    /// At the dialling side.
    pub(super) fn greeted(
        &mut self,
        m: usize,
        id: u64,
        addr: usize,
        refused: bool,
        bytes: Vec<u8>,
    ) {
        let Some(connection) = self.connections.get(&id) else { return };
        let (peer, ended) = (connection.peer, connection.ended);
        let Some(process) = &mut self.nodes[m].process else { return };
        let Some(link) = process.links.get_mut(&peer) else { return };
        if link.greeting != Some(id) {
            return self.end(id);
        }
        link.greeting = None;
        let attempt = link.attempt;
        match decode(&bytes) {
            Packet::Welcome(welcome) if welcome.from.member == peer && !ended => {
                link.dialling = false;
                link.connection = Some(id);
                link.since = self.schedule.now();
                self.connected(m, id, welcome);
            }
            Packet::Refuse(refusal) => {
                self.mark(Mark::Refused);
                if self.tells() {
                    self.note(format!("m{m} is refused: {}", refusal.text));
                }
                self.connections.remove(&id);
                let absent = refusal_proves_absence(refusal.code);
                self.step(m, Input::Refused { peer, refusal });
                self.dial(m, peer, attempt, addr + 1, refused && absent);
            }
            _ => {
                self.end(id);
                self.dial(m, peer, attempt, addr + 1, false);
            }
        }
    }

    fn connected(&mut self, m: usize, id: u64, welcome: Welcome) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.open = true;
        }
        self.step(m, Input::Connected(welcome.from));
    }

    pub(super) fn dial_failed(
        &mut self,
        m: usize,
        peer: MemberId,
        attempt: u64,
        addr: usize,
        refused: bool,
    ) {
        let Some(process) = &self.nodes[m].process else { return };
        let waiting = |link: &&Outgoing| link.attempt == attempt && link.dialling;
        let Some(link) = process.links.get(&peer).filter(waiting) else { return };
        let greeting = link.greeting;
        if let Some(id) = greeting {
            if self.connections[&id].addr != addr {
                return;
            }
            self.set_greeting(m, peer, None);
            self.end(id);
        }
        if !refused {
            self.mark(Mark::DialTimeout);
        }
        self.dial(m, peer, attempt, addr + 1, refused);
    }

    /// No address is left.
    fn not_connected(&mut self, m: usize, peer: MemberId, attempt: u64, refused: bool) {
        let most = self.scenario.election_us();
        let Some(process) = &mut self.nodes[m].process else { return };
        let Some(link) = process.links.get_mut(&peer) else { return };
        if link.attempt != attempt {
            return;
        }
        link.dialling = false;
        link.backoff_us = (link.backoff_us * 2).clamp(5_000, most);
        link.at_once = true;
        let backoff = link.backoff_us;
        if refused {
            self.mark(Mark::NotThere);
            self.step(m, Input::NotThere(peer));
        }
        self.dial_soon(m, peer, backoff);
    }
}
