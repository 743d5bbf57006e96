use crate::world::World;
use bytes::Bytes;
use quorate_consensus::{EntryKind, MemberId, Proposal, Rules};
use quorate_group::{Author, Input, Mandate, Note, NoteId, Order, OrderNote, OrderTaken};
use quorate_wire::Packet;

fn removal(name: &str) -> Order {
    Order::Remove { name: name.into() }
}

/// The lines of the member that took orders.
fn lines(world: &World, at: usize) -> Vec<&str> {
    let lines = world.nodes[at].lines.iter().map(String::as_str);
    lines.filter(|line| line.starts_with("order: ")).collect()
}

#[test]
fn what_operators_order_is_noted_on_every_member() {
    let mut world = World::started(3);
    let leader = world.leader();
    let (to, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let order = Order::Switchover { to: Some(format!("n{to}")) };
    world.begin_by(leader, "root@localhost", order, 5_000);
    let notes = world.await_notes(&[0, 1, 2], 1);
    let OrderNote { taken, done, outcome } = &notes[0];
    assert!(*done && *outcome == format!("n{to} leads"), "{outcome}");
    assert_eq!(taken.node, format!("n{leader}"));
    assert_eq!(taken.what, format!("switchover to n{to}"));
    assert_eq!(taken.mandate.author.name, "root@localhost");
    assert!(taken.mandate.given_ms >= 1_000_000);
    let said = lines(&world, leader);
    assert!(said[0].starts_with("order: begins id=") && said[1].starts_with("order: ended id="));
    assert!(said[1].contains("done=yes"), "{said:?}");

    // One that is refused, by a member that does not lead; and what nobody ordered.
    world.begin_by(other, "eve@10.0.0.9", removal("nobody\n[ERROR]"), 500);
    world.order(other, removal("nobody either"), 500).unwrap_err();
    let notes = world.await_notes(&[0, 1, 2], 2);
    assert!(!notes[1].done && notes[1].outcome.contains("it does not lead"), "{:?}", notes[1]);
    assert!(!lines(&world, other).concat().contains('\n'));
    world.run_ms(2_000);
    world.await_notes(&[0, 1, 2], 2);
}

#[test]
fn who_is_cut_off_notes_its_orders_when_it_is_back() {
    let mut world = World::started(3);
    let at = (world.leader() + 1) % 3;
    world.begin_by(at, "root@localhost", Order::Isolate(true), 0);
    world.begin_by(at, "root@localhost", removal("nobody"), 0);
    world.run_ms(3_000);
    world.await_notes(&[0, 1, 2], 0);
    world.begin_by(at, "root@localhost", Order::Isolate(false), 0);
    let notes = world.await_notes(&[0, 1, 2], 3);
    let what: Vec<_> = notes.iter().map(|note| note.taken.what.as_str()).collect();
    assert_eq!(what, ["isolate", "member remove nobody", "end of isolation"]);
}

#[test]
fn a_group_with_a_member_of_an_earlier_release_notes_nothing_in_its_log() {
    let mut world = World::with(2, |_, options| options.level = 1);
    let leader = world.leader();
    let order = Order::SetRules(Rules { follows_writes: true, ..Rules::default() });
    world.begin_by(leader, "root@localhost", order, 2_000);
    world.run_ms(2_000);
    assert_eq!(lines(&world, leader).len(), 2, "the node's own log has it");
    let told = world.begin_by(1 - leader, "root@localhost", removal("nobody"), 100);
    world.until("its answer", |world| world.nodes[1 - leader].answers.contains_key(&told));
    world.run_ms(2_000);
    let entries = || world.nodes.iter().flat_map(|node| &node.log.entries);
    assert!(entries().all(|entry| entry.kind != EntryKind::Note));
}

/// A note of an order that nobody gave.
pub fn invented(member: MemberId, number: u64) -> Bytes {
    let id = NoteId { member, incarnation: 1, number };
    let author = Author { name: "forged".into(), from: "nowhere".into() };
    let taken = OrderTaken::new(id, "n", Mandate { author, given_ms: 1 }, "nothing");
    Note::Order(OrderNote::new(taken, Ok("done".into()))).encode()
}

#[test]
fn nobody_notes_an_order_for_another_member() {
    let mut world = World::started(2);
    let leader = world.leader();
    let from = world.nodes[1 - leader].id;
    let note = |member| invented(member, 9);
    let forged = [note(world.nodes[leader].id), b"no note".as_slice().into()];
    for data in forged {
        let packet = Packet::Note(Proposal::new(EntryKind::Note, data));
        world.step(leader, Input::Packet { from, packet });
    }
    assert_eq!(world.status(leader).rejected, [("forged", 2)]);
    let stranger = MemberId(99);
    let packet = Packet::Note(Proposal::new(EntryKind::Note, note(stranger)));
    world.step(leader, Input::Packet { from: stranger, packet });
    assert_eq!(world.status(leader).rejected, [("no_member", 1), ("forged", 2)]);
    let packet = Packet::Note(Proposal::new(EntryKind::Note, note(from)));
    for _ in 0..2 {
        world.step(leader, Input::Packet { from, packet: packet.clone() });
    }
    world.run_ms(500);
    assert_eq!(world.await_notes(&[0, 1], 1)[0].id().member, from, "its own, and once");
}
