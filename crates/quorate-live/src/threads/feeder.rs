//! Committed entries, in log order, for the layer above. What they are is `Feed`'s to say (quorate-group).
//!
//! There is a thread for it; but a thread that has just heard of a few commits feeds them itself ([`here`]), which
//! spares a wake-up between the acknowledgement that makes a commit and the session that waits for it.
//!
//! Invariants:
//! - an entry is applied once, after all before it, and only when it is committed and on this member's disk;
//! - whoever feeds holds [`Live::fed`], and has taken out what it feeds: after a panic there is nothing there,
//!   and nothing is fed any more;
//! - what may be fed is never left to nobody: who finds it held leaves it to the holder, who looks again after it
//!   has let go.

use crate::core::Next;
use crate::host::KeptLog;
use crate::live::{Fed, Live};
use quorate_consensus::{Entry, EntryKind, Index};
use quorate_group::{Committed, Content, Input, LogLevel, Noted};
use quorate_wal::ReadError;

/// Bytes of entries read at once.
const READ_BYTES: usize = 4 << 20;
/// With more than these the feeder thread is woken: who hears of them has other things to do.
const HERE_MAX: u64 = 16;

/// The feeder thread. What is fed is in place already.
pub(crate) fn run(live: &Live) {
    if let Some(fed) = &*live.fed.lock() {
        started(live, fed);
    }
    while live.hands.gate.wait() {
        let mut held = live.fed.lock();
        while let Some(next) = live.hands.gate.next() {
            if !take_turn(live, &mut held, next) {
                return;
            }
        }
    }
    // It ends here, not with the last who knows this member.
    *live.fed.lock() = None;
}

/// On a thread that has stepped the machine, and woken nobody for what may be fed since.
pub(crate) fn here(live: &Live) {
    let gate = &live.hands.gate;
    loop {
        match gate.behind() {
            Some(0) => return,
            Some(1..=HERE_MAX) => {}
            _ => return gate.wake(),
        }
        let Some(mut held) = live.fed.try_lock() else { return };
        if let Some(next) = gate.next() {
            if !take_turn(live, &mut held, next) {
                return;
            }
        }
    }
}

/// False: nothing is fed any more.
fn take_turn(live: &Live, held: &mut Option<Fed>, next: Next) -> bool {
    let Some(mut fed) = held.take() else { return false };
    let done = match next {
        Next::Install(index) => install(live, &mut fed, index),
        Next::UpTo(index) => feed(live, &mut fed, index),
    };
    if let Err(reason) = done {
        let node = &live.options.name;
        let index = fed.feed.position().index;
        live.hands
            .notices
            .fatal(format!("node {node} cannot go on after log index {index}: {reason}"));
        return false;
    }
    *held = Some(fed);
    true
}

fn feed(live: &Live, fed: &mut Fed, up_to: Index) -> Result<(), String> {
    let mut entries = std::mem::take(&mut fed.entries);
    match live.hands.wal.read(fed.feed.position().index + 1, READ_BYTES, &mut entries) {
        Ok(()) => {}
        // Only a snapshot from the leader takes away what was not applied.
        Err(ReadError::Purged { .. }) if live.hands.gate.install_waits() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    }
    for entry in entries.drain(..) {
        if entry.index > up_to {
            break;
        }
        apply(live, fed, entry)?;
    }
    fed.entries = entries;
    if fed.feed.is_snapshot_due() {
        let (meta, content) = fed.feed.snapshot(fed.machine.snapshot());
        let needed = fed.machine.needs_from();
        let bytes = live.hands.wal.bytes_from(needed);
        fed.machine.kept(KeptLog { bytes, max: live.hands.log_max });
        live.hands.snapshots.save(meta, content, needed);
    }
    Ok(())
}

fn apply(live: &Live, fed: &mut Fed, entry: Entry) -> Result<(), String> {
    let (index, kind) = (entry.index, entry.kind);
    if let Some(committed) = fed.feed.entry(entry)? {
        if let Committed::View { view, .. } = &committed {
            live.hands.gate.set_view(view.clone());
        }
        fed.machine.apply(committed).map_err(|reason| fed.feed.unreadable(index, &reason))?;
    }
    fed.machine.passed(index);
    live.hands.gate.set_applied(fed.feed.position());
    if kind != EntryKind::Data {
        live.step(Input::Applied(fed.feed.applied()));
    }
    if let Some(Noted { index, note, again }) = fed.feed.take_noted() {
        if !again {
            *live.hands.notes.lock() = fed.feed.notes().clone();
            live.log(LogLevel::Info, format!("order: noted index={index} {note}"));
        }
        live.step(Input::Noted(note.id()));
    }
    Ok(())
}

fn install(live: &Live, fed: &mut Fed, index: Index) -> Result<(), String> {
    let (stored, content) = live.hands.snapshots.load(index).map_err(|error| error.to_string())?;
    let content = Content::decode(content).map_err(|error| error.to_string())?;
    fed.machine.restore(index, content.machine)?;
    fed.feed.install(stored.meta, content.view, content.notes);
    started(live, fed);
    live.log(LogLevel::Info, format!("continuing from the leader's snapshot of {index}"));
    Ok(())
}

fn started(live: &Live, fed: &Fed) {
    live.hands.gate.start(fed.feed.applied());
    *live.hands.notes.lock() = fed.feed.notes().clone();
    live.step(Input::Started(fed.feed.applied()));
}
