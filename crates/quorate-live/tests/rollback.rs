//! A member whose log directory was rolled back under its id: an image of the machine was restored.

mod common;

use common::{Cluster, Node};
use quorate_live::{GroupError, StartError};
use std::fs;
use std::path::{Path, PathBuf};

/// A copy of the log directory of a node that is down.
struct Image(PathBuf);

impl Image {
    fn of(node: &Node) -> Self {
        let image = node.options.dir.with_extension("image");
        copy(&node.options.dir, &image);
        Self(image)
    }

    fn restore(&self, node: &Node) {
        fs::remove_dir_all(&node.options.dir).unwrap();
        copy(&self.0, &node.options.dir);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Starts it again, and writes something that it has, too.
fn another_start(cluster: &mut Cluster, at: usize) {
    cluster.nodes[at].start().unwrap();
    cluster.nodes[at].joined();
    cluster.await_members(&[0, 1, 2]);
    let proposals: Vec<_> = (0..20).map(|_| cluster.nodes[0].propose()).collect();
    cluster.await_applied(&proposals);
    cluster.nodes[at].kill();
}

/// The others tell it, it stops, and it does not start any more; in its place comes a new member.
fn is_refused(cluster: &mut Cluster, at: usize) {
    let node = &mut cluster.nodes[at];
    node.start().unwrap();
    node.wait("to be told", |node| !node.shared.fatal.lock().is_empty());
    let fatal = node.shared.fatal.lock().clone();
    assert!(fatal.len() == 1 && fatal[0].contains("older state of itself"), "{fatal:?}");
    assert!(node.status().leader.is_none());
    node.kill();
    for _ in 0..3 {
        let refused = node.start();
        assert!(
            matches!(refused, Err(GroupError::Start(StartError::RolledBack { .. }))),
            "{refused:?}"
        );
    }
    node.wipe();
    node.start().unwrap();
    node.joined();
    cluster.await_members(&[0, 1, 2]);
}

#[test]
fn a_member_that_was_rolled_back_to_an_earlier_start_does_not_vote() {
    let mut cluster = Cluster::started("earlier", 3);
    cluster.nodes[0].options.bootstrap = false;
    cluster.nodes[2].kill();
    let image = Image::of(&cluster.nodes[2]);
    another_start(&mut cluster, 2);
    another_start(&mut cluster, 2);
    image.restore(&cluster.nodes[2]);
    is_refused(&mut cluster, 2);
}

#[test]
fn a_member_that_has_less_than_it_acknowledged_in_this_term_does_not_vote() {
    let term = |cluster: &Cluster| cluster.nodes[cluster.leader()].status().term;
    for _ in 0..5 {
        let mut cluster = Cluster::started("less", 3);
        cluster.nodes[0].options.bootstrap = false;
        let (at, before) = (cluster.follower(), term(&cluster));
        cluster.nodes[at].kill();
        let image = Image::of(&cluster.nodes[at]);
        // The same count of starts comes again.
        another_start(&mut cluster, at);
        image.restore(&cluster.nodes[at]);
        // After an election, nobody knows any more what it acknowledged before.
        if term(&cluster) == before {
            return is_refused(&mut cluster, at);
        }
    }
    panic!("an election each time: the machine is too busy");
}

#[test]
fn a_directory_whose_views_are_newer_than_its_count_of_starts_is_refused() {
    let mut cluster = Cluster::started("views", 3);
    cluster.nodes[2].kill();
    let image = Image::of(&cluster.nodes[2]);
    another_start(&mut cluster, 2);
    another_start(&mut cluster, 2);
    // The file of term and identity alone.
    fs::copy(image.0.join("meta"), cluster.nodes[2].options.dir.join("meta")).unwrap();
    let refused = cluster.nodes[2].start();
    assert!(
        matches!(refused, Err(GroupError::Start(StartError::RolledBack { .. }))),
        "{refused:?}"
    );
}
