//! The thread that writes snapshots: those that the feeder takes, and those that come from a leader.

use crate::core::{Job, SnapshotError};
use crate::live::Live;
use bytes::Bytes;
use quorate_consensus::{Index, SnapshotMeta};
use quorate_group::{Input, LogLevel, Received, Release, Stored};

pub(crate) fn run(live: &Live) {
    let on_disk = || live.hands.wal.persisted().index;
    while let Some(job) = live.hands.snapshots.next(on_disk) {
        match job {
            Job::Save(outline, machine, needed) => {
                let (meta, content) = outline.fill(machine());
                write(live, meta, &content, needed);
            }
            Job::Store(received, content) => take_over(live, received, &content),
            Job::Look(needed) => tell_needless(live, needed),
            Job::Release(needless) => {
                if let Err(error) = release(live, needless) {
                    live.log(LogLevel::Warn, format!("the log was not purged: {error}"));
                }
            }
        }
    }
}

fn write(live: &Live, meta: SnapshotMeta, content: &Bytes, needed: Index) {
    let index = meta.last.index;
    let stored = Stored { meta, received: false };
    match live.hands.snapshots.write(&stored, content) {
        Ok(()) => {
            let bytes = content.len();
            let line = format!("snapshot of index {index} saved, {bytes} bytes");
            live.log(LogLevel::Debug, line);
            // What it was made from was synced here: a log that ends before it is not to be opened.
            if let Err(error) = live.hands.wal.save_synced() {
                let line = format!("the end of the log was not noted: {error}");
                live.log(LogLevel::Warn, line);
            }
        }
        Err(error) => {
            live.log(LogLevel::Warn, format!("no snapshot of index {index}: {error}"));
        }
    }
    // Also if there was no room for the new one: an older one serves as well.
    tell_needless(live, needed);
}

/// The machine says how much of the log may go.
fn tell_needless(live: &Live, needed: Index) {
    match live.hands.snapshots.list() {
        Ok(files) => live.step(Input::SnapshotTaken { needed, files }),
        Err(error) => live.log(LogLevel::Warn, format!("the log was not purged: {error}")),
    }
}

/// Lets the log go up to a snapshot, which must be readable, and then the snapshots that the log does not continue any
/// more.
fn release(live: &Live, needless: Release) -> Result<(), SnapshotError> {
    let Release { upto, sent } = needless;
    let (stored, _) = live.hands.snapshots.load(upto)?;
    if let Some(base) = live.hands.wal.release(upto, sent) {
        live.step(Input::Released { base, config: stored.meta.config });
    }
    live.hands.snapshots.prune(live.hands.wal.base().index)?;
    Ok(())
}

/// Saves what the leader sent, then lets the machine replace the log by it. Never in the place of another one: this
/// member may have come to that index by itself meanwhile.
fn take_over(live: &Live, received: Received, content: &Bytes) {
    let index = received.meta.last.index;
    let stored = Stored { meta: received.meta.clone(), received: true };
    if live.hands.snapshots.load(index).is_ok() {
        let line =
            format!("the leader's snapshot of index {index} is not needed: one of it is here");
        live.log(LogLevel::Info, line);
        return live.step(Input::SnapshotNotStored(received));
    }
    if let Err(error) = live.hands.snapshots.write(&stored, content) {
        let line = format!("the leader's snapshot of index {index} was not taken: {error}");
        live.log(LogLevel::Error, line);
        return live.step(Input::SnapshotNotStored(received));
    }
    let line = format!("received a snapshot of index {index}, {} bytes", content.len());
    live.log(LogLevel::Info, line);
    if live.with_machine(|machine, now_ms, out| machine.stored(now_ms, &received, out)) {
        return;
    }
    // What is refused must not be found by the next start.
    match live.hands.snapshots.remove(index) {
        Ok(()) => live.step(Input::SnapshotNotStored(received)),
        Err(error) => {
            let line = format!(
                "the leader's snapshot of index {index} is superseded, and was not deleted: {error}. \
                 Until this node is restarted it has no part in going on without a lost majority"
            );
            live.log(LogLevel::Error, line);
        }
    }
}
