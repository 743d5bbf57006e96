//! Carrying out what the machine wants, under its lock, in the order that [`Output`] demands.

use super::hands::Hands;
use super::{mark, Locked};
use quorate_group::{Input, Link, LogLevel, Output};
use quorate_wal::WalError;
use quorate_wire::Packet;
use std::sync::Arc;

pub(crate) fn carry_out(locked: &mut Locked, hands: &Hands) {
    let Locked { machine, out, links, feed, .. } = locked;
    if let Some(reason) = &out.mark {
        if let Err(error) = mark::leave(&hands.dir, reason) {
            hands.notices.log(LogLevel::Error, error.to_string());
        }
    }
    if let Err(error) = write_log(out, hands) {
        if !machine.has_failed() {
            // Nothing that stands on what was not written leaves.
            out.effects.clear();
            out.packets.clear();
            (out.feed, out.ask_room) = (None, None);
            machine.step(hands.now_ms(), Input::LogFailed(error.to_string()), out);
        }
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
            Link::CutAll => hands.acceptor.connections.cut(),
        }
    }
    if let Some(ask) = out.ask.take() {
        hands.asks.ask(ask);
    }
    if let Some(index) = out.release {
        hands.snapshots.release(index);
    }
    if let Some(needed) = out.needed {
        hands.wal.set_needed(needed);
    }
    if !out.answers.is_empty() {
        hands.answers.put(out.answers.drain(..));
    }
    if !out.notices.is_empty() {
        hands.notices.push(&mut out.notices);
    }
    hands.note_failed(machine.has_failed());
    out.clear();
}

/// What has to be durable, or in the log's queue, before anything else is done. A log that has failed
/// or is closed takes nothing.
fn write_log(out: &Output, hands: &Hands) -> Result<(), Arc<WalError>> {
    if let Some((group, charter)) = out.group {
        hands.wal.save_group(group, charter)?;
    }
    let effects = &out.effects;
    if let Some(state) = effects.hard_state {
        hands.wal.save_hard_state(state)?;
    }
    if let Some(index) = out.install {
        // Before the entries go that may not be applied yet.
        hands.gate.install(index);
    }
    if let Some(meta) = &effects.reset_log {
        hands.wal.reset(meta.last);
    }
    if let Some(from) = effects.truncate_from {
        hands.wal.truncate(from);
    }
    if !effects.append.is_empty() {
        hands.wal.append(&effects.append);
    }
    Ok(())
}
