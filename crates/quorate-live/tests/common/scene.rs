//! A group under load, and somebody who has a way in.

#![allow(dead_code, reason = "each test file uses its part")]

use crate::common::authority::Authority;
use crate::common::{Cluster, Node};
use parking_lot::{Mutex, MutexGuard};
use quorate_consensus::MemberRole;
use quorate_live::guest::Guest;
use quorate_live::{GroupStatus, LogLevel, Secret, SecretOptions, Security};
use quorate_wire::PeerIdentity;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Between two commits, beyond what the machine takes without anybody's lies.
const GAP: Duration = Duration::from_millis(100);
const BASELINE: Duration = Duration::from_secs(2);
const ATTACK: Duration = Duration::from_secs(4);
const TRIES: usize = 3;
/// What all lies of a test may cost in memory.
const BYTES_MAX: u64 = 256 << 20;
/// A lie that succeeds causes an election at once; a machine that is busy with other tests causes none so soon.
const ELECTION: Duration = Duration::from_secs(3);

/// Memory is measured of the whole process: one scene at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A group of three, and a fourth that was in it, and whose directory somebody has.
pub struct Scene {
    pub cluster: Cluster,
    pub security: Security,
    safe: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    pub fn new(name: &str, role: MemberRole) -> Self {
        let file = format!("quorate-hostile-{name}-{}", std::process::id());
        let safe = std::env::temp_dir().join(file);
        let _absent = std::fs::remove_file(&safe);
        Secret::new().unwrap().write(&safe).unwrap();
        let options = SecretOptions { file: safe.clone(), dynamic: false };
        let security = Security::Secret(options);
        Self::secured(name, role, safe, |_| security.clone())
    }

    /// Members that are known by certificates, and somebody with another one of the same CA.
    pub fn certified(name: &str, authority: &Authority) -> Self {
        let of = |name: String| Security::Certificates(authority.issue(&name));
        let mut scene =
            Self::secured(name, MemberRole::Voter, PathBuf::new(), |at| of(format!("n{at}")));
        scene.security = of("other".to_owned());
        scene
    }

    fn secured(
        name: &str,
        role: MemberRole,
        safe: PathBuf,
        security: impl Fn(usize) -> Security,
    ) -> Self {
        let alone = ALONE.lock();
        let mut cluster = Cluster::new(name, 4);
        for (at, node) in cluster.nodes.iter_mut().enumerate() {
            node.options.security = security(at);
            node.options.election_timeout = ELECTION;
            node.options.suspect_timeout = 2 * ELECTION;
        }
        let security = cluster.nodes[3].options.security.clone();
        cluster.nodes[3].options.role = role;
        for node in &mut cluster.nodes {
            node.start().unwrap();
            node.joined();
        }
        cluster.nodes[0].wait("all", |node| node.status().config.members.len() == 4);
        cluster.nodes[3].kill();
        Scene { cluster, security, safe, _alone: alone }
    }

    /// As the fourth, after so many more starts than it had.
    pub fn identity(&self, starts: i64) -> PeerIdentity {
        let node = &self.cluster.nodes[3];
        let info = node.info.as_ref().unwrap();
        PeerIdentity {
            member: info.member,
            incarnation: (i64::from(info.incarnation) + starts) as u32,
            group: info.group,
            levels: (1, quorate_consensus::LEVEL),
            group_name: node.options.group_name.clone(),
            name: node.options.name.clone(),
            addr: node.options.advertise.clone(),
            ..PeerIdentity::default()
        }
    }

    /// With the key of the fourth.
    pub fn dial(&self, at: usize, identity: PeerIdentity) -> Result<Guest, String> {
        let node = &self.cluster.nodes[at];
        let to = (node.id(), &*node.options.advertise);
        let dir = &self.cluster.nodes[3].options.dir;
        Guest::dial(to, identity, &self.security, Some(dir)).map_err(|error| error.to_string())
    }

    pub fn leader(&self) -> usize {
        self.cluster.leader()
    }

    /// Down to a level; of the node that has most of them.
    fn lines(&self, least: LogLevel) -> usize {
        let of = |node: &Node| {
            let lines = node.shared.lines.lock();
            lines.iter().filter(|(level, _)| *level <= least).count()
        };
        self.cluster.nodes[..3].iter().map(of).max().unwrap_or(0)
    }

    /// Writes on one member, and looks at another, while `attack` goes on, and before. The group is as it was
    /// afterwards, and has all that was written.
    pub fn withstands(&mut self, attack: impl Fn(&Scene, &AtomicBool) + Sync) {
        self.withstands_within(0, attack);
    }

    /// The same, where its leader may have itself elected again, so many terms later at most.
    pub fn withstands_within(&mut self, terms: u64, attack: impl Fn(&Scene, &AtomicBool) + Sync) {
        let leader = self.leader();
        let before = self.cluster.nodes[leader].status();
        let idle = || self.longest_gap(BASELINE, |_, _| {});
        let lines = || [LogLevel::Warn, LogLevel::Info].map(|least| self.lines(least));
        let (lines_before, bytes, begun) = (lines(), resident(), Instant::now());
        // What else runs on this machine makes gaps, too, but not each time.
        let mut gaps = Vec::new();
        while gaps.len() < TRIES && gaps.iter().all(|(usual, attacked)| *attacked >= *usual + GAP) {
            let before = idle();
            let attacked = self.longest_gap(ATTACK, &attack);
            gaps.push((before.max(idle()), attacked));
        }
        let grown = resident().saturating_sub(bytes);
        let (usual, attacked) = gaps[gaps.len() - 1];
        let after = self.cluster.nodes[leader].status();
        let is_near = (before.term..=before.term + terms).contains(&after.term);
        assert!(after.is_leader && is_near, "{} after {}", after.term, before.term);
        let votes = |status: &GroupStatus| status.voters.clone();
        assert_eq!(votes(&after), votes(&before));
        assert!(attacked < usual + GAP, "usual gaps, and those of the attacks: {gaps:?}");
        let lines_after = lines();
        let [warned, told] = [0, 1].map(|at| lines_after[at] - lines_before[at]);
        let seconds = begun.elapsed().as_secs() as usize;
        assert!(warned <= seconds + 2, "{warned} warnings in {seconds} seconds");
        // What comes and goes is told by the second for each kind of line, after some at once.
        assert!(told <= 4 * seconds + 48, "{told} lines in {seconds} seconds");
        assert!(grown < BYTES_MAX, "{grown} bytes more");
        for node in &self.cluster.nodes[..3] {
            assert!(!node.shared.state.lock().applied.iter().any(|text| text.contains("forged")));
            assert!(node.shared.fatal.lock().is_empty());
        }
    }

    fn longest_gap(
        &self,
        time: Duration,
        meanwhile: impl Fn(&Scene, &AtomicBool) + Sync,
    ) -> Duration {
        let ended = AtomicBool::new(false);
        let (writer, reader) = (&self.cluster.nodes[0], &self.cluster.nodes[1]);
        thread::scope(|scope| {
            scope.spawn(|| meanwhile(self, &ended));
            let ends = Ends(&ended);
            let begun = Instant::now();
            let (mut longest, mut written) = (Duration::ZERO, Vec::new());
            while begun.elapsed() < time {
                let proposed = Instant::now();
                written.push(writer.propose());
                reader.await_applied(&written[written.len() - 1..]);
                longest = longest.max(proposed.elapsed());
            }
            drop(ends);
            self.cluster.nodes[2].await_applied(&written);
            longest
        })
    }
}

/// Else an attack on what has failed would go on for ever.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _left = std::fs::remove_file(&self.safe);
    }
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    figure("VmRSS:") * 1024
}

/// What the kernel says of this process.
pub fn figure(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
