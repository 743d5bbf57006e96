//! A member in a process of its own, killed and stopped by signals while the others go on.

mod common;

use common::{Cluster, Node};
use quorate_live::GroupOptions;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CHILD: &str = "QUORATE_TEST_CHILD";
/// Whoever waits for it is told from whoever has to wait for a busy disk.
const LONG: Duration = Duration::from_secs(5);
/// Of a commit that waits for the disk alone, but beside other tests.
const COMMIT_MAX: Duration = Duration::from_secs(3);

/// Not a test of its own: the body of the child process.
#[test]
fn child() {
    let Ok(spec) = std::env::var(CHILD) else { return };
    let mut fields = spec.split('|');
    let mut next = || fields.next().unwrap().to_owned();
    let mut cluster = Cluster::new("child", 1);
    let node = &mut cluster.nodes[0];
    node.options.dir = next().into();
    node.options.group_name = next();
    node.options.listen = next();
    node.options.advertise = node.options.listen.clone();
    node.options.name = next();
    node.options.bootstrap = next() == "bootstrap";
    let mut time = || Duration::from_millis(next().parse().unwrap());
    node.options.election_timeout = time();
    node.options.suspect_timeout = time();
    node.options.seeds = next().split(',').map(str::to_owned).collect();
    node.start().unwrap();
    node.joined();
    println!("child runs");
    // Until the parent is gone.
    let mut rest = String::new();
    std::io::stdin().read_to_string(&mut rest).unwrap();
}

/// The third node of a cluster of which two run in this process.
struct Process {
    child: Child,
}

impl Process {
    fn start(node: &Node) -> Self {
        let options = &node.options;
        let spec = [
            options.dir.display().to_string(),
            options.group_name.clone(),
            options.listen.clone(),
            options.name.clone(),
            if options.bootstrap { "bootstrap".into() } else { String::new() },
            options.election_timeout.as_millis().to_string(),
            options.suspect_timeout.as_millis().to_string(),
            options.seeds.join(","),
        ];
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD, spec.join("|"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("child runs")));
        Self { child }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Proposes on `node` one after the other for `time`; the longest wait for one, and all.
fn drive(node: &Node, time: Duration) -> (Duration, Vec<String>) {
    let started = Instant::now();
    let (mut longest, mut proposals) = (Duration::ZERO, Vec::new());
    while started.elapsed() < time {
        let begun = Instant::now();
        let proposal = node.propose();
        node.await_applied(std::slice::from_ref(&proposal));
        longest = longest.max(begun.elapsed());
        proposals.push(proposal);
    }
    (longest, proposals)
}

/// Node 2 in its own process; it leads if `leads`. A machine too busy to let the first leader
/// live gets another try.
fn started(name: &str, leads: bool, set: impl Fn(&mut GroupOptions)) -> (Cluster, Process) {
    for _ in 0..3 {
        let (cluster, process) = try_start(name, leads, &set);
        let child_leads = cluster.nodes[..2].iter().all(|node| !node.status().is_leader);
        if child_leads == leads {
            return (cluster, process);
        }
    }
    panic!("leadership does not stay where it was");
}

fn try_start(name: &str, leads: bool, set: &impl Fn(&mut GroupOptions)) -> (Cluster, Process) {
    let mut cluster = Cluster::new(name, 3);
    cluster.nodes.iter_mut().for_each(|node| set(&mut node.options));
    if leads {
        cluster.nodes[0].options.bootstrap = false;
        cluster.nodes[2].options.bootstrap = true;
    }
    let first = (!leads).then(|| {
        cluster.nodes[0].start().unwrap();
        cluster.nodes[0].joined();
    });
    let process = Process::start(&cluster.nodes[2]);
    if first.is_none() {
        cluster.nodes[0].start().unwrap();
        cluster.nodes[0].joined();
    }
    cluster.nodes[1].start().unwrap();
    cluster.nodes[1].joined();
    for node in &cluster.nodes[..2] {
        node.wait("three voters in the view", |node| {
            let status = node.status();
            let voters = status.voters.len() == 3 && !status.config.is_joint();
            voters && node.view().members.len() == 3
        });
    }
    (cluster, process)
}

/// How far the child process is, asked over its group port.
fn applied(node: &Node) -> u64 {
    let lines = quorate_live::query_status(&node.options.listen, &node.options.security).unwrap();
    let applied = lines.into_iter().find(|(name, _)| name == "applied_index").unwrap();
    applied.1.parse().unwrap()
}

fn await_view(cluster: &Cluster, members: usize) {
    for node in &cluster.nodes[..2] {
        node.wait("a view of the living", |node| node.view().members.len() == members);
    }
}

#[test]
fn a_killed_leader_costs_no_timeout() {
    let (cluster, process) = started("killed", true, |options| {
        // Heartbeats are rare then: without them nobody is to be suspected.
        (options.election_timeout, options.suspect_timeout) = (LONG, LONG);
    });
    drive(&cluster.nodes[0], Duration::from_millis(200));
    process.signal("-KILL");
    let (longest, proposals) = drive(&cluster.nodes[0], Duration::from_secs(1));
    println!("killed leader: longest commit {longest:?}");
    assert!(longest < LONG / 2, "{longest:?} without a commit, election timeout {LONG:?}");
    await_view(&cluster, 2);
    cluster.await_applied(&proposals);
}

#[test]
fn a_stopped_leader_costs_an_election_and_comes_back() {
    let timeout = Duration::from_secs(2);
    let (cluster, process) = started("stopped", true, |options| options.election_timeout = timeout);
    drive(&cluster.nodes[0], Duration::from_millis(200));
    process.signal("-STOP");
    let (longest, proposals) = drive(&cluster.nodes[0], Duration::from_secs(8));
    println!("stopped leader: longest commit {longest:?}");
    assert!(longest < timeout * 4, "{longest:?}");
    await_view(&cluster, 2);
    process.signal("-CONT");
    await_view(&cluster, 3);
    cluster.await_applied(&proposals);
}

#[test]
fn a_stopped_follower_costs_nothing() {
    let (cluster, process) = started("paused", false, |options| options.suspect_timeout = LONG);
    drive(&cluster.nodes[0], Duration::from_millis(200));
    process.signal("-STOP");
    // More than fits into its socket's buffers.
    let large: Vec<_> = (0..40).map(|_| cluster.nodes[1].propose_padded(1 << 20)).collect();
    cluster.await_applied(&large);
    // Until it is out of the view, and beyond that.
    let (longest, proposals) = drive(&cluster.nodes[0], LONG + Duration::from_secs(2));
    println!("stopped follower: longest commit {longest:?}");
    assert!(longest < COMMIT_MAX, "{longest:?}");
    await_view(&cluster, 2);
    process.signal("-CONT");
    await_view(&cluster, 3);
    cluster.await_applied(&proposals);
    let last = cluster.nodes[0].status().last_index;
    cluster.nodes[0].wait("the follower to catch up", |_| applied(&cluster.nodes[2]) >= last);
}

#[test]
fn a_killed_follower_costs_nothing_and_leaves_the_view_at_once() {
    let (cluster, process) = started("follower", false, |options| options.suspect_timeout = LONG);
    drive(&cluster.nodes[0], Duration::from_millis(200));
    process.signal("-KILL");
    let killed = Instant::now();
    await_view(&cluster, 2);
    let gone = killed.elapsed();
    println!("killed follower: out of the view after {gone:?}");
    assert!(gone < LONG, "{gone:?}");
    let (longest, proposals) = drive(&cluster.nodes[0], Duration::from_secs(1));
    println!("killed follower: longest commit {longest:?}");
    assert!(longest < COMMIT_MAX, "{longest:?}");
    cluster.await_applied(&proposals);
}
