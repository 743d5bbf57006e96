//! What a member says that cannot be: it changes nothing, and costs little.

use crate::world::World;
use bytes::Bytes;
use quorate_consensus::{
    EntryKind, KeyId, LogPosition, MemberId, Message, MessageBody, Proposal, SnapshotMeta,
};
use quorate_group::{Input, LogLevel, Notice, Order, Output, Received};
use quorate_wire::{LeaveAnswer, Packet, PeerIdentity, RefusalCode};

/// Else the next start puts it in the place of what is committed.
#[test]
fn a_snapshot_of_other_terms_than_what_is_committed_does_not_stay() {
    let mut world = World::started(3);
    let leader = world.leader();
    let status = world.status(leader);
    let at = (leader + 1) % 3;
    world.run_ms(1_000);
    let term = status.term;
    let received = |index, term_there| Received {
        from: status.member,
        term,
        meta: SnapshotMeta {
            last: LogPosition { index, term: term_there },
            config: status.config.clone(),
        },
    };
    for (term_there, stays) in [(term - 1, false), (term, true)] {
        // The log gets there while it is written.
        let received = received(world.status(at).last_index + 1, term_there);
        assert!(world.snapshot_arrives(at, &received));
        world.propose(leader, "a row");
        world.run_ms(1_000);
        assert_eq!(world.snapshot_stored(at, &received), stays);
        if !stays {
            world.step(at, Input::SnapshotNotStored(received));
        }
    }
    let index = world.status(at).last_index;
    assert_eq!(world.nodes[at].log.synced().index, index);
    for term_there in [term - 1, term] {
        let known = received(index, term_there);
        assert!(!world.snapshot_arrives(at, &known), "what is committed here is not written again");
    }
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

/// What a member says in the name of nobody but itself.
pub fn says(world: &mut World, at: usize, from: MemberId, packet: Packet) {
    world.step(at, Input::Packet { from, packet });
}

/// A message of the core.
pub fn message(world: &World, at: usize, from: MemberId, term: u64, body: MessageBody) -> Packet {
    Packet::Consensus(Message { from, to: world.nodes[at].id, term, body })
}

/// How often something of this kind did not count at this member.
pub fn rejected(world: &mut World, at: usize, kind: &str) -> u64 {
    let counts = world.status(at).rejected;
    counts.iter().find(|(known, _)| *known == kind).map_or(0, |(_, count)| *count)
}

#[test]
fn who_is_no_member_proposes_nothing_and_is_asked_for_nothing() {
    let mut world = World::started(3);
    let leader = world.leader();
    let stranger = MemberId(99);
    let before = world.status(leader);
    let proposal = Proposal::new(EntryKind::Data, Bytes::from_static(b"a row"));
    for packet in [
        Packet::Forward(vec![proposal]),
        Packet::ViewRefresh { number: before.view_number },
        Packet::WantVotes { votes: 9 },
    ] {
        says(&mut world, leader, stranger, packet);
    }
    world.run_ms(2_000);
    let after = world.status(leader);
    assert_eq!(after.last_index, before.last_index);
    assert_eq!(after.view_number, before.view_number);
    assert_eq!(rejected(&mut world, leader, "no_member"), 2);
    let flood = vec![Proposal::new(EntryKind::Data, Bytes::from(vec![0; 1 << 20])); 8];
    says(&mut world, leader, stranger, Packet::Forward(flood));
    assert_eq!(rejected(&mut world, leader, "too_much"), 1);
}

#[test]
fn nobody_leads_beside_a_leader_or_ends_its_term_without_a_vote() {
    let mut world = World::started(3);
    let leader = world.leader();
    let (at, term) = ((leader + 1) % 3, world.status(leader).term);
    let (other, stranger) = (world.nodes[(leader + 2) % 3].id, MemberId(99));
    let beat = || MessageBody::Heartbeat { commit: u64::MAX, round: 1 };
    let packet = message(&world, at, other, term, beat());
    says(&mut world, at, other, packet);
    assert_eq!(rejected(&mut world, at, "second_leader"), 1);
    for victim in [at, leader] {
        let packet = message(&world, victim, stranger, term + 1, beat());
        says(&mut world, victim, stranger, packet);
        assert_eq!(rejected(&mut world, victim, "no_voter"), 1);
        let packet = message(&world, victim, other, term + (1 << 60), beat());
        says(&mut world, victim, other, packet);
        assert_eq!(rejected(&mut world, victim, "leap"), 1);
    }
    world.run_ms(2_000);
    let status = world.status(leader);
    assert_eq!((status.term, status.is_leader), (term, true));
}

#[test]
fn a_snapshot_of_who_does_not_lead_is_not_even_written() {
    let mut world = World::started(3);
    let leader = world.leader();
    let (at, liar) = ((leader + 1) % 3, world.nodes[(leader + 2) % 3].id);
    let status = world.status(leader);
    for (from, term, kind) in
        [(liar, status.term, "second_leader"), (MemberId(99), status.term + 1, "no_voter")]
    {
        let mut out = Output::default();
        let machine = world.nodes[at].machine.as_mut().unwrap();
        assert!(!machine.awaits((from, term), 1, None, &mut out), "nor is it awaited");
        let last = LogPosition { index: status.last_index + 9, term };
        let meta = SnapshotMeta { last, config: status.config.clone() };
        assert!(!world.snapshot_arrives(at, &Received { from, term, meta }));
        assert_eq!(rejected(&mut world, at, kind), 2);
    }
    let machine = world.nodes[at].machine.as_mut().unwrap();
    let mut awaits = |bytes, room| {
        let leader = (status.member, status.term);
        machine.awaits(leader, bytes, room, &mut Output::default())
    };
    assert!(awaits(1 << 30, None) && awaits(1 << 30, Some(2 << 30)));
    // Without room for it that is no lie, and what to do about it is said.
    let mut out = Output::default();
    let machine = world.nodes[at].machine.as_mut().unwrap();
    assert!(!machine.awaits((status.member, status.term), 1 << 30, Some(3 << 20), &mut out));
    let says = |notice: &Notice| matches!(notice, Notice::Log(LogLevel::Error, line) if line.contains("3 MiB are free"));
    assert!(out.notices.iter().any(says), "{:?}", out.notices);
    assert_eq!(rejected(&mut world, at, "too_much"), 0);
}

#[test]
fn what_was_never_sent_is_not_committed_by_an_acknowledgement() {
    let mut world = World::started(3);
    let leader = world.leader();
    let liar = world.nodes[(leader + 1) % 3].id;
    let before = world.status(leader);
    for matched in [before.last_index + 1, u64::MAX] {
        let body = MessageBody::AppendReply { matched };
        let packet = message(&world, leader, liar, before.term, body);
        says(&mut world, leader, liar, packet);
    }
    assert_eq!(rejected(&mut world, leader, "never_sent"), 2);
    assert_eq!(world.status(leader).commit_index, before.commit_index);
}

#[test]
fn who_does_not_leave_is_not_told_that_it_has_left() {
    let mut world = World::started(3);
    let leader = world.leader();
    let (at, other) = ((leader + 1) % 3, world.nodes[(leader + 2) % 3].id);
    says(&mut world, at, other, Packet::LeaveAnswer(LeaveAnswer::Done));
    assert_eq!(rejected(&mut world, at, "unasked"), 1);
    world.order(at, Order::Leave, 10_000).unwrap();
    world.await_voters(2);
}

#[test]
fn a_member_that_is_flooded_with_lies_says_so_once_a_second() {
    let mut world = World::started(3);
    let leader = world.leader();
    let from = world.nodes[(leader + 1) % 3].id;
    for _ in 0..2_000 {
        says(&mut world, leader, from, Packet::StatusRequest);
        world.run_ms(1);
    }
    assert_eq!(rejected(&mut world, leader, "out_of_place"), 2_000);
    let lines = world.nodes[leader].lines.iter();
    let told = lines.filter(|line| line.contains("does not count")).count();
    assert!((2..=3).contains(&told), "{told} lines");
}

#[test]
fn a_member_that_was_rolled_back_at_its_address_is_recognized_by_who_heard_of_its_later_start() {
    let mut world = World::started(3);
    let at = (world.leader() + 1) % 3;
    let leader = world.leader();
    let identity = world.identity(at);
    let later = PeerIdentity { incarnation: identity.incarnation + 2, ..identity.clone() };
    assert_eq!(world.introduces_itself(leader, later), Ok(()));
    let former = PeerIdentity { incarnation: identity.incarnation + 1, ..identity };
    let refusal = world.introduces_itself(leader, former).unwrap_err();
    assert_eq!(refusal.code, RefusalCode::RolledBack, "{}", refusal.text);
}

#[test]
fn guests_without_end_do_not_get_connections_without_end() {
    let mut world = World::started(2);
    let leader = world.leader();
    let one = world.identity(1 - leader);
    let welcome = |world: &mut World, id| {
        let member = MemberId(id);
        world.introduces_itself(leader, PeerIdentity { member, ..one.clone() }).is_ok()
    };
    let taken = (1_000..1_100).filter(|id| welcome(&mut world, *id)).count();
    assert_eq!(taken, 64);
    assert!(welcome(&mut world, 1_000), "one that is there connects anew");
    for connection in 1..=100 {
        (1_000..1_100).for_each(|id| {
            world.step(leader, Input::IncomingClosed { peer: MemberId(id), connection });
        });
    }
    assert!(!welcome(&mut world, 2_000), "each of those that have gone still has its threads");
    world.run_ms(2_000);
    assert!(welcome(&mut world, 2_000), "they are forgotten");

    let mut world = World::started(2);
    let with = |id, key| PeerIdentity { member: MemberId(id), key, ..one.clone() };
    let name = KeyId::of_name([7; KeyId::NAME_BYTES]);
    for (first, key, taken) in [(1_000, KeyId([7; 32]), 4), (2_000, name, 20)] {
        let ids = first..first + 20;
        let welcome = ids.filter(|id| world.introduces_itself(0, with(*id, key)).is_ok());
        assert_eq!(welcome.count(), taken);
    }
}
