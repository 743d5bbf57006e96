//! Every start there can be: what the log holds, the snapshots beside it, the saved term, and where the
//! database stands. Directories are made by the real log. The other voters are not there, so nothing
//! is committed after the start: it goes on with exactly what was committed, or refuses. Whether the
//! database is the group's at all is the matrix of the same name in `quorate-node`.
//!
//! The group has committed entries 1 to 4 in term 1, 5 and 6 in term 2, and from 7 on in term 3. The
//! leader of term 2 had entries 7 to 9 that were superseded.

mod common;

use bytes::Bytes;
use common::{Cluster, Node};
use quorate_consensus::{
    Charter, Config, Entry, EntryKind, HardState, LogPosition, MemberId, MemberInfo, MemberRole,
    SnapshotMeta, Term, LEVEL,
};
use quorate_group::{Content, Notes, Stored};
use quorate_live::{GroupError, StartError, View};
use quorate_wal::{DiskKeys, SnapshotFiles, Wal, WalOptions};
use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;

/// Files are made again with each start: small ones.
const SEGMENT_BYTES: u64 = 64 << 10;

/// What a log holds: everything after the base.
#[derive(Clone, Debug)]
struct Log {
    base: LogPosition,
    entries: Vec<LogPosition>,
}

#[derive(Clone, Copy, Debug)]
struct Snapshot {
    last: LogPosition,
    received: bool,
}

/// What a start comes to: the index that it begins after, up to where it feeds, and whether the database has what
/// the log has not: then no majority is to be given up with this log.
#[derive(Debug, PartialEq)]
enum Outcome {
    Begins {
        after: u64,
        up_to: u64,
        unlogged: bool,
    },
    /// The log lost what the member had on disk.
    LogLost,
    NeedsTransfer {
        log_base: u64,
    },
}

fn at(term: Term, index: u64) -> LogPosition {
    LogPosition { term, index }
}

fn committed(index: u64) -> LogPosition {
    let term = match index {
        0 => 0,
        1..=4 => 1,
        5..=6 => 2,
        _ => 3,
    };
    at(term, index)
}

fn text(position: LogPosition) -> String {
    let kind = if position == committed(position.index) { "committed" } else { "superseded" };
    format!("{kind}/{}", position.index)
}

fn logs() -> Vec<(&'static str, Option<Log>)> {
    let range = |from: u64, to: u64| {
        let entries = (from..=to).map(committed).collect();
        Some(Log { base: committed(from - 1), entries })
    };
    let superseded = (1..=6).map(committed).chain((7..=9).map(|index| at(2, index))).collect();
    vec![
        ("none", None),
        ("all", range(1, 12)),
        ("purged", range(7, 12)),
        ("superseded tail", Some(Log { base: at(0, 0), entries: superseded })),
        ("rolled back", range(1, 5)),
    ]
}

fn snapshots() -> Vec<(&'static str, Vec<Snapshot>)> {
    let own = |last| Snapshot { last, received: false };
    let received = |last| Snapshot { last, received: true };
    vec![
        ("none", vec![]),
        ("old", vec![own(committed(4))]),
        ("old and newer", vec![own(committed(4)), own(committed(8))]),
        ("received, newer than the log", vec![own(committed(4)), received(committed(14))]),
        ("own, newer than the log", vec![own(committed(14))]),
        ("received, of a term that no log has there", vec![received(at(1, 8))]),
        (
            "old one of another term",
            vec![own(at(9, 3)), own(committed(4)), own(at(9, 5)), own(committed(6))],
        ),
    ]
}

impl Log {
    fn contains(&self, position: LogPosition) -> bool {
        position == self.base || self.entries.contains(&position)
    }
}

/// What has to come of it, by what is on disk. `stands`: the index up to which the database has
/// everything; `None`: nobody knows.
fn expected(log: &Log, snapshots: &[Snapshot], stands: Option<u64>) -> Outcome {
    let mut log = log.clone();
    // One that contradicts what the log starts after, and so what is committed, is not there.
    let base = log.base;
    let sound = |each: &&Snapshot| {
        !(each.received && each.last.index >= base.index && each.last.term < base.term)
    };
    let snapshots: Vec<_> = snapshots.iter().filter(sound).copied().collect();
    let newest = snapshots.iter().max_by_key(|each| each.last.index);
    if let Some(newest) = newest.filter(|each| each.last.index >= log.base.index) {
        match (log.contains(newest.last), newest.received) {
            (true, _) => {}
            (false, true) => log = Log { base: newest.last, entries: Vec::new() },
            (false, false) => return Outcome::LogLost,
        }
    }
    let up_to = newest.map_or(0, |each| each.last.index).max(log.base.index);
    let usable =
        snapshots.iter().filter(|each| log.contains(each.last)).map(|each| each.last.index);
    let begins = usable.chain((log.base.index == 0).then_some(0));
    let after = stands.and_then(|stands| begins.filter(|index| *index <= stands).max());
    match after {
        Some(after) => {
            let end = log.entries.last().unwrap_or(&log.base).index;
            // Without a log there is nobody to be given up.
            let unlogged = end > 0 && stands > Some(end);
            Outcome::Begins { after, up_to, unlogged }
        }
        None => Outcome::NeedsTransfer { log_base: log.base.index },
    }
}

fn make(node: &Node, log: Option<&Log>, snapshots: &[Snapshot], term: Term) {
    let (tell, synced) = mpsc::channel();
    let on_sync = Box::new(move |done| tell.send(done).unwrap());
    let segment_bytes = node.options.segment_bytes;
    let options = WalOptions { segment_bytes, ..WalOptions::new(&node.options.dir) };
    let Some(log) = log else { return };
    let (wal, found) = Wal::open(options, true, on_sync).unwrap();
    wal.save_group(7, Charter::default()).unwrap();
    wal.save_hard_state(HardState { term, voted_for: None }).unwrap();
    let voter = |name: &str| MemberInfo::new(MemberRole::Voter, "127.0.0.1:9", name);
    let others = [MemberId(1), MemberId(2)].map(|id| (id, voter("other")));
    let members = others.into_iter().chain([(found.identity.member, voter("own"))]).collect();
    let config = Config { members, ..Config::default() };
    if log.base.index > 0 {
        wal.reset(log.base);
        while synced.recv().unwrap().unwrap() != log.base {}
    }
    let entry = |position: &LogPosition| match position.index {
        1 => Entry::new(1, position.term, EntryKind::Config, config.encode()),
        index => Entry::new(index, position.term, EntryKind::Data, text(*position).into()),
    };
    let entries: Vec<Entry> = log.entries.iter().map(entry).collect();
    wal.append(&entries);
    let last = log.entries.last().copied().unwrap_or(log.base);
    while synced.recv().unwrap().unwrap() != last {}
    let files = SnapshotFiles::new(&node.options.dir, DiskKeys::default());
    for snapshot in snapshots {
        let (last, received) = (snapshot.last, snapshot.received);
        let rows: Vec<String> = (2..=last.index).map(|index| text(committed(index))).collect();
        let content = Content {
            view: View::default(),
            notes: Notes::default(),
            machine: Bytes::from(rows.join("\n")),
        };
        let stored = Stored { meta: SnapshotMeta { last, config: config.clone() }, received };
        files.save(last.index, &stored.encode(), &content.encode(LEVEL)).unwrap();
    }
    wal.close();
}

fn outcome(node: &mut Node, stands: Option<u64>) -> Outcome {
    node.database = stands.unwrap_or(0);
    let mut after = None;
    let mut accept = |index: u64, _: &Bytes| {
        let accepted = stands.is_some_and(|stands| index <= stands);
        after = accepted.then_some(index);
        accepted
    };
    match node.start_with(&mut accept) {
        Ok(()) => {}
        Err(GroupError::NeedsStateTransfer { log_base }) => {
            return Outcome::NeedsTransfer { log_base }
        }
        Err(GroupError::Start(error @ StartError::LogLost { .. })) => {
            let said = error.to_string();
            assert!(said.contains("node") && said.len() > 100, "says what to do: {said}");
            return Outcome::LogLost;
        }
        Err(error) => panic!("{error}"),
    }
    let up_to = node.status().commit_index;
    node.wait("what is committed", |node| node.status().applied_index >= up_to);
    let applied = node.shared.state.lock().applied.clone();
    let rows: Vec<String> = (2..=up_to).map(|index| text(committed(index))).collect();
    assert_eq!(applied, rows, "exactly what was committed");
    let plan = || node.group().plan_force_quorum(&["own"]).refusal.unwrap_or_default();
    node.wait("its start", |_| !plan().contains("not known yet"));
    let unlogged = plan().contains("commits that its log has not");
    Outcome::Begins { after: after.expect("it was asked"), up_to, unlogged }
}

/// All starts from one kind of log; how many.
fn starts(log_name: &str, log: Option<&Log>) -> usize {
    let empty = Log { base: at(0, 0), entries: Vec::new() };
    let mut count = 0;
    for (snapshot_name, snapshots) in snapshots() {
        // Without a log nobody left snapshots either.
        let snapshots = if log.is_some() { snapshots } else { Vec::new() };
        // Below the log's, the log's, and above it.
        let last = log.and_then(|log| log.entries.last()).map_or(0, |last| last.term);
        for term in BTreeSet::from([0, last, 9]) {
            let mut cluster = Cluster::new(&format!("starts-{log_name}"), 1);
            let node = &mut cluster.nodes[0];
            node.options.bootstrap = false;
            node.options.segment_bytes = SEGMENT_BYTES;
            make(node, log, &snapshots, term);
            for stands in [None, Some(0), Some(3), Some(5), Some(8), Some(20)] {
                let found = outcome(node, stands);
                let cell = format!(
                    "log: {log_name}; snapshots: {snapshot_name}; term {term}; database at {stands:?}"
                );
                assert_eq!(found, expected(log.unwrap_or(&empty), &snapshots, stands), "{cell}");
                if found != Outcome::LogLost && log.is_some() {
                    assert!(node.status().term >= term, "{cell}");
                }
                node.kill();
                count += 1;
            }
        }
    }
    count
}

#[test]
fn each_start_goes_on_with_what_was_committed_or_refuses() {
    let logs = logs();
    let counts = thread::scope(|threads| {
        let begun = logs.iter().map(|(name, log)| threads.spawn(|| starts(name, log.as_ref())));
        let begun: Vec<_> = begun.collect();
        begun
            .into_iter()
            .map(|each| each.join().expect("a start that is as expected"))
            .sum::<usize>()
    });
    println!("{counts} starts");
}
