use crate::world::World;
use quorate_consensus::EntryKind;
use quorate_group::{EventKind, Note, Order};

/// On each of these members somebody noted an event of this kind with these words.
fn await_event(world: &mut World, members: &[usize], kind: EventKind, words: &str) {
    world.until(words, |world| {
        members.iter().all(|at| {
            let events = world.nodes[*at].events();
            events.iter().any(|event| event.kind == kind && event.what.contains(words))
        })
    });
}

#[test]
fn who_leads_and_who_is_there_is_noted_with_the_reason_on_every_member() {
    let mut world = World::started(3);
    let leader = world.leader();
    let term = world.status(leader).term;
    let first = format!("n{leader} leads in term {term}: it knows of no leader before");
    await_event(&mut world, &[0, 1, 2], EventKind::Leader, &first);
    let to = (leader + 1) % 3;
    await_event(&mut world, &[0, 1, 2], EventKind::View, &format!("n{to} is there"));
    await_event(&mut world, &[0, 1, 2], EventKind::Membership, &format!("n{to} at "));

    world.order(leader, Order::Switchover { to: Some(format!("n{to}")) }, 5_000).unwrap();
    let term = term + 1;
    let handed = format!("n{to} leads in term {term}: n{leader} handed leadership over");
    await_event(&mut world, &[0, 1, 2], EventKind::Leader, &handed);

    world.kill(to);
    let left = [leader, (leader + 2) % 3];
    await_event(&mut world, &left, EventKind::Leader, &format!("n{to}, which led before"));
    await_event(&mut world, &left, EventKind::View, &format!("n{to} is gone: "));
    let events = left.map(|at| world.nodes[at].events());
    assert_eq!(events[0], events[1]);
    assert!(events[0].iter().all(|event| event.at_ms > 0));
}

#[test]
fn what_a_member_says_of_itself_is_noted_wherever_it_is() {
    let mut world = World::started(3);
    let at = (world.leader() + 1) % 3;
    world.happened(at, EventKind::Transfer, "received the state of n9");
    await_event(&mut world, &[0, 1, 2], EventKind::Transfer, "received the state of n9");
    let of = |world: &World| world.nodes[at].events().last().cloned().unwrap();
    assert_eq!((of(&world).node, of(&world).id.member), (format!("n{at}"), world.nodes[at].id));
}

#[test]
fn a_member_that_lags_does_not_note_again_what_is_in_the_log() {
    let mut world = World::started(3);
    let leader = world.leader();
    let at = (leader + 1) % 3;
    world.nodes[at].lags = true;
    world.happened(at, EventKind::Transfer, "received the state of n9");
    let others = [leader, (leader + 2) % 3];
    await_event(&mut world, &others, EventKind::Transfer, "received the state of n9");
    world.run_ms(5_000);
    let notes = |world: &World| {
        let entries = &world.nodes[leader].log.entries;
        let notes = entries.iter().filter(|entry| entry.kind == EntryKind::Note);
        let notes = notes.filter_map(|entry| Note::decode(entry.data.clone()).ok());
        notes.filter(|note| note.id().member == world.nodes[at].id).count()
    };
    let noted = notes(&world);
    world.nodes[at].lags = false;
    world.propose(leader, "a row");
    world.await_applied(&[0, 1, 2], &["a row"]);
    world.run_ms(1_000);
    assert_eq!(notes(&world), noted, "nor when it has caught up");
    let of_it = world.nodes[leader].events();
    let of_it = of_it.iter().filter(|event| event.id.member == world.nodes[at].id).count();
    assert_eq!(noted, of_it, "each once");
}
