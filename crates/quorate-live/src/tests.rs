//! What cannot be brought about from outside: a log that fails, a thread that panics, what a crash
//! leaves between two steps.

#[path = "../tests/common/mod.rs"]
mod common;
mod operators;

use bytes::Bytes;
use common::{Cluster, Node};
use quorate_consensus::{
    Charter, Config, Entry, EntryKind, HardState, LogPosition, MemberId, MemberInfo, MemberRole,
    Proposal, SnapshotMeta, Term, LEVEL,
};
use quorate_group::{Content, FeedError, Input, LogFigures, Notes, Stored};
use quorate_live::{GroupError, StartError, View};
use quorate_wal::{DiskKeys, SnapshotFiles, Wal, WalError, WalOptions};
use quorate_wire::Packet;
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

fn fail_log(node: &Node) {
    let dir = node.options.dir.clone();
    node.group().live.on_sync(Err(Arc::new(WalError::Closed { dir })));
}

#[test]
fn a_leader_whose_log_fails_is_replaced_and_says_so_once() {
    let cluster = Cluster::started("fatal", 3);
    let broken = cluster.leader();
    let rest: Vec<_> = (0..3).filter(|at| *at != broken).collect();
    fail_log(&cluster.nodes[broken]);
    fail_log(&cluster.nodes[broken]);
    let proposals: Vec<_> = rest.iter().map(|at| cluster.nodes[*at].propose()).collect();
    for at in &rest {
        cluster.nodes[*at].await_applied(&proposals);
        cluster.nodes[*at]
            .wait("a view without the broken one", |node| node.view().members.len() == 2);
    }
    let node = &cluster.nodes[broken];
    node.wait("the news", |node| !node.shared.fatal.lock().is_empty());
    node.wait("to be cut off", |node| node.shared.primary.lock().last() == Some(&false));
    assert_eq!(node.shared.fatal.lock().len(), 1);
    assert!(!node.status().is_leader);
    let refused = node.group().propose(1 << 40, Bytes::from_static(b"x"));
    assert!(matches!(refused, Err(GroupError::LogFailed(_))), "{refused:?}");
}

#[test]
fn a_leader_whose_log_fails_tells_another_to_stand_at_once() {
    let mut cluster = Cluster::new("target", 3);
    let election_timeout = Duration::from_secs(5);
    for node in &mut cluster.nodes {
        node.options.election_timeout = election_timeout;
        node.start().unwrap();
        node.joined();
    }
    cluster.await_members(&[0, 1, 2]);
    let broken = cluster.leader();
    let other = (broken + 1) % 3;
    let failed = Instant::now();
    fail_log(&cluster.nodes[broken]);
    let proposal = cluster.nodes[other].propose();
    cluster.nodes[other].await_applied(&[proposal]);
    let took = failed.elapsed();
    println!("a commit {took:?} after the leader's log failed");
    assert!(took < election_timeout, "{took:?}: they waited until it was silent for too long");
}

#[test]
fn a_member_whose_memory_alters_an_entry_goes_out_of_service_and_nobody_applies_it() {
    let cluster = Cluster::started("altered", 3);
    let broken = cluster.leader();
    let (live, from) = (&cluster.nodes[broken].group().live, cluster.nodes[(broken + 1) % 3].id());
    let mut proposal = Proposal::new(EntryKind::Data, Bytes::from_static(b"as proposed"));
    proposal.data = Bytes::from_static(b"as altered.");
    live.step(Input::Packet { from, packet: Packet::Forward(vec![proposal]) });
    let node = &cluster.nodes[broken];
    node.wait("the news", |node| !node.shared.fatal.lock().is_empty());
    let fatal = node.shared.fatal.lock().join(" ");
    assert!(fatal.contains("log index") && fatal.contains(&node.options.name), "{fatal}");
    let rest: Vec<_> = (0..3).filter(|at| *at != broken).collect();
    let proposals: Vec<_> = rest.iter().map(|at| cluster.nodes[*at].propose()).collect();
    for at in rest {
        cluster.nodes[at].await_applied(&proposals);
    }
    for node in &cluster.nodes {
        let state = node.shared.state.lock();
        assert!(!state.applied.iter().any(|text| text.starts_with("as ")), "{:?}", state.applied);
    }
}

#[test]
fn an_entry_of_an_unknown_kind_stops_whoever_is_to_apply_it() {
    let cluster = Cluster::started("unknown", 3);
    let leader = cluster.leader();
    let before = cluster.nodes[0].propose();
    cluster.await_applied(&[before]);
    let proposal = Proposal::new(EntryKind::Unknown(9), Bytes::from_static(b"of tomorrow"));
    let (live, from) = (&cluster.nodes[leader].group().live, cluster.nodes[(leader + 1) % 3].id());
    live.step(Input::Packet { from, packet: Packet::Forward(vec![proposal]) });
    for node in &cluster.nodes {
        node.wait("the news", |node| !node.shared.fatal.lock().is_empty());
        let fatal = node.shared.fatal.lock().join(" ");
        let node = format!("node {} ", node.options.name);
        for part in [&node, "of kind 9", "run a release on this node that knows level"] {
            assert!(fatal.contains(part), "{part}: {fatal}");
        }
    }
    let applied: Vec<_> = cluster.nodes.iter().map(|node| node.status().applied_index).collect();
    let after = cluster.nodes[leader].group().status().commit_index + 1;
    cluster.nodes[leader].propose();
    cluster.nodes[leader].wait("its commit", |node| node.status().commit_index >= after);
    for (node, applied) in cluster.nodes.iter().zip(applied) {
        assert_eq!(node.status().applied_index, applied, "nothing after it is applied");
    }
}

/// A member that stays, and is of no use, is for what the others cannot read either.
#[test]
fn a_fault_of_this_host_asks_for_leave_and_an_entry_that_nobody_reads_does_not() {
    type Kind = fn(String) -> FeedError;
    for (kind, asks) in [(FeedError::Fault as Kind, true), (FeedError::Unreadable, false)] {
        let cluster = Cluster::started("fault", 1);
        let (node, live) = (&cluster.nodes[0], &cluster.nodes[0].group().live);
        assert!(!live.feeding.with(&live.core, |_| Err(kind("as the test wants it".into()))));
        node.wait("the news", |node| !node.shared.fatal.lock().is_empty());
        let told = [&node.shared.fatal, &node.shared.stuck].map(|told| told.lock().len());
        assert_eq!(told, [1, usize::from(asks)]);
    }
}

#[test]
fn a_panicking_state_machine_takes_its_member_out_and_nobody_else() {
    let cluster = Cluster::started("panic", 3);
    let broken = cluster.leader();
    let rest: Vec<_> = (0..3).filter(|at| *at != broken).collect();
    cluster.nodes[broken].shared.panic_on_next();
    let proposals: Vec<_> = rest.iter().map(|at| cluster.nodes[*at].propose()).collect();
    for at in &rest {
        cluster.nodes[*at].await_applied(&proposals);
        cluster.nodes[*at]
            .wait("a view without the broken one", |node| node.view().members.len() == 2);
    }
    cluster.nodes[broken].wait("to be cut off", |node| !node.status().primary);
    let fatal = cluster.nodes[broken].shared.fatal.lock().clone();
    // Whoever was feeding it.
    let feeds = |thread: &str| fatal[0].contains(&format!("thread qrt-{thread}"));
    assert!(fatal.len() == 1 && (feeds("feeder") || feeds("recv")), "{fatal:?}");
}

#[test]
fn a_receiver_feeds_what_is_short_and_leaves_to_the_feeder_what_is_long() {
    let cluster = Cluster::started("passing", 3);
    let node = &cluster.nodes[cluster.leader()];
    for _ in 0..200 {
        let short = node.propose();
        cluster.await_applied(&[short]);
    }
    let in_passing = |node: &Node| node.shared.threads.lock().iter().any(|name| name == "qrt-recv");
    assert!(cluster.nodes.iter().any(in_passing), "not one of all those");
    for at in 0..20 {
        let text = format!("long {at}{:.<50000}", "");
        node.group().propose((1 << 40) + at, text.into()).unwrap();
    }
    let long: Vec<String> = (0..20).map(|at| format!("long {at}")).collect();
    cluster.await_applied(&long);
    for node in &cluster.nodes {
        let threads = node.shared.threads.lock();
        let of_long = &threads[threads.len() - 20..];
        assert!(of_long.iter().all(|name| name == "qrt-feeder"), "{of_long:?}");
    }
}

#[test]
fn a_member_that_needs_a_view_gets_one_though_nobody_came_or_went() {
    let cluster = Cluster::started("needs", 3);
    for node in &cluster.nodes {
        let before = node.view();
        node.group().refresh_view();
        node.wait("a fresh view", |node| node.view().number > before.number);
        assert_eq!(node.view().members, before.members);
    }
}

#[test]
fn a_member_that_asks_for_a_view_within_a_view_gets_another_one() {
    let cluster = Cluster::started("within", 3);
    for node in &cluster.nodes {
        // Else the next view that it is given may be one that another member has asked for.
        cluster.await_members(&[0, 1, 2]);
        let before = node.view();
        node.shared.refresh_in_next_view();
        cluster.nodes[cluster.leader()].group().refresh_view();
        node.wait("two fresh views", |node| node.view().number >= before.number + 2);
    }
}

/// A member's directory as a process left it that had entries 2 to 6 of term 1 on disk, and took or
/// received a snapshot that ends at `snapshot`; `reset`: and began its log anew there.
fn left_behind(node: &Node, snapshot: LogPosition, received: bool, reset: bool) {
    let (tell, synced) = mpsc::channel();
    let on_sync = Box::new(move |done| tell.send(done).unwrap());
    let (wal, found) = Wal::open(WalOptions::new(&node.options.dir), true, on_sync).unwrap();
    wal.save_group(7, Charter::default()).unwrap();
    wal.save_hard_state(HardState { term: 1, voted_for: None }).unwrap();
    let voter = |name: &str| MemberInfo::new(MemberRole::Voter, "127.0.0.1:9", name);
    let others = [MemberId(1), MemberId(2)].map(|id| (id, voter("other")));
    let members = others.into_iter().chain([(found.identity.member, voter("own"))]).collect();
    let config = Config { members, ..Config::default() };
    let entry = |index, kind, data: Bytes| Entry::new(index, 1, kind, data);
    let mut entries = vec![entry(1, EntryKind::Config, config.encode())];
    entries.extend((2..=6).map(|at| entry(at, EntryKind::Data, format!("old/{at}").into())));
    wal.append(&entries);
    while synced.recv().unwrap().unwrap().index < 6 {}
    let content =
        Content { view: View::default(), notes: Notes::default(), machine: "new/2\nnew/3".into() };
    let stored = Stored { meta: SnapshotMeta { last: snapshot, config }, received };
    SnapshotFiles::new(&node.options.dir, DiskKeys::default())
        .save(snapshot.index, &stored.encode(), &content.encode(LEVEL))
        .unwrap();
    if reset {
        wal.reset(snapshot);
        while synced.recv().unwrap().unwrap() != snapshot {}
    }
    wal.close();
}

/// Starts it on a database that is at index `from`, and gives back what it holds then.
fn start_at(node: &mut Node, from: u64) -> Result<Vec<String>, GroupError> {
    node.options.bootstrap = false;
    node.start_with(&mut |index, _| index <= from)?;
    let commit = node.status().commit_index;
    node.wait("what is committed", |node| node.status().applied_index >= commit);
    let applied = node.shared.state.lock().applied.clone();
    Ok(applied)
}

const SNAPSHOT_TERM: Term = 2;

#[test]
fn superseded_entries_below_a_received_snapshot_are_never_fed() {
    // The snapshot ends within the log of another term, at its end, and after it.
    for index in [4, 6, 9] {
        let snapshot = LogPosition { term: SNAPSHOT_TERM, index };
        for reset in [false, true] {
            let mut cluster = Cluster::new(&format!("superseded{index}{reset}"), 1);
            let node = &mut cluster.nodes[0];
            left_behind(node, snapshot, true, reset);
            // The database was filled up to before the snapshot only.
            let refused = start_at(node, 1);
            assert!(
                matches!(refused, Err(GroupError::NeedsStateTransfer { log_base }) if log_base == index),
                "{index} {reset}: {refused:?}, {:?}",
                node.shared.state.lock().applied
            );
            // The log was replaced for good, before anything else could happen.
            node.kill();
            assert_eq!(start_at(node, index).unwrap(), ["new/2", "new/3"]);
            let status = node.status();
            assert_eq!((status.last_index, status.commit_index), (index, index));
            assert_eq!(status.voters.len(), 3);
        }
    }
}

#[test]
fn a_received_snapshot_of_a_majority_that_was_given_up_is_deleted() {
    let mut cluster = Cluster::new("givenup", 1);
    let node = &mut cluster.nodes[0];
    left_behind(node, LogPosition { term: 1, index: 9 }, true, false);
    // The log goes on by force below the snapshot's end.
    let (tell, synced) = mpsc::channel();
    let on_sync = Box::new(move |done| tell.send(done).unwrap());
    let (wal, found) = Wal::open(WalOptions::new(&node.options.dir), true, on_sync).unwrap();
    let members = [MemberId(1), found.identity.member]
        .map(|id| (id, MemberInfo::new(MemberRole::Voter, "127.0.0.1:9", "kept")));
    let (lost, audit) = (vec![MemberId(2)], "its disk burnt".to_owned());
    let config = Config { members: members.into(), lost, audit, ..Config::default() };
    wal.append(&[
        Entry::new(7, 1 << 32, EntryKind::Config, config.encode()),
        Entry::new(8, 1 << 32, EntryKind::Data, Bytes::from_static(b"kept/8")),
    ]);
    while synced.recv().unwrap().unwrap().index < 8 {}
    wal.close();
    assert!(start_at(node, 1).unwrap().is_empty(), "nothing is known to be committed");
    let status = node.status();
    assert_eq!((status.last_index, status.voters.len()), (8, 2));
    node.kill();
    assert!(SnapshotFiles::new(&node.options.dir, DiskKeys::default()).list().unwrap().is_empty());
}

#[test]
fn a_received_snapshot_that_the_log_contains_says_what_is_committed() {
    let mut cluster = Cluster::new("contained", 1);
    let node = &mut cluster.nodes[0];
    left_behind(node, LogPosition { term: 1, index: 4 }, true, false);
    assert_eq!(start_at(node, 1).unwrap(), ["old/2", "old/3", "old/4"]);
    assert_eq!(node.status().last_index, 6);
}

#[test]
fn a_member_whose_log_ends_below_its_own_snapshot_does_not_start() {
    for snapshot in [LogPosition { term: 1, index: 9 }, LogPosition { term: 2, index: 4 }] {
        let mut cluster = Cluster::new(&format!("loglost{}", snapshot.index), 1);
        let node = &mut cluster.nodes[0];
        left_behind(node, snapshot, false, false);
        for _ in 0..2 {
            let refused = start_at(node, 9);
            assert!(
                matches!(refused, Err(GroupError::Start(StartError::LogLost { last: 6, .. }))),
                "{refused:?}"
            );
        }
    }
}

#[test]
fn a_proposal_that_finds_the_machine_taken_is_sent_when_it_is_free() {
    let cluster = Cluster::started("stranded", 1);
    let (node, live) = (&cluster.nodes[0], &cluster.nodes[0].group().live);
    for _ in 0..100 {
        let before = live.hands.wal.last();
        live.with_machine(|_, _, _| {
            std::thread::scope(|scope| scope.spawn(|| node.propose()).join().unwrap());
        });
        assert!(live.hands.wal.last() > before, "it waits for the next event");
    }
}

#[test]
fn a_panic_in_the_machine_takes_the_member_out_on_whatever_thread_it_was() {
    let cluster = Cluster::started("halfway", 3);
    let broken = cluster.leader();
    let node = &cluster.nodes[broken];
    let live = &node.group().live;
    // As a session's thread does it, which the layer above catches.
    let step = || live.with_machine(|_, _, _| panic!("as the test wants it"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)).is_err());
    node.wait("the news", |node| !node.shared.fatal.lock().is_empty());
    node.wait("to be cut off", |node| node.shared.primary.lock().last() == Some(&false));
    assert_eq!(node.shared.fatal.lock().len(), 1);
    let refused = node.group().propose(1 << 40, Bytes::from_static(b"x"));
    assert!(matches!(refused, Err(GroupError::LogFailed(_))), "{refused:?}");
    let refused = node.group().barrier(common::PATIENCE);
    assert!(matches!(refused, Err(GroupError::LogFailed(_))), "{refused:?}");
    let rest: Vec<_> = (0..3).filter(|at| *at != broken).collect();
    let proposals: Vec<_> = rest.iter().map(|at| cluster.nodes[*at].propose()).collect();
    rest.iter().for_each(|at| cluster.nodes[*at].await_applied(&proposals));
}

#[test]
fn what_is_handed_in_while_the_caller_feeds_is_taken_in_when_it_has_fed() {
    const ROUNDS: u64 = 50;
    let cluster = Cluster::started("handed-in", 1);
    let core = &cluster.nodes[0].group().live.core;
    // Read before anything is taken in that waits.
    let last =
        || core.with(|machine, now_ms, _| machine.status(now_ms, LogFigures::default()).last_index);
    let taken_in = |round: &u64| {
        let before = last();
        core.with_feeding(|_, _, _| (), || core.hand_in((1 << 40) + round));
        last() > before
    };
    // Now and then another thread holds the machine, and takes it in a moment later.
    let taken_in = (0..ROUNDS).filter(taken_in).count() as u64;
    assert!(taken_in > ROUNDS * 9 / 10, "{taken_in}");
}
