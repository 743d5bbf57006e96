//! Operators' orders to real members: who gave them, and what came of them, is known on all.

mod common;

use common::{Cluster, Node, PATIENCE};
use quorate_consensus::Rules;
use quorate_live::{Author, OrderNote};
use std::thread;

fn author(name: &str) -> Author {
    Author { name: name.into(), from: "10.0.0.9".into() }
}

fn await_orders(cluster: &Cluster, count: usize) -> Vec<OrderNote> {
    for node in &cluster.nodes {
        node.wait("the notes", |node| node.group().orders().len() == count);
    }
    let orders = cluster.nodes[0].group().orders();
    assert!(cluster.nodes.iter().all(|node| node.group().orders() == orders));
    orders
}

/// Lines of its error log that begin so.
fn lines(node: &Node, start: &str) -> usize {
    let lines = node.shared.lines.lock();
    lines.iter().filter(|(_, line)| line.starts_with(start)).count()
}

#[test]
fn every_member_shows_what_was_ordered_on_any_and_still_does_after_a_restart() {
    let mut cluster = Cluster::started("orders", 3);
    let leader = cluster.leader();
    let other = (leader + 1) % 3;
    let follows = Rules { follows_writes: true, ..Rules::default() };
    let group = cluster.nodes[leader].group();
    group.operator(author("alice")).set_rules(follows, PATIENCE).unwrap();
    let refused = cluster.nodes[other].group().operator(author("bob")).switchover(None, PATIENCE);
    let reason = refused.unwrap_err().to_string();
    let orders = await_orders(&cluster, 2);
    let by = |note: &OrderNote| note.taken.mandate.author.clone();
    let find = |name: &str| orders.iter().find(|note| by(note) == author(name)).unwrap();
    let (alice, bob) = (find("alice"), find("bob"));
    assert!(alice.done && alice.taken.what.contains("leader_follows_writes=yes"), "{alice}");
    assert!(!bob.done && bob.outcome == reason, "{bob}");
    assert_eq!(bob.taken.node, cluster.nodes[other].options.name);
    assert!(bob.taken.mandate.given_ms > 1_700_000_000_000, "by this host's clock");
    for node in &cluster.nodes {
        node.wait("a line for each", |node| lines(node, "order: noted ") == 2);
    }
    assert_eq!(lines(&cluster.nodes[other], "order: begins "), 1);
    assert_eq!(lines(&cluster.nodes[other], "order: ended "), 1);

    cluster.nodes[other].kill();
    cluster.nodes[other].start().unwrap();
    assert_eq!(await_orders(&cluster, 2), orders);
}

#[test]
fn orders_that_are_given_at_the_same_time_are_told_apart() {
    let cluster = Cluster::started("orders-two", 3);
    let group = cluster.nodes[cluster.leader()].group();
    thread::scope(|scope| {
        for (name, zones_min) in [("alice", 0), ("bob", 9)] {
            let operator = group.operator(author(name));
            let rules = Rules { zones_min, follows_writes: true, ..Rules::default() };
            scope.spawn(move || {
                assert_eq!(operator.set_rules(rules, PATIENCE).is_ok(), name == "alice");
            });
        }
    });
    let orders = await_orders(&cluster, 2);
    for OrderNote { taken, done, .. } in &orders {
        assert_eq!(*done, taken.mandate.author.name == "alice", "{orders:?}");
    }
}
