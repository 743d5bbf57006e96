use crate::world::World;
use quorate_consensus::{MemberId, MemberRole, Rules};
use quorate_group::{Alteration, Done, Input, Order, OrderError};

#[test]
fn leadership_goes_where_it_is_told_to_and_proposals_go_with_it() {
    let mut world = World::started(3);
    let leader = world.leader();
    let to = (leader + 1) % 3;
    world.propose(leader, "before");
    let id = world.begin(leader, Order::Switchover { to: Some(format!("n{to}")) }, 5_000);
    world.propose(leader, "meanwhile");
    world.propose((leader + 2) % 3, "elsewhere");
    world.until("the answer", |world| world.nodes[leader].answers.contains_key(&id));
    assert_eq!(world.nodes[leader].answers[&id], Ok(Done::Leader(format!("n{to}"))));
    assert_eq!(world.leader(), to);
    world.await_applied(&[0, 1, 2], &["before", "meanwhile", "elsewhere"]);
    world.run_ms(2_000);
    let missed = |world: &World, at: usize| {
        world.nodes[at].lines.iter().any(|line| line.contains("knows of no leader at present"))
    };
    assert!((0..3).all(|at| !missed(&world, at)), "nobody missed a leader");
    let refused = world.order(leader, Order::Switchover { to: None }, 1_000);
    let Err(OrderError::Switchover { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains(&format!("ask n{to}")), "{reason}");
    [to, (leader + 2) % 3].into_iter().for_each(|at| world.kill(at));
    world.until("a line", |world| missed(world, leader));
}

#[test]
fn the_leader_changes_the_membership_as_it_is_told() {
    let mut world = World::started(3);
    let leader = world.leader();
    let other = format!("n{}", (leader + 1) % 3);
    let alteration = Alteration { priority: Some(7), ..Alteration::default() };
    let order = Order::Alter { name: other.clone(), alteration };
    assert_eq!(world.order(leader, order.clone(), 2_000), Ok(Done::Nothing));
    assert_eq!(world.order(leader, order.clone(), 2_000), Ok(Done::Nothing), "nothing to do");
    let elsewhere = world.order((leader + 2) % 3, order, 2_000);
    assert!(matches!(elsewhere, Err(OrderError::Membership { .. })));
    let logger = Alteration { role: Some(MemberRole::Logger), ..Alteration::default() };
    let refused = world.order(leader, Order::Alter { name: other.clone(), alteration: logger }, 1);
    assert!(matches!(refused, Err(OrderError::Membership { .. })));
    let rules = Rules { follows_writes: true, ..Rules::default() };
    assert_eq!(world.order(leader, Order::SetRules(rules), 2_000), Ok(Done::Nothing));
    assert_eq!(world.order(leader, Order::Remove { name: other }, 2_000), Ok(Done::Nothing));
}

/// Its process goes on, and asks again and again.
#[test]
fn who_was_removed_by_order_comes_back_as_a_new_member_only() {
    let mut world = World::started(3);
    let leader = world.leader();
    let other = (leader + 1) % 3;
    let removed = world.nodes[other].machine.as_ref().unwrap().identity().member;
    let order = Order::Remove { name: format!("n{other}") };
    assert_eq!(world.order(leader, order, 2_000), Ok(Done::Nothing));
    world.run_ms(20_000);
    let config = world.status(leader).config;
    assert_eq!((config.members.len(), &config.lost), (2, &vec![removed]));
    let said = |line: &String| line.contains("was removed from the group for good");
    assert!(world.nodes[other].lines.iter().any(said), "{:?}", world.nodes[other].lines);
    world.kill(other);
    world.nodes[other].wipe(MemberId(99));
    world.start(other);
    world.await_view(&[0, 1, 2]);
    assert_eq!(world.status(leader).config.members.len(), 3);
}

#[test]
fn who_is_needed_while_another_is_down_stays_until_that_one_is_back() {
    let mut world = World::started(3);
    let leader = world.leader();
    let (down, up) = ((leader + 1) % 3, (leader + 2) % 3);
    world.kill(down);
    let learner = Alteration { role: Some(MemberRole::Learner), ..Alteration::default() };
    let orders = [
        Order::Remove { name: format!("n{up}") },
        Order::Alter { name: format!("n{up}"), alteration: learner },
    ];
    for order in orders {
        let refused = world.order(leader, order.clone(), 500);
        let Err(OrderError::Membership { reason, .. }) = refused else { panic!("{refused:?}") };
        assert!(reason.contains("Nothing was changed"), "{reason}");
        let text = format!("after {order:?}");
        world.propose(leader, &text);
        world.await_applied(&[leader, up], &[&text]);
    }
    let order = Order::Remove { name: format!("n{up}") };
    let id = world.begin(leader, order, 20_000);
    world.run_ms(500);
    assert_eq!(world.status(leader).voters.len(), 3);
    world.start(down);
    world.until("the answer", |world| world.nodes[leader].answers.contains_key(&id));
    assert_eq!(world.nodes[leader].answers[&id], Ok(Done::Nothing));
    assert_eq!(world.status(leader).voters.len(), 2);
}

#[test]
fn a_member_that_lost_its_log_is_no_reason_to_let_another_one_go() {
    let mut world = World::started(3);
    let leader = world.leader();
    let (lost, sound) = ((leader + 1) % 3, (leader + 2) % 3);
    world.propose(leader, "acknowledged");
    world.await_applied(&[0, 1, 2], &["acknowledged"]);
    world.kill(lost);
    world.nodes[lost].roll_back(1);
    world.start(lost);
    let id = world.nodes[lost].id;
    let connected = |world: &World| {
        world.nodes[leader].dials.contains(&lost)
            && world.nodes[leader].incoming.contains_key(&lost)
    };
    world.until("a connection", connected);
    assert!(world.status(leader).voters.contains(&id), "nobody has noticed yet");
    let order = Order::Remove { name: format!("n{sound}") };
    let refused = world.order(leader, order, 500);
    let Err(OrderError::Membership { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("Nothing was changed"), "{reason}");
    world.propose(leader, "after");
    world.await_applied(&[leader, sound], &["after"]);
}

#[test]
fn two_operators_with_opposite_orders_do_not_fill_the_log() {
    let mut world = World::started(3);
    let leader = world.leader();
    let before = world.nodes[leader].applied().last.index;
    let follows = |follows_writes| Rules { follows_writes, ..Rules::default() };
    let one = world.begin(leader, Order::SetRules(follows(true)), 2_000);
    let other = world.begin(leader, Order::SetRules(follows(false)), 2_000);
    for id in [one, other] {
        world.until("the answer", |world| world.nodes[leader].answers.contains_key(&id));
        assert_eq!(world.nodes[leader].answers[&id], Ok(Done::Nothing));
    }
    let entries = world.nodes[leader].applied().last.index - before;
    assert!(entries <= 2, "{entries} entries for two orders");
}

#[test]
fn read_points_cover_what_was_applied_before_on_any_member() {
    let mut world = World::started(3);
    for at in 0..3 {
        world.propose(at, &format!("{at}"));
        world.await_applied(&[0], &[&format!("{at}")]);
        let last = world.nodes[0].applied().last.index;
        let answer = world.order(at, Order::ReadPoint, 2_000);
        let Ok(Done::ReadPoint(index)) = answer else { panic!("{answer:?}") };
        assert!(index >= last, "{index} < {last}");
    }
}

#[test]
fn every_order_is_answered_at_its_deadline_and_at_the_close() {
    let mut world = World::started(3);
    world.kill(1);
    world.kill(2);
    world.run_ms(2_000);
    let orders = [
        Order::ReadPoint,
        Order::Switchover { to: None },
        Order::SetRules(Rules { zones_min: 1, ..Rules::default() }),
        Order::Leave,
        Order::GoOnAlone,
        Order::ForceQuorum { keep: vec!["n0".into(), "n1".into()], reason: "test".into() },
    ];
    for order in orders {
        assert!(world.order(0, order.clone(), 400).is_err(), "{order:?}");
    }
    let applied = Order::AwaitApplied { seqno: 7, at_least: None };
    let waiting =
        [Order::ReadPoint, Order::Leave, applied].map(|order| world.begin(0, order, 9_000));
    world.step(0, Input::Close);
    let late = world.begin(0, Order::ReadPoint, 9_000);
    for id in waiting.into_iter().chain([late]) {
        assert_eq!(world.nodes[0].answers[&id], Err(OrderError::Closed));
    }
}

#[test]
fn a_majority_given_up_for_lost_is_left_behind() {
    let mut world = World::started(3);
    world.kill(1);
    world.kill(2);
    world.until("the loss", |world| world.nodes[0].primary.last() == Some(&false));
    let order = Order::ForceQuorum { keep: vec!["n0".into()], reason: "both burnt".into() };
    let answer = world.order(0, order, 5_000);
    let Ok(Done::Forced(plan)) = answer else { panic!("{answer:?}") };
    assert_eq!((plan.kept, plan.lost), (vec!["n0".into()], vec!["n1".into(), "n2".into()]));
    world.propose(0, "on");
    world.await_applied(&[0], &["on"]);
}

#[test]
fn votes_that_are_wanted_are_given() {
    let mut world = World::started(3);
    let at = (world.leader() + 1) % 3;
    assert_eq!(world.order(at, Order::WantVotes(3), 5_000), Ok(Done::Nothing));
    assert_eq!(world.status(at).config.votes().count(), 5);
}

#[test]
fn more_proposals_than_an_outbox_takes_wait_for_room_and_keep_their_order() {
    let mut world = World::started(3);
    let follower = (world.leader() + 1) % 3;
    let megabytes: Vec<String> = (0..20).map(|at| format!("{at:02}").repeat(1 << 19)).collect();
    megabytes.iter().for_each(|text| world.propose(follower, text));
    world.until("all of them", |world| world.nodes[0].applied.len() == 20);
    assert!(world.nodes[0].applied == megabytes);
    assert!(world.nodes[follower].waited_for_room >= 2);
}

/// The parts of a transaction come before its write set, or that fails.
#[test]
fn what_a_transfer_that_fails_has_held_up_is_not_overtaken() {
    let mut world = World::started(3);
    let leader = world.leader();
    let [to, elsewhere] = [1, 2].map(|step| (leader + step) % 3);
    world.cut.extend([(leader, to), (to, leader), (to, elsewhere), (elsewhere, to)]);
    let id = world.begin(leader, Order::Switchover { to: Some(format!("n{to}")) }, 5_000);
    let mut proposed = Vec::new();
    while !world.nodes[leader].answers.contains_key(&id) {
        proposed.push(format!("{:04}", proposed.len()));
        world.propose(elsewhere, proposed.last().unwrap());
        world.run_ms(1);
    }
    assert!(proposed.len() > 100, "it was given up, and that takes time");
    world.until("all", |world| world.nodes[leader].applied.len() == proposed.len());
    assert!(world.nodes[leader].applied == proposed);
}

/// It may be the only one that may lead; the others commit without its disk.
#[test]
fn a_leader_whose_disk_stands_still_holds_back_what_it_has_no_memory_for() {
    const ALL: usize = 80;
    let mut world = World::started(3);
    let leader = world.leader();
    let others = [1, 2].map(|step| (leader + step) % 3);
    for at in others {
        let alteration = Alteration { priority: Some(0), ..Alteration::default() };
        world.order(leader, Order::Alter { name: format!("n{at}"), alteration }, 1_000).unwrap();
    }
    world.stalled.insert(leader);
    let megabytes: Vec<String> = (0..ALL).map(|at| format!("{at:02}").repeat(1 << 19)).collect();
    megabytes.iter().for_each(|text| world.propose(others[0], text));
    world.run_ms(10_000);
    world.propose(leader, "its own");
    world.run_ms(1_000);
    let applied = world.nodes[others[1]].applied.len();
    assert!((60..=66).contains(&applied), "{applied}");
    world.stalled.clear();
    world.until("all", |world| world.nodes.iter().all(|node| node.applied.len() == ALL + 1));
    let mut applied = world.nodes[leader].applied.clone();
    applied.retain(|text| text != "its own");
    assert!(applied == megabytes);
}

#[test]
fn in_a_pause_nobody_leads_in_anybodys_place_and_nobody_is_expelled() {
    const LONG_MS: u64 = 10_000;
    let mut world = World::with(3, |_, options| options.expel_ms = Some(2_000));
    let leader = world.leader();
    let (preferred, gone) = ((leader + 1) % 3, (leader + 2) % 3);
    let rules = |paused| Order::SetRules(Rules { paused, ..Rules::default() });
    world.order(leader, rules(true), 1_000).unwrap();
    let alteration = Alteration { priority: Some(100), ..Alteration::default() };
    let alter = Order::Alter { name: format!("n{preferred}"), alteration };
    world.order(leader, alter, 1_000).unwrap();
    world.kill(gone);
    world.run_ms(LONG_MS);
    assert_eq!((world.leader(), world.status(leader).voters.len()), (leader, 3));
    let to = Some(format!("n{preferred}"));
    world.order(leader, Order::Switchover { to }, 1_000).unwrap();
    assert_eq!(world.leader(), preferred, "an order is carried out");
    world.order(preferred, Order::Switchover { to: Some(format!("n{leader}")) }, 1_000).unwrap();
    world.order(leader, rules(false), 1_000).unwrap();
    world.run_ms(LONG_MS);
    assert_eq!(world.leader(), preferred);
    world.await_voters(2);
}
