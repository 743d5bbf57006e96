//! The sender thread of one peer: keeps a connection to it, writes what the others could not, and
//! reads the log and snapshots for it, away from the commit path.
//!
//! A connection that ends says nothing of the process at its other end: a device between may have
//! cut it. So it is dialled again at once ([`Redial`]). If nobody listens there any more, the process is gone,
//! and the machine hears of it, a round trip after the end; if the new connection succeeds, nothing
//! has happened; without any answer its timeouts decide.

use crate::live::Live;
use crate::net::complaints::Unreached;
use crate::net::dial::{dial, DialError, Dialled};
use crate::net::peer::{Peer, Work};
use crate::net::socket;
use quorate_consensus::{Fetch, Index, KeyId, Term};
use quorate_group::{Input, LogLevel, Parcel, Redial};
use quorate_wal::ReadError;
use quorate_wire::{RefusalCode, Want};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two lines about a snapshot: a member that cannot use it asks for the next one.
const SNAPSHOT_LINES: Duration = Duration::from_secs(1);
/// Between two dials.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long to look for the end of our connection when theirs has ended.
const PROBE: Duration = Duration::from_millis(100);

pub(crate) fn run(live: &Live, peer: &Peer) {
    let mut redial = Redial::new(PAUSE_MAX);
    let mut unreached = Unreached::default();
    while !peer.is_stopped() && !live.is_stopping() {
        let pause = if let Some(dialled) = dial_any(live, peer, &mut unreached) {
            unreached.reached();
            let connected = Instant::now();
            serve(live, peer, dialled);
            redial.ended(connected.elapsed())
        } else {
            answer_requests(live, peer);
            redial.failed()
        };
        if !pause.is_zero() && !peer.wait_redial(pause) {
            return;
        }
    }
}

/// Tries the addresses that the machine knows.
fn dial_any(live: &Live, peer: &Peer, unreached: &mut Unreached) -> Option<Dialled> {
    if live.has_failed() {
        return None;
    }
    let (addrs, dialled_ms) = (peer.addrs(), live.now_ms());
    let mut refused = !addrs.is_empty();
    for addr in addrs {
        match dial(live.caller(), &addr, Want::Peer, Some(peer.id)) {
            Ok(dialled) if dialled.welcome.from.member == peer.id => {
                match live.with_machine(|m, _, _| m.accepts(&dialled.welcome.from)) {
                    Ok(()) => {
                        if dialled.plain {
                            let id = peer.id;
                            live.warn_plain(&format!("the connection to member {id} at {addr}"));
                        }
                        return Some(dialled);
                    }
                    Err(refusal) => complain(live, peer, &addr, &refusal.text, unreached),
                }
                refused = false;
            }
            Ok(dialled) => {
                let (found, key) = (dialled.welcome.from.member, dialled.welcome.from.key);
                refused &= shows_absence(live, peer, RefusalCode::OtherMember, key);
                complain(live, peer, &addr, &format!("{found} answers there"), unreached);
            }
            Err(error) => {
                complain(live, peer, &addr, &error.to_string(), unreached);
                refused &= match error {
                    DialError::Connect(error) => error.kind() == io::ErrorKind::ConnectionRefused,
                    DialError::Refused { refusal, key } => {
                        let absent = shows_absence(live, peer, refusal.code, key);
                        live.step(Input::Refused { peer: peer.id, refusal, key });
                        absent
                    }
                    _ => false,
                };
            }
        }
    }
    if refused {
        live.step(Input::NotThere { peer: peer.id, dialled_ms });
    }
    None
}

fn shows_absence(live: &Live, peer: &Peer, code: RefusalCode, key: KeyId) -> bool {
    live.with_machine(|machine, _, _| machine.shows_absence(peer.id, code, key))
}

/// One line for each new reason, not for each attempt. All who are no members share a few lines.
fn complain(live: &Live, peer: &Peer, addr: &str, reason: &str, unreached: &mut Unreached) {
    let id = peer.id;
    let who = format!("cannot connect to member {id} at {addr}");
    if !unreached.is_due(&format!("{addr}: {reason}"), Instant::now()) {
        return;
    }
    let line = match live.with_machine(|machine, _, _| machine.is_member(id)) {
        true => Some(format!("{who}: {reason}")),
        false => live.hands.acceptor.complaint(&who, reason),
    };
    if let Some(line) = line {
        live.log(LogLevel::Info, line);
    }
}

fn serve(live: &Live, peer: &Peer, dialled: Dialled) {
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
    // A reload ends the connections that it finds, and may not have found this one.
    if !Arc::ptr_eq(&dialled.trust, &live.trust()) {
        return peer.disconnect();
    }
    live.step(Input::Connected(dialled.welcome.from));
    let mut told = None;
    loop {
        match peer.next_work() {
            Work::Stop | Work::Reconnect => break,
            Work::Probe => {
                if socket::has_ended(&probe, PROBE) {
                    break;
                }
            }
            Work::Write => live.core.flush_waiting(peer),
            Work::Fetch(fetch) => serve_fetch(live, fetch),
            Work::Snapshot(term) => {
                send_snapshot(live, peer, term, &mut told);
                peer.snapshot_left();
            }
        }
    }
    peer.disconnect();
    live.step(Input::Disconnected(peer.id));
    answer_requests(live, peer);
}

fn serve_fetch(live: &Live, fetch: Fetch) {
    let Fetch { to, from, bytes_max } = fetch;
    let mut entries = Vec::new();
    live.step(match live.hands.wal.read(from, bytes_max, &mut entries) {
        Ok(()) if !entries.is_empty() => Input::Fetched { to, from, entries },
        Ok(()) | Err(ReadError::Purged { .. }) => Input::FetchUnavailable { to },
        // A snapshot may get it past what cannot be read.
        Err(error) => {
            live.log(LogLevel::Error, format!("cannot read the log for member {to}: {error}"));
            Input::FetchUnavailable { to }
        }
    });
}

/// Sends the newest snapshot file: the log reaches back to it. `told`: when a line said so last.
fn send_snapshot(live: &Live, peer: &Peer, term: Term, told: &mut Option<Instant>) {
    let skipped = |damaged| live.log(LogLevel::Warn, damaged);
    let (last, ok) = match live.hands.snapshots.newest(&skipped) {
        Ok(Some((stored, content))) => {
            let last = stored.meta.last.index;
            if told.is_none_or(|at| at.elapsed() >= SNAPSHOT_LINES) {
                let line = format!("sending a snapshot of index {last} to member {}", peer.id);
                live.log(LogLevel::Info, line);
                *told = Some(Instant::now());
            }
            (last, push_snapshot(live, peer, Parcel::new(term, stored.meta, content)))
        }
        Ok(None) => (0, false),
        Err(error) => {
            live.log(LogLevel::Error, format!("no snapshot for member {}: {error}", peer.id));
            (0, false)
        }
    };
    snapshot_sent(live, peer, last, ok);
}

fn push_snapshot(live: &Live, peer: &Peer, parcel: Parcel) -> bool {
    for packet in parcel {
        if !peer.push(packet) {
            return false;
        }
        live.core.flush_waiting(peer);
    }
    peer.is_connected()
}

fn snapshot_sent(live: &Live, peer: &Peer, last: Index, ok: bool) {
    live.step(Input::SnapshotSent { to: peer.id, last, ok });
}

/// What the machine asked for and cannot have without a connection. Entries it gets nevertheless:
/// its messages with them go nowhere, and it finds out like with any lost message.
fn answer_requests(live: &Live, peer: &Peer) {
    let (fetches, snapshot) = peer.take_requests();
    fetches.into_iter().for_each(|fetch| serve_fetch(live, fetch));
    if snapshot {
        snapshot_sent(live, peer, 0, false);
    }
}
