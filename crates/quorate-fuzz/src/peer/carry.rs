//! What the victim wants done, in the order that its output demands.

use super::machine::Machine;
use super::words::VICTIM;
use super::{World, CONSEQUENCES_MAX, SAID_MAX};
use quorate_consensus::{Index, MemberId};
use quorate_group::{Input, Link, Output};
use quorate_wire::Packet;

impl World {
    pub(super) fn carry_out(&mut self, out: Output) {
        self.carry_out_alone(out);
        self.follow();
    }

    /// What follows by itself. What is left over comes with the next event.
    pub(super) fn follow(&mut self) {
        for _ in 0..CONSEQUENCES_MAX {
            let Some(input) = self.queue.pop_front() else { return };
            let mut out = Output::default();
            self.victim.step(self.now_ms, input, &mut out);
            self.carry_out_alone(out);
        }
    }

    fn carry_out_alone(&mut self, mut out: Output) {
        let Ok(()) = out.queue_log(&mut self.disk);
        self.said.extend(out.effects.messages.iter().cloned());
        self.said.drain(..self.said.len().saturating_sub(SAID_MAX));
        let messages = out.effects.messages.drain(..);
        let messages = messages.inspect(|message| {
            assert!(message.from == VICTIM && message.to != VICTIM, "{message:?}");
        });
        let packets = messages.map(|message| (message.to, Packet::Consensus(message)));
        for (to, packet) in packets.chain(out.packets.drain(..)) {
            assert!(read_by(&packet, VICTIM, to).is_some(), "{packet:?} to {to}");
        }
        self.fetches.extend(out.effects.fetches.drain(..));
        self.queue.extend(out.ask_room.map(Input::Room));
        for order in out.snapshots.drain(..) {
            let newest = self.disk.snapshots.last_key_value();
            let (last, ok) = (newest.map_or(0, |(index, _)| *index), newest.is_some());
            self.queue.push_back(Input::SnapshotSent { to: order.to, last, ok });
        }
        out.links.drain(..).for_each(|link| self.link(link));
        if let Some(ask) = out.ask.take() {
            assert!(self.asked.replace(ask).is_none(), "two questions at a time");
        }
        for (id, _) in out.answers.drain(..) {
            assert!(id <= self.order && self.answered.insert(id), "order {id} is answered twice");
        }
        if let Some(limit) = out.feed {
            assert!(limit >= self.limit && limit <= self.disk.last().index, "{limit}");
            self.limit = limit;
        }
        self.feed();
        if let Some(base) = out.release.and_then(|release| self.released(release.upto)) {
            self.queue.push_back(base);
        }
    }

    fn link(&mut self, link: Link) {
        match link {
            Link::Connect { peer, addrs } if addrs.is_empty() => self.end_outgoing(peer),
            Link::Connect { .. } => {}
            Link::Break(peer) => self.end_outgoing(peer),
            Link::Cut(peer) | Link::Drop(peer) => {
                self.end_outgoing(peer);
                self.end_incoming(peer);
            }
            Link::CutAll => {
                let peers: Vec<MemberId> =
                    self.incoming.keys().chain(&self.outgoing).copied().collect();
                for peer in peers {
                    self.end_outgoing(peer);
                    self.end_incoming(peer);
                }
            }
        }
    }

    /// The state machine takes what it may see.
    fn feed(&mut self) {
        let Some(mut machine) = self.machine.take() else { return };
        if let Some(index) = self.disk.install.take() {
            if !machine.install(&self.disk, index) {
                return;
            }
            self.queue.push_back(Input::Started(machine.applied()));
        }
        while machine.applied().last.index < self.limit {
            let next = machine.applied().last.index + 1;
            let entry = self.disk.get(next).cloned();
            match machine.apply(entry.expect("what is not applied is in the log")) {
                Ok(applied) => {
                    let noted = machine.take_noted().map(Input::Noted);
                    self.queue.extend(applied.map(Input::Applied).into_iter().chain(noted));
                }
                // It can see nothing more.
                Err(_) => return,
            }
            self.disk.fed = next;
            self.save(&mut machine);
        }
        self.disk.fed = machine.applied().last.index;
        self.machine = Some(machine);
    }

    fn save(&mut self, machine: &mut Machine) {
        if machine.snapshot(&mut self.disk) {
            let files = self.disk.snapshots.keys().rev().copied().collect();
            self.queue.push_back(Input::SnapshotTaken { needed: Index::MAX, files });
        }
    }

    fn released(&mut self, index: Index) -> Option<Input> {
        let (stored, _) = self.disk.snapshots.get(&index)?;
        let config = stored.meta.config.clone();
        let base = self.disk.release(index)?;
        Some(Input::Released { base, config })
    }
}

/// The packet as it is read at the other end; `None`: it is refused there.
pub(super) fn read_by(packet: &Packet, from: MemberId, to: MemberId) -> Option<Packet> {
    Packet::decode(packet.frame_type(), packet.encode().to_bytes(), from, to).ok()
}
