//! Questions for admission: one short connection each.

use super::connections::{decode, encode};
use super::event::Life;
use super::{slot_of, World};
use quorate_consensus::KeyId;
use quorate_group::{Ask, AskAnswer, Greeting, Input};
use quorate_wire::{Hello, Packet, Want, PROTOCOL_MAX, PROTOCOL_MIN};

impl World {
    /// Asks at `ask.addr` for admission.
    pub(super) fn ask(&mut self, m: usize, Ask { addr, request, .. }: Ask) {
        let number = self.next_number();
        let Some(process) = &mut self.nodes[m].process else { return };
        let (versions, from) = ((PROTOCOL_MIN, PROTOCOL_MAX), process.member.identity());
        let hello = Hello { versions, want: Want::Join, from, expects: None };
        let said = [Packet::Hello(hello), Packet::JoinRequest(request)].map(|p| encode(&p));
        let failed = |reason: &'static str| {
            move |w: &mut World| {
                w.ask_ends(m, number, AskAnswer::Failed { reason: reason.into() });
            }
        };
        let to = slot_of(&addr);
        process.asking = Some((number, addr));
        let Some(to) = to.filter(|to| *to < self.nodes.len()) else {
            return self.later_at(m, 1_000, failed("no such host"));
        };
        let silence = self.scenario.silence_us();
        if self.nodes[to].off || !self.net.works(m, to) || self.nodes[to].paused {
            return self.later_at(m, silence, failed("no answer"));
        }
        let delay = self.latency(m, to);
        if !self.nodes[to].is_up() {
            return self.later_at(m, 2 * delay, failed("nobody listens"));
        }
        let life = self.life(m);
        self.later_at(m, silence * 2, failed("no answer"));
        self.later_at(to, delay, move |w| w.ask_arrives(to, life, number, &said));
    }

    fn ask_arrives(&mut self, m: usize, asking: Life, number: u64, said: &[Vec<u8>; 2]) {
        let [Packet::Hello(hello), Packet::JoinRequest(request)] =
            said.each_ref().map(|b| decode(b))
        else {
            unreachable!("it asked")
        };
        let mut bytes = Vec::new();
        match self.greet(m, &hello) {
            Ok(Greeting { welcome, .. }) => {
                bytes.push(encode(&Packet::Welcome(welcome)));
                let now_ms = self.now_ms(m);
                let Some(process) = &mut self.nodes[m].process else { return };
                let out = &mut process.out;
                let admission = process.member.admit(now_ms, hello.from, &request, out);
                self.carry_out(m);
                bytes.push(encode(&Packet::Admission(admission)));
            }
            Err(refusal) => bytes.push(encode(&Packet::Refuse(refusal))),
        }
        if self.net.works(m, asking.0) {
            let (delay, key) = (self.latency(m, asking.0), self.shown_key(m));
            self.later_to(asking, delay, move |w| w.ask_answered(asking.0, number, &bytes, key));
        }
    }

    fn ask_answered(&mut self, m: usize, number: u64, bytes: &[Vec<u8>], key: KeyId) {
        let mut said = bytes.iter().map(|bytes| decode(bytes));
        let answer = match (said.next(), said.next()) {
            (Some(Packet::Welcome(welcome)), Some(Packet::Admission(admission))) => {
                AskAnswer::Admission { from: welcome.from, admission }
            }
            (Some(Packet::Refuse(refusal)), _) => AskAnswer::Refused { refusal, key },
            _ => AskAnswer::Failed { reason: "garbage".into() },
        };
        self.ask_ends(m, number, answer);
    }

    fn ask_ends(&mut self, m: usize, number: u64, answer: AskAnswer) {
        let Some(process) = &mut self.nodes[m].process else { return };
        if let Some((_, addr)) = process.asking.take_if(|(asked, _)| *asked == number) {
            self.step(m, Input::Asked { addr, answer });
        }
    }
}
