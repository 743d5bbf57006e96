//! Releases that know different feature levels, in one group.

mod common;

use common::{Cluster, Node};
use quorate_consensus::LEVEL;

fn level(node: &Node) -> u16 {
    node.status().config.level
}

fn restart(node: &mut Node, level: u16) {
    node.kill();
    node.options.level = level;
    node.start().unwrap();
    node.joined();
}

#[test]
fn the_level_is_raised_when_the_last_member_knows_it_and_then_needed_of_all() {
    let mut cluster = Cluster::new("levels", 4);
    cluster.nodes[1].options.level = LEVEL + 1;
    for node in &mut cluster.nodes[..3] {
        node.start().unwrap();
        node.joined();
    }
    cluster.await_members(&[0, 1, 2]);
    let mut proposals = vec![cluster.nodes[1].propose()];
    cluster.nodes[0].await_applied(&proposals);
    restart(&mut cluster.nodes[0], LEVEL + 1);
    cluster.await_members(&[0, 1, 2]);
    proposals.push(cluster.nodes[0].propose());
    cluster.nodes[2].await_applied(&proposals);
    assert!(cluster.nodes[..3].iter().all(|node| level(node) == LEVEL), "one does not know more");

    restart(&mut cluster.nodes[2], LEVEL + 2);
    for node in &cluster.nodes[..3] {
        node.wait("the next level", |node| level(node) == LEVEL + 1);
    }
    cluster.await_members(&[0, 1, 2]);
    proposals.push(cluster.nodes[2].propose());
    cluster.nodes[0].await_applied(&proposals);

    let newcomer = &mut cluster.nodes[3];
    newcomer.start().unwrap();
    let refused = newcomer.group().wait_joined(common::PATIENCE).unwrap_err().to_string();
    assert!(refused.contains("too old") && refused.contains("n3"), "{refused}");

    cluster.nodes[2].kill();
    cluster.nodes[2].options.level = LEVEL;
    let refused = cluster.nodes[2].start().unwrap_err().to_string();
    let told = format!("knows level {}", LEVEL + 1);
    assert!(refused.contains(&told), "{refused}");
    assert!(cluster.nodes[..2].iter().all(|node| level(node) == LEVEL + 1));
}
