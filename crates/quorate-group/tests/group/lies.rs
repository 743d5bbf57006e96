//! What a member says that cannot be: it changes nothing, and costs little.

use crate::world::World;
use bytes::Bytes;
use quorate_consensus::{
    EntryKind, KeyId, LogPosition, MemberId, MemberRole, Message, MessageBody, Proposal,
    SnapshotMeta,
};
use quorate_group::{AskAnswer, Input, Order, Output, Received};
use quorate_wire::{
    Admission, JoinRequest, LeaveAnswer, Packet, PeerIdentity, Refusal, RefusalCode, Wish,
};

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

/// What a member says in the name of nobody but itself.
fn says(world: &mut World, at: usize, from: MemberId, packet: Packet) {
    world.step(at, Input::Packet { from, packet });
}

/// A message of the core.
fn message(world: &World, at: usize, from: MemberId, term: u64, body: MessageBody) -> Packet {
    Packet::Consensus(Message { from, to: world.nodes[at].id, term, body })
}

/// How often something of this kind did not count at this member.
fn rejected(world: &mut World, at: usize, kind: &str) -> u64 {
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
    assert!(!awaits(1 << 30, Some(1 << 30)), "there is no room for it");
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

/// Of the member at this place, in a group in which each has one.
fn key(at: usize) -> KeyId {
    KeyId([at as u8 + 1; 32])
}

/// A group in which each member has a key, and the key of nobody.
fn with_keys(count: usize) -> (World, KeyId) {
    (World::with(count, |at, options| options.key = key(at)), key(98))
}

#[test]
fn only_members_with_their_own_keys_say_that_one_is_an_older_state_of_itself() {
    let (mut world, foreign) = with_keys(3);
    let (at, stranger) = (world.leader(), MemberId(99));
    let member = world.identity((at + 1) % 3);
    let guest = PeerIdentity { member: stranger, key: foreign, ..member.clone() };
    world.introduces_itself(at, guest).expect("a guest");
    let refusal = Refusal { code: RefusalCode::RolledBack, text: "an older state".into() };
    let dialled = |peer, key| Input::Refused { peer, refusal: refusal.clone(), key };
    let asked = |addr: &str, key| Input::Asked {
        addr: addr.into(),
        answer: AskAnswer::Refused { refusal: refusal.clone(), key },
    };
    for lie in [
        dialled(stranger, foreign),
        dialled(member.member, foreign),
        dialled(stranger, member.key),
        asked("elsewhere", foreign),
        asked(&member.addr, foreign),
    ] {
        world.step(at, lie);
    }
    assert_eq!(rejected(&mut world, at, "no_member"), 3);
    assert!(world.nodes[at].fatal.is_empty(), "{:?}", world.nodes[at].fatal);
    let told = world.nodes[at].lines.iter().filter(|line| line.contains("an older state")).count();
    assert_eq!(told, 1, "once, what it means and what to do");
    assert!(world.status(at).disputed.is_some_and(|text| text.contains("empty")));
    world.order(at, Order::Switchover { to: None }, 10_000).unwrap();
    assert_eq!(world.status(at).disputed, None, "there is a leader that counts this member in");
    for (at, truth) in
        [(at, dialled(member.member, member.key)), ((at + 2) % 3, asked("elsewhere", member.key))]
    {
        world.step(at, truth);
        assert_eq!(world.nodes[at].fatal.len(), 1);
    }
}

#[test]
fn a_learner_stops_no_member_by_calling_it_an_older_state_of_itself() {
    let (mut world, _) = with_keys(3);
    let at = world.leader();
    world.add(|at, options| {
        options.key = key(at);
        options.role = MemberRole::Learner;
    });
    while world.status(at).config.members.len() < 4 {
        world.run_ms(100);
    }
    let (learner, addr) = (world.nodes[3].id, world.identity(3).addr);
    let refusal = Refusal { code: RefusalCode::RolledBack, text: "an older state".into() };
    let answer = AskAnswer::Refused { refusal: refusal.clone(), key: key(3) };
    world.step(at, Input::Refused { peer: learner, refusal, key: key(3) });
    world.step(at, Input::Asked { addr, answer });
    assert!(world.nodes[at].fatal.is_empty(), "{:?}", world.nodes[at].fatal);
    assert!(world.status(at).disputed.is_some_and(|text| text.contains("no voter")));
}

#[test]
fn only_members_say_that_another_one_is_not_where_it_was_looked_for() {
    let (world, foreign) = with_keys(3);
    let of = |at: usize| (world.nodes[at].id, world.identity(at).key);
    let ((_, own), (peer, key), (_, other)) = (of(0), of(1), of(2));
    let machine = world.nodes[0].machine.as_ref().unwrap();
    let shows = |code, keys: [KeyId; 4]| keys.map(|key| machine.shows_absence(peer, code, key));
    let keys = [key, own, other, foreign];
    assert_eq!(shows(RefusalCode::Isolated, keys), [true, false, false, false]);
    assert_eq!(shows(RefusalCode::OtherMember, keys), [true, true, true, false]);
    assert_eq!(shows(RefusalCode::Yourself, keys), [true, true, true, false]);
    assert_eq!(shows(RefusalCode::Busy, keys), [false; 4]);
    let nobody = MemberId(99);
    assert!(!machine.shows_absence(nobody, RefusalCode::Isolated, foreign));
    // Where nothing is shown, all are believed.
    let world = World::started(2);
    let machine = world.nodes[0].machine.as_ref().unwrap();
    assert!(machine.shows_absence(nobody, RefusalCode::Isolated, KeyId::default()));
}

#[test]
fn who_was_taken_for_a_member_before_that_was_known_is_not_heard_once_it_is() {
    let (mut world, foreign) = with_keys(2);
    let leader = world.leader();
    let member = 1 - leader;
    let honest = world.identity(member);
    world.add(|at, options| options.key = key(at));
    world.cut.extend([(member, 2), (2, member)]);
    let addr = "elsewhere".to_owned();
    let pretender = PeerIdentity { key: foreign, addr, ..honest.clone() };
    world.introduces_itself(2, pretender.clone()).expect("nobody is known yet");
    says(&mut world, 2, honest.member, Packet::Ping);
    assert_eq!(rejected(&mut world, 2, "other_key"), 0);
    world.until("the configuration", |world| {
        let machine = world.nodes[2].machine.as_ref().unwrap();
        machine.accepts(&pretender).is_err()
    });
    let vote = MessageBody::VoteReply { granted: true };
    let vote = message(&world, 2, honest.member, 9, vote);
    says(&mut world, 2, honest.member, vote);
    assert_eq!(rejected(&mut world, 2, "other_key"), 1);
    let mut machine = |from, term| {
        let machine = world.nodes[2].machine.as_mut().unwrap();
        machine.awaits((from, term), 1, None, &mut Output::default())
    };
    assert!(!machine(honest.member, 1 << 20), "nor is a snapshot of it awaited");
    // The member itself is.
    world.cut.clear();
    world.await_voters(3);
    world.propose(member, "a row");
    world.await_applied(&[0, 1, 2], &["a row"]);
    says(&mut world, 2, honest.member, Packet::Ping);
    assert_eq!(rejected(&mut world, 2, "other_key"), 2);
}

#[test]
fn who_left_and_comes_back_with_another_key_is_no_pretender() {
    const WARNING: &str = "not listened to any more";
    let (mut world, other) = with_keys(2);
    let member = world.leader();
    let rest = 1 - member;
    let identity = PeerIdentity { key: other, incarnation: 2, ..world.identity(member) };
    world.order(member, Order::Leave, 10_000).unwrap();
    world.kill(member);
    world.run_ms(500);
    // It asks for admission before it connects.
    let request = JoinRequest { last_index: 0, blank: false, wish: Wish::default() };
    let mut out = Output::default();
    let machine = world.nodes[rest].machine.as_mut().unwrap();
    machine.admit(world.now_ms, identity.clone(), &request, &mut out);
    world.carry_out(rest, out);
    world.until("its admission", |world| {
        let machine = world.nodes[rest].machine.as_ref().unwrap();
        machine.accepts(&PeerIdentity { key: key(member), ..identity.clone() }).is_err()
    });
    assert!(!world.nodes[rest].lines.iter().any(|line| line.contains(WARNING)));
    assert!(world.introduces_itself(rest, identity).is_ok());
}

#[test]
fn a_connection_that_was_welcome_before_its_key_was_known_does_not_begin() {
    let (mut world, foreign) = with_keys(2);
    let pretender = PeerIdentity { key: foreign, addr: "elsewhere".into(), ..world.identity(1) };
    world.kill(1);
    world.run_ms(1_000);
    world.step(0, Input::Connected(pretender));
    let peers = world.status(0).peers;
    assert!(peers.iter().all(|peer| !peer.connected), "{peers:?}");
}

#[test]
fn who_greeted_as_somebody_who_is_a_member_by_now_is_not_admitted_in_its_place() {
    let (mut world, foreign) = with_keys(2);
    let leader = world.leader();
    let member = world.identity(1 - leader);
    let request = JoinRequest { last_index: 0, blank: false, wish: Wish::default() };
    let addr = "elsewhere".to_owned();
    let pretender = PeerIdentity { key: foreign, addr, ..member.clone() };
    for at in [0, 1] {
        let mut out = Output::default();
        let machine = world.nodes[at].machine.as_mut().unwrap();
        let admission = machine.admit(world.now_ms, pretender.clone(), &request, &mut out);
        assert!(matches!(admission, Admission::Refused { .. }), "{admission:?}");
    }
    world.run_ms(1_000);
    assert_eq!(world.status(leader).config.members[&member.member].addr, member.addr);
}

/// It still decides.
#[test]
fn nobody_passes_for_a_member_that_is_being_removed() {
    let (mut world, foreign) = with_keys(2);
    let leader = world.leader();
    let leaver = 1 - leader;
    let identity = world.identity(leaver);
    world.cut.extend([(0, 1), (1, 0)]);
    world.begin(leader, Order::Remove { name: format!("n{leaver}") }, 1_000);
    world.run_ms(50);
    let config = world.status(leader).config;
    assert!(config.is_joint() && !config.members.contains_key(&identity.member));
    let incarnation = identity.incarnation + 1;
    let identity = PeerIdentity { incarnation, ..identity };
    let pretender = PeerIdentity { key: foreign, ..identity.clone() };
    let refusal = world.introduces_itself(leader, pretender).unwrap_err();
    assert_eq!(refusal.code, RefusalCode::Stale, "{}", refusal.text);
    assert_eq!(world.introduces_itself(leader, identity), Ok(()));
}

#[test]
fn nor_do_they_at_a_node_that_knows_no_member_yet() {
    let mut world = World::with(1, |_, _| {});
    let one = world.identity(0);
    world.add(|_, _| {});
    world.cut.extend([(0, 1), (1, 0)]);
    let guests = (1_000..1_400).map(|id| PeerIdentity { member: MemberId(id), ..one.clone() });
    let taken = guests.filter(|guest| world.introduces_itself(1, guest.clone()).is_ok());
    assert_eq!(taken.count(), 256 + 64);
}
