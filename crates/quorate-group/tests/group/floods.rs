//! What a member may say, said again and again: it costs the others little, and nobody waits for it.

use crate::audit::invented;
use crate::lies::{rejected, says};
use crate::world::World;
use quorate_consensus::{Entry, EntryKind, KeyId, MemberId, MemberRole, Proposal};
use quorate_group::{Alteration, Note, Order, Output};
use quorate_wire::{Admission, JoinRequest, Packet, PeerIdentity, Wish};

/// A group of three, its leader, and a member that does not lead.
fn group() -> (World, usize, MemberId) {
    let mut world = World::started(3);
    let leader = world.leader();
    let from = world.nodes[(leader + 1) % 3].id;
    (world, leader, from)
}

#[test]
fn wishes_for_views_are_met_one_a_second() {
    let (mut world, leader, from) = group();
    let before = world.status(leader).view_number;
    for _ in 0..1_000 {
        says(&mut world, leader, from, Packet::ViewRefresh { number: u64::MAX });
        world.run_ms(10);
    }
    let views = world.status(leader).view_number - before;
    assert!((10..=20).contains(&views), "{views} views in ten seconds");
}

#[test]
fn notes_are_taken_one_a_second() {
    let (mut world, leader, from) = group();
    for number in 1..=2_000 {
        let packet = Packet::Note(Proposal::new(EntryKind::Note, invented(from, number)));
        says(&mut world, leader, from, packet);
        world.run_ms(5);
    }
    let is_its = |entry: &&Entry| {
        entry.kind == EntryKind::Note
            && Note::decode(entry.data.clone()).is_ok_and(|note| note.id().member == from)
    };
    let noted = world.nodes[leader].log.entries.iter().filter(is_its).count();
    assert!((256..=280).contains(&noted), "{noted} notes in ten seconds");
    assert_eq!(rejected(&mut world, leader, "too_much"), 2_000 - noted as u64);
}

#[test]
fn who_changes_its_mind_each_time_keeps_no_order_waiting() {
    let (mut world, leader, from) = group();
    let changes = |world: &World| {
        let entries = world.nodes[leader].log.entries.iter();
        entries.filter(|entry| entry.kind == EntryKind::Config).count()
    };
    let before = changes(&world);
    for votes in [2, 3].into_iter().cycle().take(500) {
        says(&mut world, leader, from, Packet::WantVotes { votes });
        world.run_ms(20);
    }
    let votes = changes(&world) - before;
    assert!((20..=40).contains(&votes), "{votes} entries in ten seconds, two for each change");
    assert!(rejected(&mut world, leader, "too_much") > 400);
    let name = world.identity(leader).name;
    world
        .order(
            leader,
            Order::Alter {
                name,
                alteration: Alteration { priority: Some(80), ..Alteration::default() },
            },
            1_000,
        )
        .unwrap();
}

#[test]
fn learners_that_have_nothing_yet_count_among_those_that_come_in() {
    let (mut world, leader, _) = group();
    let known = world.identity(leader);
    let wish = Wish { role: MemberRole::Learner, ..Wish::default() };
    let request = JoinRequest { last_index: 0, blank: true, wish };
    // Of less, they have nearly all from the beginning.
    (0..1_100).for_each(|_| world.propose(leader, "a row"));
    let mut admitted = 0;
    for number in 0..20_u64 {
        let guest = PeerIdentity {
            member: MemberId((1_000 + number).into()),
            incarnation: 1,
            name: format!("learner{number}"),
            addr: format!("nowhere:{number}"),
            key: KeyId::default(),
            ..known.clone()
        };
        world.introduces_itself(leader, guest.clone()).unwrap();
        let mut out = Output::default();
        let machine = world.nodes[leader].machine.as_mut().unwrap();
        let admission = machine.admit(0, guest, &request, &mut out);
        world.carry_out(leader, out);
        world.run_ms(50);
        match admission {
            Admission::Granted => admitted += 1,
            Admission::Later { reason } => {
                assert!(admitted == 16 && reason.contains("are being admitted"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(admitted, 16);
}
