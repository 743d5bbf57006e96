//! What a member says that cannot be: it changes nothing, and costs little.

use crate::world::World;
use quorate_consensus::{LogPosition, SnapshotMeta};
use quorate_group::{Input, Received};
use quorate_wire::Packet;

/// Else the next start puts it in the place of what is committed.
#[test]
fn a_snapshot_of_other_terms_than_what_is_committed_does_not_stay() {
    let mut world = World::started(3);
    let leader = world.leader();
    let status = world.status(leader);
    let at = (leader + 1) % 3;
    world.run_ms(1_000);
    let (index, term) = (world.status(at).last_index, status.term);
    let received = |term_there| Received {
        from: status.member,
        term,
        meta: SnapshotMeta {
            last: LogPosition { index, term: term_there },
            config: status.config.clone(),
        },
    };
    for (term_there, stays) in [(term - 1, false), (term, true)] {
        let received = received(term_there);
        assert!(world.snapshot_arrives(at, &received));
        assert_eq!(world.snapshot_stored(at, &received), stays);
        if !stays {
            world.step(at, Input::SnapshotNotStored(received));
        }
    }
    assert_eq!(world.nodes[at].log.synced().index, index);
}

#[test]
fn a_wish_for_a_view_that_is_never_reached_is_not_met_for_ever() {
    let mut world = World::started(3);
    let leader = world.leader();
    let (from, before) = (world.nodes[(leader + 1) % 3].id, world.status(leader).view_number);
    let packet = Packet::ViewRefresh { number: u64::MAX };
    world.step(leader, Input::Packet { from, packet });
    world.run_ms(10_000);
    let views = world.status(leader).view_number - before;
    assert!((1..=20).contains(&views), "{views} views");
}
