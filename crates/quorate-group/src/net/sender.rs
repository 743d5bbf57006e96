//! The sender thread of one peer: keeps a connection to it, writes what the others could not, and
//! reads the log and snapshots for it, away from the commit path.
//!
//! A connection that ends says nothing of the process at its other end: a device between may have
//! cut it. So it is dialled again at once. If nobody listens there any more, the process is gone,
//! and the core hears of it, a round trip after the end; if the new connection succeeds, nothing
//! has happened; without any answer the core's timeouts decide.

use super::dial::{dial, Dialled};
use super::peer::{Peer, Work};
use super::socket;
use crate::machine::LogLevel;
use crate::member::Member;
use crate::snapshot::Stored;
use bytes::Bytes;
use quorate_consensus::{Event, Fetch};
use quorate_wal::ReadError;
use quorate_wire::{Packet, SnapshotBegin, Want};
use std::time::{Duration, Instant};

/// A process that is being killed may be reached while its port is not closed yet.
const BACKOFF_MIN: Duration = Duration::from_millis(5);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// How long to look for the end of our connection when theirs has ended.
const PROBE: Duration = Duration::from_millis(100);
/// One piece of a snapshot.
const CHUNK_BYTES: usize = 256 << 10;

pub(crate) fn run(member: &Member, peer: &Peer) {
    let mut backoff = BACKOFF_MIN;
    let mut complaint = String::new();
    let mut at_once = true;
    while !peer.is_stopped() && !member.is_stopping() {
        if let Some(dialled) = dial_any(member, peer, &mut complaint) {
            complaint.clear();
            let connected = Instant::now();
            serve(member, peer, dialled);
            if connected.elapsed() >= BACKOFF_MAX {
                backoff = BACKOFF_MIN;
                at_once = true;
            }
            // What became of it is to be known now. One that never stays is not dialled in a loop.
            if std::mem::take(&mut at_once) {
                continue;
            }
        } else {
            answer_requests(member, peer);
        }
        if !peer.wait_redial(backoff) {
            return;
        }
        backoff = (backoff * 2).min(BACKOFF_MAX);
        at_once = true;
    }
}

/// Tries the address the peer last announced, then that of the configuration.
fn dial_any(member: &Member, peer: &Peer, complaint: &mut String) -> Option<Dialled> {
    if member.has_failed() || member.survival.is_isolated() {
        return None;
    }
    let known = peer.known();
    let announced = known.identity.map(|identity| identity.addr);
    let mut addrs: Vec<String> = announced.into_iter().chain(known.config_addr).collect();
    addrs.dedup();
    let mut refused = !addrs.is_empty();
    for addr in addrs {
        match dial(member.caller(), &addr, Want::Peer, Some(peer.id)) {
            Ok(dialled) if dialled.welcome.from.member == peer.id => {
                match member.lineage.check(&dialled.welcome.from) {
                    Ok(()) => return Some(dialled),
                    Err(refusal) => complain(member, peer, &addr, refusal.text, complaint),
                }
                refused = false;
            }
            Ok(dialled) => {
                let found = dialled.welcome.from.member;
                complain(member, peer, &addr, format!("{found} answers there"), complaint);
            }
            Err(error) => {
                if let Some(reason) = error.rolled_back() {
                    member.rolled_back(reason);
                }
                refused &= error.nobody_there();
                complain(member, peer, &addr, error.to_string(), complaint);
            }
        }
    }
    if refused && !known.refused {
        peer.set_refused();
        member.peer_unreachable(peer);
    }
    None
}

/// One line for each new reason, not for each attempt.
fn complain(member: &Member, peer: &Peer, addr: &str, reason: String, last: &mut String) {
    let id = peer.id;
    let line = format!("cannot connect to member {id} at {addr}: {reason}");
    if line != *last {
        member.log(LogLevel::Info, line.clone());
        *last = line;
    }
}

fn serve(member: &Member, peer: &Peer, dialled: Dialled) {
    let ready = dialled
        .socket()
        .set_write_timeout(None)
        .and_then(|()| dialled.socket().set_read_timeout(None))
        .and_then(|()| dialled.socket().try_clone());
    let Ok(probe) = ready else { return };
    let (stream, session) = dialled.reader.into_stream().into_writer();
    if !peer.connect(stream, session) {
        return;
    }
    peer.learn(dialled.welcome.from);
    member.peer_connected(peer);
    loop {
        match peer.next_work() {
            Work::Stop | Work::Reconnect => break,
            Work::Probe => {
                if socket::has_ended(&probe, PROBE) {
                    break;
                }
            }
            Work::Write => member.flush_waiting(peer),
            Work::Fetch(fetch) => serve_fetch(member, fetch),
            Work::Snapshot => send_snapshot(member, peer),
        }
    }
    peer.disconnect();
    member.peer_disconnected(peer);
    answer_requests(member, peer);
}

fn serve_fetch(member: &Member, fetch: Fetch) {
    let Fetch { to, from, bytes_max } = fetch;
    let mut entries = Vec::new();
    let event = match member.wal.read(from, bytes_max, &mut entries) {
        Ok(()) if !entries.is_empty() => Event::Fetched { to, from, entries },
        Ok(()) | Err(ReadError::Purged { .. }) => Event::FetchUnavailable { to },
        // A snapshot may get it past what cannot be read.
        Err(error) => {
            member.log(LogLevel::Error, format!("cannot read the log for member {to}: {error}"));
            Event::FetchUnavailable { to }
        }
    };
    member.with_core(|driver| driver.ignore_refusal(member, event));
}

/// Sends the newest snapshot file: the log reaches back to it.
fn send_snapshot(member: &Member, peer: &Peer) {
    let skipped = |damaged| member.log(LogLevel::Warn, damaged);
    let sent = match member.snapshots.newest(&skipped) {
        Ok(Some((Stored { meta, .. }, content))) => {
            let last = meta.last.index;
            let term = member.core.lock().leadership.term;
            let line = format!("sending a snapshot of index {last} to member {}", peer.id);
            member.log(LogLevel::Info, line);
            let begin = SnapshotBegin { term, meta, bytes: content.len() as u64 };
            (last, push_snapshot(member, peer, begin, content))
        }
        Ok(None) => (0, false),
        Err(error) => {
            member.log(LogLevel::Error, format!("no snapshot for member {}: {error}", peer.id));
            (0, false)
        }
    };
    let (last, ok) = sent;
    let event = Event::SnapshotSent { to: peer.id, last, ok };
    member.with_core(|driver| driver.ignore_refusal(member, event));
}

fn push_snapshot(member: &Member, peer: &Peer, begin: SnapshotBegin, mut content: Bytes) -> bool {
    let crc = crc32c::crc32c(&content);
    if !peer.push(Packet::SnapshotBegin(begin)) {
        return false;
    }
    while !content.is_empty() {
        let chunk = content.split_to(content.len().min(CHUNK_BYTES));
        if !peer.push(Packet::SnapshotData(chunk)) {
            return false;
        }
        member.flush_waiting(peer);
    }
    let pushed = peer.push(Packet::SnapshotEnd { crc });
    member.flush_waiting(peer);
    pushed && peer.is_connected()
}

/// What the core asked for and cannot have without a connection. Entries it gets nevertheless:
/// its messages with them go nowhere, and it finds out like with any lost message.
fn answer_requests(member: &Member, peer: &Peer) {
    let (fetches, snapshot) = peer.take_requests();
    fetches.into_iter().for_each(|fetch| serve_fetch(member, fetch));
    if snapshot {
        let event = Event::SnapshotSent { to: peer.id, last: 0, ok: false };
        member.with_core(|driver| driver.ignore_refusal(member, event));
    }
}
