//! Who passes for which member, where each has a key, and whose word counts.

use crate::lies::{message, rejected, says};
use crate::world::World;
use quorate_consensus::{KeyId, MemberId, MemberRole, MessageBody};
use quorate_group::{AskAnswer, Input, Order, Output};
use quorate_wire::{Admission, JoinRequest, Packet, PeerIdentity, Refusal, RefusalCode, Wish};

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

/// A learner calls the leader of so many voters an older state of itself.
fn called_an_older_state_by_a_learner(voters: usize) -> (World, usize) {
    let (mut world, _) = with_keys(voters);
    let at = world.leader();
    world.add(|at, options| {
        options.key = key(at);
        options.role = MemberRole::Learner;
    });
    while world.status(at).config.members.len() <= voters {
        world.run_ms(100);
    }
    let (learner, addr) = (world.nodes[voters].id, world.identity(voters).addr);
    let refusal = Refusal { code: RefusalCode::RolledBack, text: "an older state".into() };
    let answer = AskAnswer::Refused { refusal: refusal.clone(), key: key(voters) };
    world.step(at, Input::Refused { peer: learner, refusal, key: key(voters) });
    world.step(at, Input::Asked { addr, answer });
    (world, at)
}

#[test]
fn a_learner_stops_no_member_by_calling_it_an_older_state_of_itself() {
    let (mut world, at) = called_an_older_state_by_a_learner(3);
    assert!(world.nodes[at].fatal.is_empty(), "{:?}", world.nodes[at].fatal);
    assert!(world.status(at).disputed.is_some_and(|text| text.contains("no voter")));
}

/// It needs nobody's acknowledgement, so it would go on beside the group that has gone on from a later state.
#[test]
fn the_only_voter_believes_a_learner_that_it_is_an_older_state_of_itself() {
    let (world, at) = called_an_older_state_by_a_learner(1);
    assert!(!world.nodes[at].fatal.is_empty());
}

#[test]
fn a_name_that_is_too_long_comes_into_no_configuration() {
    let (mut world, _) = with_keys(3);
    let (at, long) = (world.leader(), "n".repeat(256));
    let member = world.identity((at + 1) % 3);
    for identity in [
        PeerIdentity { name: long.clone(), ..member.clone() },
        PeerIdentity { addr: long.clone(), ..member.clone() },
    ] {
        let refusal = world.introduces_itself(at, identity).expect_err("too long");
        assert!(refusal.text.contains("255 bytes"), "{}", refusal.text);
    }
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

/// Else it could propose in that member's name.
#[test]
fn nobody_is_admitted_with_an_id_whose_processes_could_be_those_of_a_member() {
    let (mut world, foreign) = with_keys(2);
    let leader = world.leader();
    let member = world.identity(1 - leader);
    let id = member.member.0;
    let request = JoinRequest { last_index: 0, blank: false, wish: Wish::default() };
    let mut admitted = |chosen: u128| {
        let (addr, name) = ("elsewhere".to_owned(), "other".to_owned());
        let guest =
            PeerIdentity { member: MemberId(chosen), key: foreign, addr, name, ..member.clone() };
        let mut out = Output::default();
        let machine = world.nodes[leader].machine.as_mut().unwrap();
        let admission = machine.admit(world.now_ms, guest, &request, &mut out);
        world.carry_out(leader, out);
        matches!(admission, Admission::Granted)
    };
    const INCARNATION: u128 = 1 << 32;
    for chosen in [id.wrapping_add(INCARNATION), id.wrapping_sub(7 * INCARNATION), INCARNATION] {
        assert!(!admitted(chosen), "{chosen:x}");
    }
    assert!(admitted(id.wrapping_add(INCARNATION + 1)));
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
