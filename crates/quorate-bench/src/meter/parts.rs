//! Where the time of a commit goes in Quorate, for one client that commits one row after the other. Seen from
//! outside, by the kernel's tracing of the server that it is connected to; the product has no clock for it.
//!
//! ```text
//! certify  propose  first send  last send            committed           in commit order  commit order left
//!    │ build  │ queue  │ send      │ sync here, majority │ order, wake-ups     │ InnoDB         │
//! ```
//!
//! The own log is synced while the others answer: what is waited for while it is, counts as `sync here`, the
//! rest as `majority`. A receiver that hears of the commit wakes the session itself, or wakes the feeder, which does.
//! `Wake-ups` are the times that the feeder, if need be, and then the session, need to run once they are woken. What
//! comes before and after (the statement, the answer to the client) belongs to no part.
//!
//! Invariant: the parts of a commit are disjoint, and none of them is negative.

use super::threads;
use crate::drive::commits::COUNT_MIN;
use crate::record::figure::COMMIT_PARTS;
use crate::record::Spread;
use anyhow::{ensure, Context, Result};
use quorate_lab::process::{Functions, Moment, Probe, Record};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Of the thread that hands out what is committed, of those that may do it in passing, and of the one that writes the
/// log.
const FEEDER: &str = "qrt-feeder";
const RECEIVER: &str = "qrt-recv";
const LOGGER: &str = "quorate-log";
const EVENTS: [&str; 6] = [
    "sched/sched_waking",
    "sched/sched_switch",
    "syscalls/sys_enter_sendto",
    "syscalls/sys_exit_sendto",
    "syscalls/sys_enter_fdatasync",
    "syscalls/sys_exit_fdatasync",
];
/// What a moment is called, what the function's symbol has, and whether its return is meant.
const FUNCTIONS: [(&str, [&str; 2], bool); 4] = [
    ("certify", ["quorate_node4node5calls", "Node$GT$7certify17h"], false),
    ("propose", ["_ZN12quorate_live5group5Group", "7propose17h"], false),
    ("entered", ["quorate_node4node5calls", "Node$GT$18commit_order_enter17h"], true),
    ("leave", ["quorate_node4node5calls", "Node$GT$18commit_order_leave17h"], false),
];

/// Watches a server as long as it lives.
pub struct Parts {
    record: Record,
    threads: Helpers,
}

struct Helpers {
    feeder: i32,
    receivers: Vec<i32>,
    logger: i32,
}

impl Parts {
    /// None where the server has not loaded Quorate.
    pub fn watch(server: i32) -> Result<Option<Parts>> {
        let Some(library) = library(server)? else { return Ok(None) };
        let functions = Functions::of(&library)?;
        let probe = |(name, symbol, at_return): (&'static str, [&str; 2], bool)| {
            let (file, offset) = (&*library, functions.find(&symbol)?);
            Ok(Probe { name, file, offset, at_return })
        };
        let probes: Vec<Probe> = FUNCTIONS.into_iter().map(probe).collect::<Result<_>>()?;
        let names = threads::names(server)?;
        let of_name = |wanted: &str| {
            let thread = names.iter().find(|(_, name)| *name == wanted).map(|(thread, _)| *thread);
            thread.with_context(|| format!("the server has no thread {wanted}"))
        };
        let receivers = names.iter().filter(|(_, name)| *name == RECEIVER);
        let threads = Helpers {
            feeder: of_name(FEEDER)?,
            receivers: receivers.map(|(thread, _)| *thread).collect(),
            logger: of_name(LOGGER)?,
        };
        let record = Record::new(&EVENTS, &probes)?;
        record.follow(server)?;
        Ok(Some(Parts { record, threads }))
    }

    /// The medians of the parts in microseconds, by figure.
    pub fn medians(self) -> Result<BTreeMap<&'static str, f64>> {
        let commits = commits(&self.record.read()?, &self.threads);
        let count = commits.len();
        ensure!(count >= COUNT_MIN, "only {count} commits could be told apart");
        let median = |(part, name): (usize, &&'static str)| {
            let times = commits.iter().map(|parts| parts[part].as_secs_f64() * 1e6);
            Some((*name, Spread::of(times)?.median))
        };
        Ok(COMMIT_PARTS.iter().enumerate().filter_map(median).collect())
    }
}

/// Where the server has it from.
fn library(server: i32) -> Result<Option<PathBuf>> {
    let path = format!("/proc/{server}/maps");
    let maps = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let file = |line: &str| Some(PathBuf::from(&line[line.find('/')?..]));
    let is_ours = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libquorate"))
    };
    Ok(maps.lines().filter_map(file).find(is_ours).filter(|path| Path::exists(path)))
}

/// The parts of all commits of which every moment is there, in the order of [`COMMIT_PARTS`].
fn commits(moments: &[Moment], threads: &Helpers) -> Vec<[Duration; 8]> {
    let begins: Vec<usize> = (0..moments.len()).filter(|at| moments[*at].is("certify:")).collect();
    let ends = begins.iter().skip(1).copied().chain([moments.len()]);
    let windows = begins.iter().zip(ends).map(|(begin, end)| &moments[*begin..end]);
    windows.filter_map(|window| parts(window, threads)).collect()
}

/// Of one commit: from its certification to that of the next.
fn parts(window: &[Moment], threads: &Helpers) -> Option<[Duration; 8]> {
    let &Helpers { feeder, logger, ref receivers } = threads;
    let (begin, session) = (window[0].at, window[0].thread);
    let by = |thread: i32, what: &'static str| {
        window.iter().filter(move |moment| moment.thread == thread && moment.is(what))
    };
    let proposed = by(session, "propose:").next()?.at;
    let feeds = |thread: i32| thread == feeder || receivers.contains(&thread);
    let session_woken = window
        .iter()
        .find(|m| m.at >= proposed && feeds(m.thread) && m.wakes() == Some(session))?;
    let by_feeder = session_woken.thread == feeder;
    let committed = window
        .iter()
        .filter(|moment| (proposed..=session_woken.at).contains(&moment.at))
        .rfind(|moment| match by_feeder {
            true => moment.wakes() == Some(feeder),
            false => moment.runs() == Some(session_woken.thread),
        })?
        .at;
    let runs = |thread: i32, from: Duration| {
        let mut moments = window.iter().filter(move |moment| moment.at >= from);
        Some(moments.find(|moment| moment.runs() == Some(thread))?.at - from)
    };
    let feeder_woken = if by_feeder { runs(feeder, committed)? } else { Duration::ZERO };
    let woken = feeder_woken + runs(session, session_woken.at)?;
    let in_time = |moment: &&Moment| (proposed..=committed).contains(&moment.at);
    let sending = by(session, "sys_sendto(").find(in_time)?.at;
    let sent = by(session, "sys_sendto ->").rfind(in_time)?.at;
    let sync = |begin: &Moment| {
        let mut ends = by(logger, "sys_fdatasync ->").filter(|end| end.at >= begin.at);
        let end = ends.next().map_or(committed, |end| end.at.min(committed));
        end.saturating_sub(begin.at.max(sent))
    };
    let synced: Duration = by(logger, "sys_fdatasync(").map(sync).sum();
    let entered = by(session, "entered:").next()?.at;
    let left = by(session, "leave:").next()?.at;
    Some([
        proposed.checked_sub(begin)?,
        sending.checked_sub(proposed)?,
        sent.checked_sub(sending)?,
        synced,
        committed.checked_sub(sent)?.checked_sub(synced)?,
        entered.checked_sub(committed)?.checked_sub(woken)?,
        left.checked_sub(entered)?,
        woken,
    ])
}

/// What the kernel writes of a moment.
trait Entry {
    fn is(&self, what: &str) -> bool;
    /// The thread that is woken.
    fn wakes(&self) -> Option<i32>;
    /// The thread that begins to run.
    fn runs(&self) -> Option<i32>;
}

impl Entry for Moment {
    fn is(&self, what: &str) -> bool {
        self.what.starts_with(what)
    }

    fn wakes(&self) -> Option<i32> {
        self.is("sched_waking:").then(|| number(&self.what, " pid="))?
    }

    fn runs(&self) -> Option<i32> {
        self.is("sched_switch:").then(|| number(&self.what, " next_pid="))?
    }
}

fn number(text: &str, label: &str) -> Option<i32> {
    text.split_once(label)?.1.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: i32 = 10;

    fn threads() -> Helpers {
        Helpers { feeder: 11, receivers: vec![13, 14], logger: 12 }
    }

    fn moment((at, thread, what): (u64, i32, &str)) -> Moment {
        Moment { at: Duration::from_micros(at), thread, what: what.to_owned() }
    }

    /// A commit that begins at this microsecond.
    fn commit(begin: u64) -> Vec<Moment> {
        let moments = [
            (0, SESSION, "certify: (0x7f)"),
            (5, SESSION, "propose: (0x7f)"),
            (7, SESSION, "sys_sendto(fd: 1c, buff: 7f)"),
            (12, 12, "sys_fdatasync(fd: 5)"),
            (20, SESSION, "sys_sendto -> 0x50"),
            (112, 12, "sys_fdatasync -> 0x0"),
            (150, 13, "sched_waking: comm=qrt-feeder pid=11 prio=120 target_cpu=000"),
            (
                160,
                0,
                "sched_switch: prev_comm=a prev_pid=0 ==> next_comm=f next_pid=11 next_prio=120",
            ),
            (170, 11, "sched_waking: comm=one_connection pid=10 prio=120 target_cpu=001"),
            (
                190,
                0,
                "sched_switch: prev_comm=a prev_pid=0 ==> next_comm=s next_pid=10 next_prio=120",
            ),
            (200, SESSION, "entered: (0x7e <- 0x7f)"),
            (230, SESSION, "leave: (0x7f)"),
            (240, SESSION, "sys_sendto(fd: 30, buff: 7f)"),
        ];
        moments.map(|(at, thread, what)| moment((begin + at, thread, what))).into()
    }

    #[test]
    fn parts_are_disjoint_and_make_up_a_commit() {
        let moments = [commit(1000), commit(2000)].concat();
        let expected = [5, 2, 13, 92, 38, 20, 30, 30].map(Duration::from_micros);
        assert_eq!(commits(&moments, &threads()), [expected; 2]);
        let sum: Duration = expected.iter().sum();
        assert_eq!(sum, Duration::from_micros(230), "from certify to leave");
    }

    #[test]
    fn a_receiver_that_wakes_the_session_itself_spares_a_wake_up() {
        let mut moments = commit(0);
        let receiver_runs =
            "sched_switch: prev_comm=a prev_pid=0 ==> next_comm=r next_pid=13 next_prio=120";
        moments.splice(6..8, [moment((150, 0, receiver_runs))]);
        moments[7].thread = 13;
        let expected = [5, 2, 13, 92, 38, 30, 30, 20].map(Duration::from_micros);
        assert_eq!(commits(&moments, &threads()), [expected]);
    }

    #[test]
    fn a_sync_that_goes_on_counts_as_long_as_it_was_waited_for() {
        let mut moments = commit(0);
        // Two others were faster.
        moments.remove(5);
        let parts = commits(&moments, &threads());
        assert_eq!(parts[0][3..5], [Duration::from_micros(130), Duration::ZERO]);
    }

    #[test]
    fn a_commit_that_lacks_a_moment_is_left_out() {
        for at in [1, 2, 6, 7, 8, 9, 10, 11] {
            let mut moments = commit(0);
            moments.remove(at);
            assert!(commits(&moments, &threads()).is_empty(), "without moment {at}");
        }
    }
}
