//! The thread that is the machine's clock, and looks at what the machine cannot see by itself.

use crate::live::{unix_ms, Live};
use crate::process;
use quorate_consensus::MemberRole;
use quorate_group::{Input, LogLevel, LogRoom};
use quorate_wal::Room;
use std::time::{Duration, Instant, SystemTime};

/// Between two looks at the certificate, each of which may warn.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(12 * 60 * 60);

/// Without room for the log: between two looks whether all of it is still needed. Each reads a snapshot.
const NEEDLESS_INTERVAL: Duration = Duration::from_secs(15);

pub(crate) fn run(live: &Live) {
    let interval = Duration::from_millis(live.tick_ms);
    let mut looked = None;
    let mut needless: Option<Instant> = None;
    while live.pause(interval) {
        if looked.is_none_or(|at: Instant| at.elapsed() >= CERTIFICATE_INTERVAL) {
            looked = Some(Instant::now());
            look_at_certificate(live);
        }
        let commit = live.observer.commit_under_way();
        let standing = live.observer.standing();
        let isolated = process::is_isolated();
        let (room, warning, percent) = log_room(live);
        if room != LogRoom::Enough && needless.is_none_or(|at| at.elapsed() >= NEEDLESS_INTERVAL) {
            // Snapshots, with which it is asked else, may not be saved until there is room, and this node may have
            // applied what it had to keep. What is read of the disk for that is read on another thread.
            if let Some(needs) = live.feeding.needs_from(&live.core) {
                needless = Some(Instant::now());
                live.hands.snapshots.look(needs);
            }
        }
        let unix_ms = unix_ms();
        live.with_applied(|machine, now_ms, out| {
            machine.step(now_ms, Input::HostCommit(commit), out);
            machine.step(now_ms, Input::Standing(standing), out);
            machine.step(now_ms, Input::ProcessIsolated(isolated), out);
            machine.step(now_ms, Input::LogRoom { room, warning, percent }, out);
            machine.step(now_ms, Input::Tick { unix_ms }, out);
        });
    }
}

fn look_at_certificate(live: &Live) {
    let trust = live.trust();
    if let Some(warning) =
        trust.expiry.as_ref().and_then(|expiry| expiry.warning(SystemTime::now()))
    {
        live.log(LogLevel::Warn, warning);
    }
}

/// As [`Input::LogRoom`] has it.
fn log_room(live: &Live) -> (LogRoom, Option<String>, u8) {
    let max = live.hands.log_max;
    // Of a server only its own backlog counts, which it looks at with each snapshot.
    let share = || live.hands.wal.stats().bytes.min(max) / (max / 100).max(1);
    let percent = if live.options.role == MemberRole::Logger { share().min(100) as u8 } else { 0 };
    let room = match live.hands.wal.room() {
        Room::Enough => return (LogRoom::Enough, None, percent),
        Room::Reserve { segments } => LogRoom::Reserve { segments: segments as u64 },
        Room::Blocked => LogRoom::Blocked,
    };
    (room, live.hands.wal.stats().warning, percent)
}
