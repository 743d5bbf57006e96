//! How much of its log a member lets go of.

use crate::world::World;
use quorate_consensus::Index;
use quorate_group::{Input, Output, Release};

/// After another snapshot, the second one.
fn released(world: &mut World, at: usize) -> Release {
    let (now_ms, last) = (world.now_ms, world.status(at).last_index);
    let taken = Input::SnapshotTaken { needed: Index::MAX, files: vec![last, last - 1] };
    let mut out = Output::default();
    world.nodes[at].machine.as_mut().unwrap().step(now_ms, taken, &mut out);
    out.release.take().expect("there are two snapshots")
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
