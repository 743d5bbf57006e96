//! How much of its log a member lets go of.

use crate::world::World;
use quorate_consensus::{Index, MemberRole, AHEAD_MAX};
use quorate_group::{Input, LogLevel, LogRoom, Notice, Output, Release};
use quorate_wire::Standing;

/// With these snapshots.
fn release(world: &mut World, at: usize, files: Vec<Index>) -> Option<Release> {
    let taken = Input::SnapshotTaken { needed: Index::MAX, files };
    let mut out = Output::default();
    world.nodes[at].machine.as_mut().unwrap().step(world.now_ms, taken, &mut out);
    out.release.take()
}

/// After another snapshot, the second one.
fn released(world: &mut World, at: usize) -> Release {
    let last = world.status(at).last_index;
    release(world, at, vec![last, last - 1]).expect("there are two snapshots")
}

#[test]
fn a_leader_keeps_what_a_member_that_lags_has_not_got_as_long_as_it_is_there() {
    let mut world = World::started(3);
    let leader = world.leader();
    let behind = (leader + 1) % 3;
    world.run_ms(1_000);
    let before = world.status(leader).last_index;
    let all = [(leader, behind), (behind, leader)];
    world.cut.extend(all);
    world.propose(leader, "what it does not get");
    world.run_ms(100);
    let last = world.status(leader).last_index;
    assert!(last > before);
    assert_eq!(released(&mut world, leader), Release { upto: last - 1, sent: before });
    let follower = (leader + 2) % 3;
    assert_eq!(released(&mut world, follower).sent, Index::MAX, "it sends nothing");
    // Its return is what retention is for.
    world.run_ms(1_000);
    let last = world.status(leader).last_index;
    assert_eq!(released(&mut world, leader).sent, last);
}

/// Two servers that say up to where they have passed the log, and a logger, with as many entries.
fn with_logger(passed: [Index; 2]) -> World {
    let mut world = World::started(2);
    world.add(|_, options| options.role = MemberRole::Logger);
    world.await_voters(3);
    (0..9).for_each(|_| world.propose(0, "of which it keeps some"));
    world.run_ms(200);
    for (at, index) in passed.into_iter().enumerate() {
        world.nodes[at].server = Some(Standing { synced: true, index, ..Standing::default() });
    }
    world
}

#[test]
fn a_logger_keeps_what_a_server_has_not_got_whatever_becomes_of_that() {
    // What a server has passed may not all be on its disk.
    let mut world = with_logger([9_000, AHEAD_MAX + 4]);
    let logger = 2;
    let last = world.status(0).last_index;
    let upto = |world: &mut World, at| {
        release(world, at, vec![last, last - 1, 5, 3]).map(|release| release.upto)
    };
    assert_eq!(upto(&mut world, logger), None, "no server has said what it has");
    world.run_ms(2_000);
    assert_eq!(upto(&mut world, logger), Some(3), "a snapshot that one has is up to there");
    world.kill(1);
    world.run_ms(5_000);
    assert_eq!(upto(&mut world, logger), Some(3), "it may return");
    assert_eq!(upto(&mut world, 0), Some(last - 1), "a server has the rows");
}

#[test]
fn a_logger_says_for_whom_it_keeps_its_log_long_before_it_has_no_room() {
    let (mut world, logger) = (with_logger([9_000, 3]), 2);
    world.run_ms(2_000);
    let last = world.status(0).last_index;
    assert_eq!(release(&mut world, logger, vec![last, last - 1]), None);
    let mut told = |percent| {
        let input = Input::LogRoom { room: LogRoom::Enough, warning: None, percent };
        let mut out = Output::default();
        world.nodes[logger].machine.as_mut().unwrap().step(world.now_ms, input, &mut out);
        out.notices.into_iter().any(|notice| match notice {
            Notice::Log(LogLevel::Warn, line) => line.contains("the part that n1 did not get yet"),
            _ => false,
        })
    };
    assert_eq!([40, 55, 56, 65].map(&mut told), [false, true, false, true]);
}
