use crate::world::World;
use quorate_group::{Input, Order, OrderError};

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
