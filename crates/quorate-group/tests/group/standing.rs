use crate::world::World;
use quorate_consensus::MemberRole;
use quorate_group::{Order, OrderError};
use quorate_wire::Standing;

const SYNCED: Standing = Standing {
    synced: true,
    prompt: true,
    applied: 0,
    certified: 0,
    index: 0,
    lag_ms: 0,
    written: 0,
};

fn servers(count: usize) -> World {
    let mut world = World::started(count);
    world.nodes.iter_mut().for_each(|node| node.server = Some(SYNCED));
    // All hear of all.
    world.run_ms(500);
    world
}

fn applied(seqno: i64) -> Order {
    Order::AwaitApplied { seqno, at_least: None }
}

#[test]
fn who_waits_is_answered_when_the_last_of_those_up_to_date_has_applied_it() {
    let mut world = servers(3);
    world.applies(0, 5);
    world.applies(1, 5);
    world.applies(2, 4);
    let id = world.begin(0, applied(5), 5_000);
    world.run_ms(1_000);
    assert!(!world.nodes[0].answers.contains_key(&id));
    world.applies(2, 5);
    // On its way for a millisecond, and not with the next heartbeat.
    world.run_ms(2);
    assert_eq!(world.nodes[0].answers.remove(&id).map(|answer| answer.is_ok()), Some(true));
    assert!(world.nodes.iter().all(|node| node.awaited), "all say that their clients wait");
    let two = Order::AwaitApplied { seqno: 5, at_least: Some(2) };
    assert!(world.order(1, two, 0).is_ok());
}

#[test]
fn at_the_deadline_it_is_named_who_has_not_applied_it() {
    let mut world = servers(3);
    world.applies(0, 5);
    world.applies(1, 5);
    let late = world.order(0, applied(5), 300);
    let Err(OrderError::NotApplied { reason, .. }) = late else { panic!("{late:?}") };
    assert_eq!(reason, "not on n2");
}

#[test]
fn who_is_gone_or_not_up_to_date_is_not_waited_for() {
    let mut world = servers(3);
    world.applies(0, 5);
    world.nodes[1].server = Some(Standing { synced: false, ..SYNCED });
    world.run_ms(100);
    let id = world.begin(0, applied(5), 5_000);
    world.run_ms(100);
    assert!(!world.nodes[0].answers.contains_key(&id), "the third one is there");
    world.kill(2);
    assert!(world.await_answer(0, id, 5_000).is_ok());
}

#[test]
fn what_a_process_had_applied_that_has_ended_counts_no_more() {
    let mut world = servers(3);
    (0..3).for_each(|at| world.applies(at, 5));
    assert!(world.order(0, applied(5), 100).is_ok());
    world.kill(2);
    world.await_view(&[0, 1]);
    // It lost what was not on its disk yet.
    world.nodes[2].server = Some(Standing { applied: 3, ..SYNCED });
    world.start(2);
    world.await_view(&[0, 1, 2]);
    let id = world.begin(0, applied(5), 5_000);
    world.run_ms(500);
    assert!(!world.nodes[0].answers.contains_key(&id));
    world.applies(2, 5);
    assert!(world.await_answer(0, id, 5_000).is_ok());
}

#[test]
fn who_has_no_server_counts_for_nothing_and_an_older_release_says_nothing() {
    let mut world = servers(2);
    world.add(|_, options| options.role = MemberRole::Logger);
    world.await_voters(3);
    (0..2).for_each(|at| world.applies(at, 5));
    assert!(world.order(0, applied(5), 1_000).is_ok());

    let mut world = World::with(2, |_, options| options.level = 1);
    world.nodes.iter_mut().for_each(|node| node.server = Some(SYNCED));
    world.run_ms(500);
    let refused = world.order(0, applied(0), 1_000);
    let Err(OrderError::NotApplied { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("older release"), "{reason}");
    assert!(world.nodes.iter().all(|node| node.standings.is_empty()));
}

#[test]
fn of_two_with_the_same_log_the_one_leads_that_lags_less() {
    for lagging in 0..3 {
        let mut world = servers(3);
        world.nodes[lagging].server = Some(Standing { lag_ms: 5_000, ..SYNCED });
        world.run_ms(500);
        let leader = world.leader();
        if leader == lagging {
            continue;
        }
        world.kill(leader);
        world.nodes.iter_mut().for_each(|node| node.leaders.clear());
        let next = world.leader();
        assert!(next != lagging, "{next}");
    }
}

#[test]
fn the_host_is_shown_all_that_is_known_once_a_second() {
    let mut world = servers(3);
    world.nodes[1].server = Some(Standing { certified: 70, written: 9, ..SYNCED });
    world.run_ms(1_500);
    let commit = world.status(0).commit_index;
    let shown = &world.nodes[0].standings;
    assert_eq!(shown.len(), 3);
    assert_eq!((shown[0].member, shown[0].standing), (world.nodes[0].id, SYNCED));
    let other = shown.iter().find(|server| server.member == world.nodes[1].id).unwrap();
    let Standing { certified, written, .. } = other.standing;
    assert_eq!((certified, written, other.standing.backlog()), (70, 9, 70));
    assert!(shown.iter().all(|server| server.uncertified == commit), "none has passed anything");
}

/// A hundred batches, one each millisecond, where disks take longer, so that several are always under way.
fn messages_of_a_load(world: &mut World, from: usize) -> Vec<usize> {
    let leader = world.leader();
    world.sync_ms = 3;
    world.messages.clear();
    for number in 0..100 {
        world.propose(from, &format!("{number}"));
        world.run_ms(1);
    }
    world.await_applied(&[0, 1, 2], &["99"]);
    let followers = (0..3).filter(|at| *at != leader);
    followers.map(|at| world.messages[&(leader, at)]).collect()
}

#[test]
fn members_learn_of_commits_with_the_next_entries_unless_somebody_waits_for_them() {
    let mut world = servers(3);
    let leader = world.leader();
    assert!(messages_of_a_load(&mut world, leader).iter().all(|count| *count >= 190));
    world.nodes.iter_mut().for_each(|node| {
        node.server = Some(Standing { prompt: false, ..SYNCED });
    });
    world.run_ms(500);
    assert!(messages_of_a_load(&mut world, leader).iter().all(|count| *count < 120));
    // It proposes for its clients: they wait.
    let follower = (leader + 1) % 3;
    let mut counts = messages_of_a_load(&mut world, follower);
    counts.sort_unstable();
    assert!(counts[0] < 120 && counts[1] >= 190, "{counts:?}");
}
