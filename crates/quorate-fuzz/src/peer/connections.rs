//! Who dials whom, what they say of themselves, and the end of it.

use super::{words, World};
use crate::source::Source;
use quorate_consensus::MemberId;
use quorate_group::{Ask, AskAnswer, Assembly, Input, Output};
use quorate_wire::{Hello, Want};

impl World {
    pub(super) fn greet(&mut self, source: &mut Source<'_>) {
        let hello = words::hello(source, self.keyed());
        self.open(&hello);
    }

    /// False: it is not welcome.
    pub(super) fn open(&mut self, hello: &Hello) -> bool {
        let mut out = Output::default();
        let greeting = self.victim.greet(self.now_ms, hello, &mut out);
        self.carry_out(out);
        let Ok(greeting) = greeting else { return false };
        let from = hello.from.member;
        assert_eq!(greeting.connection.is_some(), hello.want == Want::Peer);
        if let Some(connection) = greeting.connection {
            let before = self.incoming.insert(from, (connection, Assembly::new(from)));
            assert!(before.is_none_or(|(before, _)| before < connection));
        }
        true
    }

    pub(super) fn join(&mut self, source: &mut Source<'_>) {
        let member = words::member(source);
        let (guest, request) =
            (words::identity(source, self.keyed(), member), words::request(source));
        let hello = Hello { want: Want::Join, expects: None, ..words::proper_hello(guest) };
        if !self.open(&hello) {
            return;
        }
        let mut out = Output::default();
        self.victim.admit(self.now_ms, hello.from, &request, &mut out);
        self.carry_out(out);
    }

    /// The victim has dialled somebody.
    pub(super) fn dialled(&mut self, source: &mut Source<'_>) {
        let peer = words::member(source);
        let input = match source.below(4) {
            0 => Input::NotThere { peer, dialled_ms: self.now_ms },
            1 => {
                let (refusal, key) = (words::refusal(source), words::key(source));
                Input::Refused { peer, refusal, key }
            }
            _ => {
                let found = words::identity(source, self.keyed(), peer);
                if self.victim.accepts(&found).is_err() {
                    return;
                }
                self.outgoing.insert(peer);
                Input::Connected(found)
            }
        };
        self.step(input);
    }

    pub(super) fn hang_up(&mut self, source: &mut Source<'_>) {
        let peer = words::member(source);
        match source.flag() {
            true => self.end_incoming(peer),
            false => self.end_outgoing(peer),
        }
        self.follow();
    }

    pub(super) fn end_incoming(&mut self, peer: MemberId) {
        if let Some((connection, _)) = self.incoming.remove(&peer) {
            self.queue.push_back(Input::IncomingClosed { peer, connection });
        }
    }

    pub(super) fn end_outgoing(&mut self, peer: MemberId) {
        if self.outgoing.remove(&peer) {
            self.queue.push_back(Input::Disconnected(peer));
        }
    }

    /// To the question that the victim asked.
    pub(super) fn answer(&mut self, source: &mut Source<'_>) {
        let Some(Ask { addr, agree, .. }) = self.asked.take() else { return };
        let member = words::member(source);
        let from = words::identity(source, self.keyed(), member);
        let answer = match source.below(5) {
            0 => AskAnswer::Failed { reason: source.text() },
            1 => {
                let refusal = words::refusal(source);
                AskAnswer::Refused { refusal, key: words::key(source) }
            }
            2 if agree => AskAnswer::Objection { from, reason: source.text() },
            _ => AskAnswer::Admission { from, admission: words::admission(source) },
        };
        self.step(Input::Asked { addr, answer });
    }
}
