use crate::world::World;
use quorate_consensus::{LogPosition, Message, MessageBody, SnapshotMeta};
use quorate_group::{Input, Order, OrderError, Received};
use quorate_wire::Packet;

#[test]
fn a_dead_leader_is_replaced_and_its_followers_proposals_are_kept() {
    let mut world = World::started(3);
    let leader = world.leader();
    let rest: Vec<_> = (0..3).filter(|at| *at != leader).collect();
    world.kill(leader);
    world.propose(rest[0], "kept");
    world.await_applied(&rest, &["kept"]);
    world.await_view(&rest);
    world.start(leader);
    world.await_view(&[0, 1, 2]);
    world.await_applied(&[leader], &["kept"]);
}

#[test]
fn a_minority_is_told_so_and_sees_a_view_when_it_is_back() {
    let mut world = World::started(3);
    let cut = (world.leader() + 1) % 3;
    let before = world.nodes[cut].views.len();
    for other in (0..3).filter(|at| *at != cut) {
        world.cut.extend([(cut, other), (other, cut)]);
    }
    world.until("the loss", |world| world.nodes[cut].primary.last() == Some(&false));
    world.propose(cut, "waits");
    world.cut.clear();
    world.await_applied(&[0, 1, 2], &["waits"]);
    world.until("contact", |world| world.nodes[cut].primary.last() == Some(&true));
    world.until("a view", |world| world.nodes[cut].views.len() > before);
}

#[test]
fn one_of_two_goes_on_alone_when_the_other_process_is_gone() {
    let mut world = World::started(2);
    world.order(0, Order::AllowAlone(true), 0).unwrap();
    world.kill(1);
    world.propose(0, "alone");
    world.await_applied(&[0], &["alone"]);
    world.await_view(&[0]);
    world.start(1);
    world.await_view(&[0, 1]);
    world.await_applied(&[1], &["alone"]);
}

#[test]
fn one_of_two_that_is_only_cut_off_does_not_go_on_alone() {
    let mut world = World::started(2);
    for at in 0..2 {
        world.order(at, Order::AllowAlone(true), 0).unwrap();
    }
    world.cut.extend([(0, 1), (1, 0)]);
    world.propose(0, "waits");
    world.run_ms(5_000);
    assert!(world.nodes.iter().all(|node| node.applied.is_empty()));
    let refused = world.order(0, Order::GoOnAlone, 0);
    assert!(matches!(refused, Err(OrderError::NotAlone { .. })), "{refused:?}");
}

#[test]
fn who_was_started_alone_has_no_right_to_go_on() {
    let mut world = World::started(2);
    world.kill(0);
    world.kill(1);
    world.start(0);
    world.order(0, Order::AllowAlone(true), 0).unwrap();
    world.run_ms(5_000);
    let refused = world.order(0, Order::GoOnAlone, 0);
    let Err(OrderError::NotAlone { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("has not been in the group since"), "{reason}");
}

#[test]
fn an_isolated_member_is_left_behind_and_has_no_right_to_go_on() {
    let mut world = World::started(2);
    for at in 0..2 {
        world.order(at, Order::AllowAlone(true), 0).unwrap();
    }
    world.order(1, Order::Isolate(true), 0).unwrap();
    world.propose(0, "without it");
    world.await_applied(&[0], &["without it"]);
    assert_eq!(world.nodes[1].primary.last(), Some(&false));
    assert!(world.order(1, Order::GoOnAlone, 0).is_err());
    world.order(1, Order::Isolate(false), 0).unwrap();
    world.await_view(&[0, 1]);
    world.await_applied(&[1], &["without it"]);
}

/// The other one's new process is in a view, so it may go on alone once this one is gone.
#[test]
fn a_refusal_of_before_the_others_new_process_counts_no_more() {
    let mut world = World::started(3);
    let leader = world.leader();
    let (one, other) = ((leader + 1) % 3, (leader + 2) % 3);
    world.kill(other);
    world.await_view(&[one.min(leader), one.max(leader)]);
    world.cut.extend([(one, other), (other, one)]);
    world.start(other);
    world.await_view(&[0, 1, 2]);
    world.order(leader, Order::Remove { name: format!("n{leader}") }, 5_000).unwrap();
    world.until("the loss", |world| world.nodes[one].primary.last() == Some(&false));
    assert_eq!(world.status(one).config.members.len(), 2);
    let refused = world.order(one, Order::GoOnAlone, 0);
    let Err(OrderError::NotAlone { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("its process may be running"), "{reason}");
    world.cut.clear();
    world.kill(other);
    world.run_ms(1_000);
    world.order(one, Order::GoOnAlone, 0).unwrap();
    world.propose(one, "alone");
    world.await_applied(&[one], &["alone"]);
}

#[test]
fn a_member_whose_log_fails_says_nothing_any_more() {
    let mut world = World::started(3);
    let leader = world.leader();
    let rest: Vec<_> = (0..3).filter(|at| *at != leader).collect();
    world.step(leader, Input::LogFailed("no space".into()));
    world.step(leader, Input::LogFailed("no space".into()));
    world.propose(rest[0], "on");
    world.await_applied(&rest, &["on"]);
    world.await_view(&rest);
    assert_eq!(world.nodes[leader].fatal.len(), 1);
    assert_eq!(world.nodes[leader].primary.last(), Some(&false));
}

fn force(names: &[&str]) -> Order {
    let keep = names.iter().map(|name| name.to_string()).collect();
    Order::ForceQuorum { keep, reason: "the others burnt".into() }
}

/// A group of four of which `leader` and one more are lost; the two that are left, and a snapshot that
/// the leader had sent.
fn half_lost(world: &mut World) -> ([usize; 2], Received) {
    let leader = world.leader();
    let status = world.status(leader);
    let last = LogPosition { index: status.last_index + 100, term: status.term };
    let meta = SnapshotMeta { last, config: status.config };
    let received = Received { from: status.member, term: status.term, meta };
    let rest: Vec<_> = (0..4).filter(|at| *at != leader).collect();
    ([rest[0], rest[1]], received)
}

/// Else its next start finds what the lost ones had committed, beside a log that goes on without it.
#[test]
fn who_is_writing_a_leaders_snapshot_has_no_part_in_giving_up_a_majority() {
    let mut world = World::started(4);
    let ([one, other], received) = half_lost(&mut world);
    assert!(world.snapshot_arrives(one, &received));
    for at in (0..4).filter(|at| ![one, other].contains(at)) {
        world.kill(at);
    }
    world.run_ms(1_000);
    let names = [format!("n{one}"), format!("n{other}")];
    let order = || force(&[&names[0], &names[1]]);
    for (at, says) in [(one, "is being written here"), (other, "must not be writing a snapshot")] {
        let refused = world.order(at, order(), 500);
        let Err(OrderError::Forced { reason, .. }) = refused else { panic!("{refused:?}") };
        assert!(reason.contains(says), "{reason}");
        assert_eq!(world.status(one).config.members.len(), 4);
    }
    world.step(one, Input::SnapshotNotStored(received.clone()));
    world.order(other, order(), 5_000).unwrap();
    world.await_view(&[one.min(other), one.max(other)]);
    // What of it was still on its way is not even written.
    assert!(!world.snapshot_arrives(one, &received));
}

/// It decides by the membership before, and may have what those kept have not.
#[test]
fn whom_an_uncommitted_change_removes_is_not_given_up_in_silence() {
    let mut world = World::started(4);
    let one = world.leader();
    let other = (one + 1) % 4;
    let (name, removed) = (format!("n{one}"), format!("n{other}"));
    let lost: Vec<_> = (0..4).filter(|at| ![one, other].contains(at)).collect();
    for at in &lost {
        world.cut.extend([(one, *at), (*at, one), (other, *at), (*at, other)]);
    }
    world.begin(one, Order::Remove { name: removed.clone() }, 1_000);
    world.run_ms(50);
    lost.iter().for_each(|at| world.kill(*at));
    world.run_ms(5_000);
    assert_eq!(world.status(one).config.members.len(), 3);
    let refused = world.order(one, force(&[&name]), 500);
    let Err(OrderError::Forced { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains(&format!("{removed} is to be given up, but lives")), "{reason}");
    world.order(one, force(&[&name, &removed]), 5_000).unwrap();
    world.await_view(&[one.min(other), one.max(other)]);
}

#[test]
fn a_snapshot_that_the_core_refuses_does_not_stay() {
    let mut world = World::started(4);
    let ([one, _], received) = half_lost(&mut world);
    assert!(world.snapshot_arrives(one, &received));
    world.kill((0..4).find(|at| world.nodes[*at].id == received.from).unwrap());
    world.run_ms(50);
    world.leader();
    world.until("another term", |world| world.nodes[one].leaders.len() > 2);
    assert!(world.status(one).term > received.term);
    assert!(!world.snapshot_stored(one, &received));
    assert!(world.nodes[one].log.synced().index < received.meta.last.index);
}

#[test]
fn members_whose_file_of_terms_says_the_last_ones_say_so_and_are_repaired_by_force() {
    let mut world = World::started(3);
    world.propose(0, "before");
    world.await_applied(&[0, 1, 2], &["before"]);
    for at in 0..3 {
        world.kill(at);
        world.nodes[at].log.damage_term((1 << 62) - 2);
    }
    for at in 0..3 {
        world.start(at);
    }
    world.run_ms(5_000);
    for at in 0..3 {
        assert!(world.nodes[at].lines.iter().any(|line| line.contains("force-quorum")));
        assert_eq!(world.status(at).leader, None, "nobody can be elected");
    }
    let longest = (0..3).max_by_key(|at| world.nodes[*at].log.synced()).unwrap();
    world.order(longest, force(&["n0", "n1", "n2"]), 5_000).unwrap();
    world.propose(1, "after");
    world.await_applied(&[0, 1, 2], &["before", "after"]);
    for at in 0..3 {
        world.kill(at);
        world.start(at);
    }
    world.propose(2, "later");
    world.await_applied(&[0, 1, 2], &["later"]);
}

/// Else its log goes on without them, and its database with them.
#[test]
fn who_has_commits_that_its_log_lost_has_no_part_in_giving_up_a_majority() {
    let mut world = World::started(4);
    let ([one, other], _) = half_lost(&mut world);
    for at in (0..4).filter(|at| ![one, other].contains(at)) {
        world.kill(at);
    }
    world.run_ms(1_000);
    world.step(one, Input::Unlogged(true));
    let names = [format!("n{one}"), format!("n{other}")];
    let order = || force(&[&names[0], &names[1]]);
    for (at, says) in [(one, "commits that its log has not"), (other, "nor have a database")] {
        let refused = world.order(at, order(), 500);
        let Err(OrderError::Forced { reason, .. }) = refused else { panic!("{refused:?}") };
        assert!(reason.contains(says), "{reason}");
        assert_eq!(world.status(one).config.members.len(), 4);
    }
    let lines = &world.nodes[one].lines;
    assert!(lines.iter().any(|line| line.contains("not answered: its database")), "{lines:?}");
    // Whoever asks again and again fills no log.
    let told = |world: &World| {
        world.nodes[one].lines.iter().filter(|line| line.contains("not answered")).count()
    };
    let before = told(&world);
    let (from, to) = (world.nodes[other].id, world.nodes[one].id);
    let body = MessageBody::ForcedVote { last: LogPosition::default() };
    let packet = Packet::Consensus(Message { from, to, term: 1, body });
    for _ in 0..1_000 {
        world.step(one, Input::Packet { from, packet: packet.clone() });
    }
    assert!(told(&world) <= before + 1, "{} lines", told(&world) - before);
    world.step(one, Input::Unlogged(false));
    world.order(other, order(), 5_000).unwrap();
    world.await_view(&[one.min(other), one.max(other)]);
}
