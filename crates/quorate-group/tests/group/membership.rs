use crate::world::World;
use quorate_consensus::{LogPosition, MemberId, Message, MessageBody, SnapshotMeta};
use quorate_group::{Done, Input, Order, OrderError, Output, Received};
use quorate_wire::{Hello, Packet, PeerIdentity, RefusalCode, Want};

#[test]
fn members_are_admitted_one_after_the_other_and_apply_the_same() {
    let mut world = World::started(5);
    (0..5).for_each(|at| world.propose(at, &format!("from {at}")));
    let all = ["from 0", "from 1", "from 2", "from 3", "from 4"];
    world.await_applied(&[0, 1, 2, 3, 4], &all);
    for at in 1..5 {
        assert_eq!(world.nodes[at].applied, world.nodes[0].applied);
        assert_eq!(world.nodes[at].views.last(), world.nodes[0].views.last());
    }
    let order: Vec<_> =
        world.nodes[0].views.last().unwrap().members.iter().map(|m| m.id.0).collect();
    assert_eq!(order, [1, 2, 3, 4, 5], "in the order in which they joined");
}

#[test]
fn who_leaves_is_out_of_configuration_and_view_and_may_return() {
    let mut world = World::started(3);
    assert_eq!(world.order(2, Order::Leave, 5_000), Ok(Done::Nothing));
    world.kill(2);
    world.await_view(&[0, 1]);
    world.start(2);
    world.await_view(&[0, 1, 2]);
    let leader = world.leader();
    assert_eq!(world.order(leader, Order::Leave, 5_000), Ok(Done::Nothing), "the leader, too");
    world.kill(leader);
    let rest: Vec<_> = (0..3).filter(|at| *at != leader).collect();
    world.await_view(&rest);
    world.propose(rest[0], "later");
    world.await_applied(&rest, &["later"]);
}

#[test]
fn the_last_member_just_stops() {
    let mut world = World::started(1);
    assert_eq!(world.order(0, Order::Leave, 1_000), Ok(Done::Nothing));
    assert!(world.nodes[0].lines.iter().any(|line| line.contains("the last member")));
}

#[test]
fn a_voter_gone_for_long_is_expelled_and_admitted_again() {
    let mut world = World::with(3, |_, options| options.expel_ms = Some(2_000));
    let leader = world.leader();
    let gone = (leader + 1) % 3;
    let rest: Vec<_> = (0..3).filter(|at| *at != gone).collect();
    world.kill(gone);
    world.await_view(&rest);
    assert_eq!(world.status(leader).voters.len(), 3, "only silent");
    world.await_voters(2);
    world.start(gone);
    world.await_view(&[0, 1, 2]);
}

/// Its log ends in the middle of a change to itself alone, which the others never saw.
#[test]
fn who_would_have_been_the_whole_group_asks_for_admission_like_any() {
    let mut world = World::started(2);
    let leader = world.leader();
    let other = 1 - leader;
    world.order(other, Order::AllowAlone(true), 0).unwrap();
    world.cut.extend([(0, 1), (1, 0)]);
    world.begin(leader, Order::Remove { name: format!("n{other}") }, 1_000);
    world.run_ms(50);
    assert!(world.status(leader).config.is_joint());
    world.kill(leader);
    world.cut.clear();
    world.propose(other, "alone");
    world.await_applied(&[other], &["alone"]);
    // It forgets that it has to tell the other one so.
    world.kill(other);
    world.start(other);
    world.await_voters(1);
    world.start(leader);
    world.await_applied(&[leader], &["alone"]);
    world.await_view(&[0, 1]);
}

/// Nothing is decided without it, though it is no member any more.
#[test]
fn who_only_decides_until_a_change_is_complete_is_dialled_after_a_restart() {
    let mut world = World::started(2);
    let leader = world.leader();
    let other = 1 - leader;
    world.cut.extend([(0, 1), (1, 0)]);
    world.begin(leader, Order::Remove { name: format!("n{other}") }, 1_000);
    world.run_ms(50);
    world.kill(leader);
    world.start(leader);
    // Longer than any stranger is remembered.
    world.run_ms(2_000);
    assert!(world.status(leader).config.is_joint());
    assert!(world.nodes[leader].dials.contains(&other));
    world.cut.clear();
    world.propose(leader, "later");
    world.await_applied(&[leader], &["later"]);
}

#[test]
fn a_node_of_another_group_is_refused() {
    let mut world = World::started(1);
    let mut from = world.nodes[0].machine.as_ref().unwrap().identity();
    (from.member, from.group_name) = (MemberId(9), "other".into());
    let hello = Hello { versions: (1, u16::MAX), want: Want::Join, from, expects: None };
    let now_ms = world.now_ms;
    let machine = world.nodes[0].machine.as_mut().unwrap();
    let greeted = machine.greet(now_ms, &hello, &mut Output::default());
    assert_eq!(greeted.unwrap_err().code, RefusalCode::OtherGroup);
}

#[test]
fn an_operator_is_greeted_by_no_machine() {
    let mut world = World::started(1);
    let from = world.nodes[0].machine.as_ref().unwrap().identity();
    let from = PeerIdentity { member: MemberId(9), ..from };
    let hello = Hello { versions: (1, u16::MAX), want: Want::Operator, from, expects: None };
    let now_ms = world.now_ms;
    let machine = world.nodes[0].machine.as_mut().unwrap();
    let greeted = machine.greet(now_ms, &hello, &mut Output::default());
    assert_eq!(greeted.unwrap_err().code, RefusalCode::Forbidden);
}

#[test]
fn who_has_nobody_to_ask_is_told_at_the_deadline() {
    let mut world = World::started(2);
    world.kill(0);
    world.kill(1);
    world.nodes[1].wipe(MemberId(99));
    world.start(1);
    let answer = world.order(1, Order::AwaitJoined, 500);
    let Err(OrderError::NotJoined { reason, .. }) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("node0"), "{reason}");
}

/// Else the leader would send the log from its beginning beside the snapshot.
#[test]
fn entries_after_a_snapshot_that_is_being_written_are_not_refused() {
    let mut world = World::started(2);
    let leader = world.leader();
    let follower = 1 - leader;
    let (from, term) = (world.status(leader).member, world.status(leader).term);
    let to = world.status(follower).member;
    let prev = LogPosition { index: 1_000, term };
    let probe = Message {
        from,
        to,
        term,
        body: MessageBody::Append { prev, entries: Vec::new(), commit: 0 },
    };
    let answered = |world: &mut World| {
        let now_ms = world.now_ms;
        let machine = world.nodes[follower].machine.as_mut().unwrap();
        let mut out = Output::default();
        let packet = Packet::Consensus(probe.clone());
        machine.step(now_ms, Input::Packet { from, packet }, &mut out);
        let refuses = |message: &Message| matches!(message.body, MessageBody::AppendReject { .. });
        out.effects.messages.iter().any(refuses)
    };
    let meta = SnapshotMeta { last: prev, ..SnapshotMeta::default() };
    let received = Received { from, term, meta };
    assert!(answered(&mut world));
    assert!(world.snapshot_arrives(follower, &received));
    assert!(!answered(&mut world));
    world.step(follower, Input::SnapshotNotStored(received.clone()));
    assert!(answered(&mut world));
    assert!(world.snapshot_arrives(follower, &Received { term: term + 1, ..received }));
    assert!(answered(&mut world), "the log of another term");
}

#[test]
fn what_a_process_wanted_that_has_ended_is_not_done_to_the_next_one() {
    let mut world = World::started(3);
    let leader = world.leader();
    let (silent, leaver) = ((leader + 1) % 3, (leader + 2) % 3);
    // Nobody is removed for a while: whether the third one lives is not clear.
    world.cut.insert((silent, leader));
    world.begin(leaver, Order::Leave, 5_000);
    world.run_ms(20);
    world.kill(leaver);
    world.start(leaver);
    world.run_ms(600);
    world.cut.clear();
    world.await_view(&[0, 1, 2]);
    world.await_voters(3);
    let removed =
        world.nodes.iter().flat_map(|node| &node.lines).find(|l| l.contains("is removed"));
    assert_eq!(removed, None);
}

#[test]
fn nobody_is_admitted_in_place_of_a_member_without_which_nothing_is_decided() {
    let mut world = World::started(2);
    world.kill(1);
    world.nodes[1].wipe(MemberId(9));
    world.start(1);
    let answer = world.order(1, Order::AwaitJoined, 100);
    let Err(OrderError::NotJoined { reason, .. }) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("no majority"), "{reason}");
    // A change that it cannot commit would bind it: it could not even go on alone.
    let config = world.status(0).config;
    assert!(!config.is_joint() && config.members.len() == 2, "{config:?}");
}
