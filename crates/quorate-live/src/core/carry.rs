//! Carrying out what the machine wants, under its lock, in the order that [`Output`] demands.

use super::hands::Hands;
use super::{mark, Locked};
use quorate_consensus::{Charter, Entry, HardState, Index, LogPosition};
use quorate_group::{Link, LogLevel, LogQueue};
use quorate_wal::WalError;
use quorate_wire::Packet;
use std::sync::Arc;

pub(crate) fn carry_out(locked: &mut Locked, hands: &Hands) {
    let Locked { machine, out, links, feed, answered, .. } = locked;
    if let Some(reason) = &out.mark {
        if let Err(error) = mark::leave(&hands.dir, reason) {
            hands.notices.log(LogLevel::Error, error.to_string());
        }
    }
    if let Err(error) = out.queue_log(&mut &*hands) {
        machine.log_refused(hands.now_ms(), error.to_string(), out);
    }
    for message in out.effects.messages.drain(..) {
        links.push(message.to, Packet::Consensus(message));
    }
    for (to, packet) in out.packets.drain(..) {
        links.push(to, packet);
    }
    if let Some(peer) = out.ask_room {
        links.ask_room(peer);
    }
    *feed = out.feed.or(*feed);
    out.effects.fetches.drain(..).for_each(|fetch| links.request_fetch(fetch));
    out.snapshots.drain(..).for_each(|order| links.request_snapshot(order));
    for link in out.links.drain(..) {
        match link {
            Link::Connect { peer, addrs } => links.connect(hands, peer, addrs),
            Link::Cut(peer) => links.cut(peer),
            Link::Break(peer) => links.break_off(peer),
            Link::Drop(peer) => links.remove(peer),
            Link::CutAll => hands.acceptor.connections.cut_members(),
        }
    }
    links.start_threadless(hands);
    if let Some(ask) = out.ask.take() {
        hands.asks.ask(ask);
    }
    if let Some(release) = out.release {
        hands.snapshots.release(release);
    }
    if let Some(needed) = out.needed {
        hands.wal.set_needed(needed);
    }
    if !out.answers.is_empty() {
        answered.extend(hands.answers.put(out.answers.drain(..)));
    }
    if !out.notices.is_empty() {
        hands.notices.push(&mut out.notices);
    }
    hands.note_failed(machine.has_failed());
    out.clear();
}

/// A log that has failed or is closed takes nothing.
impl LogQueue for &Hands {
    type Error = Arc<WalError>;

    fn save_group(&mut self, group: u128, charter: Charter) -> Result<(), Arc<WalError>> {
        self.wal.save_group(group, charter)
    }

    fn save_hard_state(&mut self, state: HardState) -> Result<(), Arc<WalError>> {
        self.wal.save_hard_state(state)
    }

    fn install(&mut self, index: Index) {
        self.gate.install(index);
    }

    fn reset(&mut self, base: LogPosition) {
        self.wal.reset(base);
    }

    fn truncate(&mut self, from: Index) {
        self.wal.truncate(from);
    }

    fn append(&mut self, entries: &[Entry]) {
        self.wal.append(entries);
    }
}
