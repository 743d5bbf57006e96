//! Dialling: one address after the other, refusals and silence told apart, hello and welcome.

use super::connections::{decode, encode, key_of, Connection};
use super::{slot_of, Mark, Micros, Outgoing, Plant, World};
use quorate_consensus::{KeyId, MemberId};
use quorate_group::{Greeting, Input};
use quorate_wire::{Hello, Packet, Refusal, Want, PROTOCOL_MAX, PROTOCOL_MIN};
use std::time::Duration;

/// Where dialling a peer has got to.
#[derive(Clone, Copy)]
struct Dial {
    peer: MemberId,
    attempt: u64,
    /// Which of the addresses it is at.
    addr: usize,
    /// All before that refused.
    refused: bool,
    /// When it began, by the clock of who dials.
    began_ms: u64,
}

impl Dial {
    fn next(self, refused: bool) -> Dial {
        Dial { addr: self.addr + 1, refused, ..self }
    }
}

impl World {
    pub(super) fn keep_connected(&mut self, m: usize, peer: MemberId, addrs: Vec<String>) {
        let pause_max = self.scenario.election_us();
        let Some(process) = &mut self.nodes[m].process else { return };
        let link = process.links.entry(peer).or_insert_with(|| Outgoing::new(pause_max));
        link.addrs = addrs;
        link.wanted_now = true;
        self.dial_soon(m, peer, Duration::ZERO);
    }

    /// Dials, unless there is a connection, or somebody is at it.
    pub(super) fn dial_soon(&mut self, m: usize, peer: MemberId, pause: Duration) {
        let Some(link) = self.link(m, peer) else { return };
        if link.connection.is_some() || link.addrs.is_empty() || link.greeting.is_some() {
            return;
        }
        if link.dialling && (!pause.is_zero() || !link.wanted_now) {
            return;
        }
        link.dialling = true;
        link.wanted_now = false;
        link.attempt += 1;
        let attempt = link.attempt;
        self.later_at(m, pause.as_micros() as Micros, move |w| {
            let began_ms = w.now_ms(m);
            w.dial(m, Dial { peer, attempt, addr: 0, refused: true, began_ms });
        });
    }

    pub(super) fn link(&mut self, m: usize, peer: MemberId) -> Option<&mut Outgoing> {
        self.nodes[m].process.as_mut()?.links.get_mut(&peer)
    }

    fn dial(&mut self, m: usize, dial: Dial) {
        let Dial { peer, attempt, addr, refused, .. } = dial;
        let Some(link) = self.link(m, peer).filter(|link| link.attempt == attempt) else { return };
        let Some(to) = link.addrs.get(addr).and_then(|addr| slot_of(addr)) else {
            return self.not_connected(m, dial);
        };
        let host_answers = to < self.nodes.len() && !self.nodes[to].off && self.net.works(m, to);
        let silence = self.scenario.silence_us();
        if !host_answers {
            let absent = refused && self.plant == Some(Plant::SilenceIsAbsence);
            return self.later_at(m, silence, move |w| w.dial_failed(m, dial, absent));
        }
        let there = self.latency(m, to);
        if !self.nodes[to].is_up() {
            let back = self.latency(to, m);
            return self.later_at(m, there + back, move |w| w.dial_failed(m, dial, refused));
        }
        let Some(process) = &self.nodes[m].process else { return };
        let from = process.member.identity();
        self.mark(Mark::Dialled);
        let id = self.next_number();
        let ends = ((self.life(m), from.member), (self.life(to), peer));
        self.connections.insert(id, Connection::new(ends.0, ends.1, addr));
        self.set_greeting(m, peer, Some(id));
        let versions = (PROTOCOL_MIN, PROTOCOL_MAX);
        let hello = Hello { versions, want: Want::Peer, from, expects: Some(peer) };
        let bytes = encode(&Packet::Hello(hello));
        self.later_at(to, there, move |w| w.hello(to, id, dial, &bytes));
        self.later_at(m, silence * 2, move |w| w.dial_failed(m, dial, false));
    }

    fn set_greeting(&mut self, m: usize, peer: MemberId, connection: Option<u64>) {
        if let Some(link) = self.link(m, peer) {
            link.greeting = connection;
        }
    }

    /// At the accepting side.
    fn hello(&mut self, m: usize, id: u64, dial: Dial, bytes: &[u8]) {
        let Some(connection) = self.connections.get(&id).filter(|c| !c.ended) else { return };
        let life = connection.from;
        let Packet::Hello(hello) = decode(bytes) else { unreachable!("it said hello") };
        let answer = match self.greet(m, &hello) {
            Ok(Greeting { welcome, connection: number }) => {
                self.accepted(m, hello.from.member, id, number.expect("a peer's"));
                Packet::Welcome(welcome)
            }
            Err(refusal) => Packet::Refuse(refusal),
        };
        let (from, bytes) = (life.0, encode(&answer));
        let (delay, key) = (self.latency(m, from), self.shown_key(m));
        if self.net.works(m, from) {
            self.later_to(life, delay, move |w| w.greeted(from, id, dial, (&bytes, key)));
        }
    }

    /// What it shows on connections.
    pub(super) fn shown_key(&self, m: usize) -> KeyId {
        let process = self.nodes[m].process.as_ref();
        process.map(|process| key_of(process.member.identity().member)).unwrap_or_default()
    }

    pub(super) fn greet(&mut self, m: usize, hello: &Hello) -> Result<Greeting, Refusal> {
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
    fn greeted(&mut self, m: usize, id: u64, dial: Dial, (bytes, key): (&[u8], KeyId)) {
        let Some(connection) = self.connections.get(&id) else { return };
        let (peer, ended, now) = (connection.peer, connection.ended, self.schedule.now());
        let Some(link) = self.link(m, peer) else { return };
        if link.greeting != Some(id) {
            return self.end(id);
        }
        link.greeting = None;
        let dial = Dial { attempt: link.attempt, ..dial };
        match decode(bytes) {
            Packet::Welcome(welcome) if welcome.from.member == peer && !ended => {
                link.dialling = false;
                link.connection = Some(id);
                link.since = now;
                self.step(m, Input::Connected(welcome.from));
            }
            Packet::Refuse(refusal) => {
                self.mark(Mark::Refused);
                note!(self, "m{m} is refused: {}", refusal.text);
                self.connections.remove(&id);
                let Some(process) = &self.nodes[m].process else { return };
                let shown = process.member.shows_absence(peer, refusal.code, key);
                self.step(m, Input::Refused { peer, refusal, key });
                self.dial(m, dial.next(dial.refused && shown));
            }
            _ => {
                self.end(id);
                self.dial(m, dial.next(false));
            }
        }
    }

    fn dial_failed(&mut self, m: usize, dial: Dial, refused: bool) {
        let waiting = |link: &&mut Outgoing| link.attempt == dial.attempt && link.dialling;
        let Some(link) = self.link(m, dial.peer).filter(waiting) else { return };
        if let Some(id) = link.greeting {
            if self.connections[&id].addr != dial.addr {
                return;
            }
            self.set_greeting(m, dial.peer, None);
            self.end(id);
        }
        if !refused {
            self.mark(Mark::DialTimeout);
        }
        self.dial(m, dial.next(refused));
    }

    /// No address is left.
    fn not_connected(&mut self, m: usize, Dial { peer, refused, began_ms, .. }: Dial) {
        let Some(link) = self.link(m, peer) else { return };
        link.dialling = false;
        let pause = link.redial.failed();
        if refused {
            self.mark(Mark::NotThere);
            self.step(m, Input::NotThere { peer, dialled_ms: began_ms });
        }
        self.dial_soon(m, peer, pause);
    }
}
