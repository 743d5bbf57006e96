//! What cannot be brought about from outside: a log that fails, a thread that panics.

#[path = "../tests/common/mod.rs"]
mod common;

use crate::GroupError;
use bytes::Bytes;
use common::{Cluster, Node};
use quorate_wal::WalError;
use std::sync::Arc;

fn fail_log(node: &Node) {
    let dir = node.options.dir.clone();
    node.group().member.on_sync(Err(Arc::new(WalError::Closed { dir })));
}

#[test]
fn a_leader_whose_log_fails_is_replaced_and_says_so_once() {
    let cluster = Cluster::started("fatal", 3);
    let broken = cluster.leader();
    let rest: Vec<_> = (0..3).filter(|at| *at != broken).collect();
    fail_log(&cluster.nodes[broken]);
    fail_log(&cluster.nodes[broken]);
    let proposals: Vec<_> = rest.iter().map(|at| cluster.nodes[*at].propose()).collect();
    for at in &rest {
        cluster.nodes[*at].await_applied(&proposals);
        cluster.nodes[*at]
            .wait("a view without the broken one", |node| node.view().members.len() == 2);
    }
    let node = &cluster.nodes[broken];
    node.wait("the news", |node| !node.shared.fatal.lock().is_empty());
    node.wait("to be cut off", |node| node.shared.primary.lock().last() == Some(&false));
    assert_eq!(node.shared.fatal.lock().len(), 1);
    assert!(!node.status().is_leader);
    let refused = node.group().propose(1 << 40, Bytes::from_static(b"x"));
    assert!(matches!(refused, Err(GroupError::LogFailed(_))), "{refused:?}");
}

#[test]
fn a_panicking_state_machine_takes_its_member_out_and_nobody_else() {
    let cluster = Cluster::started("panic", 3);
    let broken = cluster.leader();
    let rest: Vec<_> = (0..3).filter(|at| *at != broken).collect();
    cluster.nodes[broken].shared.panic_on_next();
    let proposals: Vec<_> = rest.iter().map(|at| cluster.nodes[*at].propose()).collect();
    for at in &rest {
        cluster.nodes[*at].await_applied(&proposals);
        cluster.nodes[*at]
            .wait("a view without the broken one", |node| node.view().members.len() == 2);
    }
    cluster.nodes[broken].wait("to be cut off", |node| !node.status().primary);
    let fatal = cluster.nodes[broken].shared.fatal.lock().clone();
    assert!(fatal.len() == 1 && fatal[0].contains("qrt-sequencer"), "{fatal:?}");
}

#[test]
fn a_member_that_needs_a_view_gets_one_though_nobody_came_or_went() {
    let cluster = Cluster::started("needs", 3);
    for node in &cluster.nodes {
        let before = node.view();
        node.group().member.desk.want_view_after(before.number);
        node.wait("a fresh view", |node| node.view().number > before.number);
        assert_eq!(node.view().members, before.members);
    }
}
