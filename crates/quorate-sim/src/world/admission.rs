//! Questions for admission: one short connection each.

use super::connections::{decode, encode};
use super::{Asked, Event, World};
use crate::scenario::slot_of;
use quorate_group::{AskAnswer, Greeting, Input};
use quorate_wire::{Hello, JoinRequest, Packet, PeerIdentity, Want, PROTOCOL_MAX, PROTOCOL_MIN};

impl World {
    pub(super) fn send_ask(&mut self, m: usize, ask: Asked) {
        let run = self.nodes[m].run;
        let (addr, number) = (ask.addr.clone(), ask.number);
        let failed = |reason| Event::AskFailed { m, run, number, addr: addr.clone(), reason };
        let Some(to) = slot_of(&ask.addr).filter(|to| *to < self.nodes.len()) else {
            return self.schedule.after(1_000, failed("no such host"));
        };
        if self.nodes[to].off || !self.net.works(m, to) || self.nodes[to].paused {
            return self.schedule.after(self.scenario.silence_us(), failed("no answer"));
        }
        let delay = self.latency(m, to);
        if !self.nodes[to].is_up() {
            return self.schedule.after(2 * delay, failed("nobody listens"));
        }
        let to_run = self.nodes[to].run;
        self.schedule.after(self.scenario.silence_us() * 2, failed("no answer"));
        self.schedule.after(delay, Event::AskArrives { m: to, run: to_run, ask });
    }

    pub(super) fn ask_arrives(&mut self, m: usize, ask: Asked) {
        let Packet::Hello(hello) = decode(&ask.hello) else { unreachable!("it said hello") };
        let guest = hello.from.clone();
        let mut bytes = Vec::new();
        match self.greet(m, &hello) {
            Ok(Greeting { welcome, .. }) => {
                bytes.push(encode(&Packet::Welcome(welcome)));
                let Packet::JoinRequest(request) = decode(&ask.request) else {
                    unreachable!("it asked")
                };
                let now_ms = self.now_ms(m);
                let Some(process) = &mut self.nodes[m].process else { return };
                let admission = process.member.admit(now_ms, guest, &request, &mut process.out);
                self.carry_out(m);
                bytes.push(encode(&Packet::Admission(admission)));
            }
            Err(refusal) => bytes.push(encode(&Packet::Refuse(refusal))),
        }
        if self.net.works(m, ask.from) {
            let delay = self.latency(m, ask.from);
            let Asked { from, from_run, number, addr, .. } = ask;
            let event = Event::AskAnswered { m: from, run: from_run, number, addr, bytes };
            self.schedule.after(delay, event);
        }
    }

    pub(super) fn ask_answered(&mut self, m: usize, number: u64, addr: String, bytes: &[Vec<u8>]) {
        let mut said = bytes.iter().map(|bytes| decode(bytes));
        let answer = match (said.next(), said.next()) {
            (Some(Packet::Welcome(welcome)), Some(Packet::Admission(admission))) => {
                AskAnswer::Admission { from: welcome.from, admission }
            }
            (Some(Packet::Refuse(refusal)), _) => AskAnswer::Refused(refusal),
            _ => AskAnswer::Failed { reason: "garbage".into() },
        };
        self.ask_ends(m, number, addr, answer);
    }

    pub(super) fn ask_failed(&mut self, m: usize, number: u64, addr: String, reason: &str) {
        self.ask_ends(m, number, addr, AskAnswer::Failed { reason: reason.into() });
    }

    fn ask_ends(&mut self, m: usize, number: u64, addr: String, answer: AskAnswer) {
        let Some(process) = &mut self.nodes[m].process else { return };
        if process.asking == number {
            process.asking = 0;
            self.step(m, Input::Asked { addr, answer });
        }
    }
}

/// What a member says that asks for admission.
pub(super) fn ask_packets(from: PeerIdentity, request: JoinRequest) -> (Vec<u8>, Vec<u8>) {
    let versions = (PROTOCOL_MIN, PROTOCOL_MAX);
    let hello = Hello { versions, want: Want::Join, from, expects: None };
    (encode(&Packet::Hello(hello)), encode(&Packet::JoinRequest(request)))
}
