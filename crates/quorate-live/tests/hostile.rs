//! Somebody who has a way in, and lies: about who it is, or within its own identity. Nothing is lost, forged or
//! voted for; the group's commits go on as before; what it costs is bounded.

mod common;

use bytes::Bytes;
use common::authority::Authority;
use common::{Cluster, Node};
use quorate_consensus::{
    Entry, EntryKind, LogPosition, MemberId, MemberRole, Message, MessageBody, Proposal,
    SnapshotMeta,
};
use quorate_live::guest::Guest;
use quorate_live::{GroupStatus, Secret, SecretOptions, Security};
use quorate_wire::{LeaveAnswer, Packet, PeerIdentity, SnapshotBegin};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Between two commits, beyond what the machine takes without anybody's lies.
const GAP: Duration = Duration::from_millis(100);
const BASELINE: Duration = Duration::from_secs(3);
const ATTACK: Duration = Duration::from_secs(5);
/// What all lies of a test may cost in memory.
const BYTES_MAX: u64 = 256 << 20;

/// A group of three, and a fourth that was in it, and whose directory somebody has.
struct Scene {
    cluster: Cluster,
    security: Security,
    safe: PathBuf,
}

impl Scene {
    fn new(name: &str, role: MemberRole) -> Self {
        let file = format!("quorate-hostile-{name}-{}", std::process::id());
        let safe = std::env::temp_dir().join(file);
        let _absent = std::fs::remove_file(&safe);
        Secret::new().unwrap().write(&safe).unwrap();
        let options = SecretOptions { file: safe.clone(), dynamic: false };
        let security = Security::Secret(options);
        let mut cluster = Cluster::new(name, 4);
        for node in &mut cluster.nodes {
            node.options.security = security.clone();
        }
        cluster.nodes[3].options.role = role;
        for node in &mut cluster.nodes {
            node.start().unwrap();
            node.joined();
        }
        cluster.nodes[0].wait("all", |node| node.status().config.members.len() == 4);
        cluster.nodes[3].kill();
        Scene { cluster, security, safe }
    }

    /// As the fourth, after so many more starts than it had.
    fn identity(&self, starts: i64) -> PeerIdentity {
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

    fn dial(&self, at: usize, identity: PeerIdentity) -> Result<Guest, String> {
        let node = &self.cluster.nodes[at];
        let to = (node.id(), &*node.options.advertise);
        let dir = &self.cluster.nodes[3].options.dir;
        Guest::dial(to, identity, &self.security, Some(dir)).map_err(|error| error.to_string())
    }

    fn leader(&self) -> usize {
        let nodes = self.cluster.nodes[..3].iter();
        nodes.map(Node::status).position(|status| status.is_leader).expect("a leader")
    }

    fn lines(&self) -> usize {
        let of = |node: &Node| {
            let lines = node.shared.lines.lock();
            lines.iter().filter(|(_, line)| line.contains("does not count")).count()
        };
        self.cluster.nodes[..3].iter().map(of).max().unwrap_or(0)
    }

    /// Writes on one member, and looks at another, while `attack` goes on, and before. The group is as it was
    /// afterwards, and has all that was written.
    fn withstands(&mut self, attack: impl Fn(&Scene, &AtomicBool) + Sync) {
        let leader = self.leader();
        let before = self.cluster.nodes[leader].status();
        let idle = || self.longest_gap(BASELINE, |_, _| {});
        let usual = idle();
        let (lines, bytes) = (self.lines(), resident());
        let attacked = self.longest_gap(ATTACK, attack);
        let grown = resident().saturating_sub(bytes);
        let usual = usual.max(idle());
        let after = self.cluster.nodes[leader].status();
        assert_eq!((after.term, after.is_leader), (before.term, true), "{:?}", after.rejected);
        let votes = |status: &GroupStatus| status.voters.clone();
        assert_eq!(votes(&after), votes(&before));
        assert!(attacked < usual + GAP, "a gap of {attacked:?}, where {usual:?} is usual");
        let told = self.lines() - lines;
        let seconds = ATTACK.as_secs() as usize;
        assert!(told <= seconds + 2, "{told} lines in {seconds} seconds");
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
            let begun = Instant::now();
            let (mut longest, mut written) = (Duration::ZERO, Vec::new());
            while begun.elapsed() < time {
                let proposed = Instant::now();
                written.push(writer.propose());
                reader.await_applied(&written[written.len() - 1..]);
                longest = longest.max(proposed.elapsed());
            }
            ended.store(true, Ordering::SeqCst);
            self.cluster.nodes[2].await_applied(&written);
            longest
        })
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

fn figure(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// All that one without a vote can say of terms, indexes and others.
fn lies(to: MemberId, from: MemberId, status: &GroupStatus) -> Vec<Packet> {
    let (term, last) = (status.term, status.last_index);
    let end = LogPosition { term, index: last };
    let entry = |term| Entry::new(last + 1, term, EntryKind::Data, Bytes::from_static(b"forged"));
    let append =
        |term| MessageBody::Append { prev: end, entries: vec![entry(term)], commit: u64::MAX };
    let beat = || MessageBody::Heartbeat { commit: u64::MAX, round: u64::MAX };
    let said = [
        (term, beat()),
        (term + 1, beat()),
        (term + (1 << 47), beat()),
        (u64::MAX, beat()),
        (term, append(term)),
        (term + 1, append(term + 1)),
        (term + 1, MessageBody::Vote { last: end, transfer: true }),
        (term + 1, MessageBody::Vote { last: end, transfer: false }),
        (term + (1 << 33), MessageBody::ForcedVote { last: end }),
        (term + 1, MessageBody::PreVote { last: end }),
        (term, MessageBody::TimeoutNow),
        (term, MessageBody::AppendReply { matched: u64::MAX }),
        (term, MessageBody::AppendReply { matched: last + 1_000_000 }),
        (term, MessageBody::SnapshotReply { matched: u64::MAX }),
        (term, MessageBody::HeartbeatReply { round: u64::MAX, persisted_last: u64::MAX }),
        (term, MessageBody::ReadIndexReply { ctx: 0, index: 0 }),
        (term, MessageBody::VoteReply { granted: true }),
        (term + 1, MessageBody::PreVoteReply { granted: true }),
        (term, MessageBody::ForcedVoteReply { granted: true, commit: end }),
    ];
    let messages = said.map(|(term, body)| Packet::Consensus(Message { from, to, term, body }));
    let meta = SnapshotMeta {
        last: LogPosition { term: term + 1, index: last + 1_000 },
        config: status.config.clone(),
    };
    let others = [
        Packet::LeaveAnswer(LeaveAnswer::Done),
        Packet::StatusRequest,
        Packet::Ping,
        Packet::SnapshotBegin(SnapshotBegin { term: term + 1, meta, bytes: 4 }),
        Packet::SnapshotData(Bytes::from_static(b"fake")),
        Packet::SnapshotEnd { crc: crc32c::crc32c(b"fake") },
    ];
    messages.into_iter().chain(others).collect()
}

/// Says all of it, to each member, again and again.
fn lie(scene: &Scene, ended: &AtomicBool, more: &[Packet]) {
    let identity = scene.identity(1);
    let mut guests: Vec<Guest> =
        (0..3).map(|at| scene.dial(at, identity.clone()).expect("it is let in")).collect();
    while !ended.load(Ordering::SeqCst) {
        let status = scene.cluster.nodes[0].status();
        for (at, guest) in guests.iter_mut().enumerate() {
            let to = scene.cluster.nodes[at].id();
            let said = lies(to, identity.member, &status);
            if said.iter().chain(more).any(|packet| guest.says(packet).is_err()) {
                *guest = scene.dial(at, identity.clone()).expect("it is let in again");
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_member_without_a_vote_that_lies_about_terms_and_indexes_changes_nothing() {
    let mut scene = Scene::new("hostile-learner", MemberRole::Learner);
    scene.withstands(|scene, ended| lie(scene, ended, &[]));
    let rejected = scene.cluster.nodes[scene.leader()].status().rejected;
    for kind in ["leap", "never_sent", "no_voter", "second_leader", "unasked", "unsound"] {
        assert!(rejected.iter().any(|(known, count)| *known == kind && *count > 0), "{rejected:?}");
    }
}

#[test]
fn a_removed_member_with_its_old_key_changes_nothing() {
    let mut scene = Scene::new("hostile-removed", MemberRole::Voter);
    let leader = scene.leader();
    let node = &scene.cluster.nodes[leader];
    node.group().remove_member("n3", common::PATIENCE).unwrap();
    node.wait("its removal", |node| {
        let status = node.status();
        !status.config.is_joint() && status.voters.len() == 3
    });
    let proposal = Proposal::new(EntryKind::Data, Bytes::from_static(b"forged"));
    let wishes = [
        Packet::Forward(vec![proposal]),
        Packet::WantVotes { votes: 200 },
        Packet::ViewRefresh { number: u64::MAX },
    ];
    scene.withstands(|scene, ended| lie(scene, ended, &wishes));
    let rejected = scene.cluster.nodes[scene.leader()].status().rejected;
    for kind in ["no_member", "stranger", "no_voter"] {
        assert!(rejected.iter().any(|(known, count)| *known == kind && *count > 0), "{rejected:?}");
    }
}

#[test]
fn a_member_that_connects_again_and_again_and_never_ends_a_packet_takes_little() {
    let mut scene = Scene::new("hostile-flood", MemberRole::Learner);
    let threads = figure("Threads:");
    scene.withstands(|scene, ended| {
        let part = Packet::SnapshotData(Bytes::from(vec![0; 4 << 20]));
        let mut open = Vec::new();
        while !ended.load(Ordering::SeqCst) {
            for at in 0..3 {
                let mut guest = scene.dial(at, scene.identity(1)).expect("it is let in");
                let _replaced = guest.begins(&part);
                open.push(guest);
            }
            thread::sleep(Duration::from_millis(5));
        }
        let more = figure("Threads:").saturating_sub(threads);
        assert!(more < 40, "{more} threads more for {} connections", open.len());
    });
}

#[test]
fn a_member_with_a_rolled_back_directory_is_told_so() {
    let scene = Scene::new("hostile-rollback", MemberRole::Voter);
    let ahead = scene.dial(0, scene.identity(5));
    assert!(ahead.is_ok(), "{:?}", ahead.err());
    for starts in [4, 0, -1] {
        let refused = scene.dial(0, scene.identity(starts)).err().expect("a former start");
        assert!(refused.contains("start number"), "{refused}");
    }
}

#[test]
fn a_valid_certificate_for_another_name_opens_no_connection_as_a_member() {
    let authority = Authority::new("hostile-name");
    let issued = |at: usize| Security::Certificates(authority.issue(&format!("n{at}")));
    let cluster = Cluster::secured("hostile-name", 3, issued);
    let other = Security::Certificates(authority.issue("other"));
    let own = authority.files("n1", Some("ca.pem"));
    let victim = &cluster.nodes[1];
    let info = victim.info.as_ref().unwrap();
    let identity = PeerIdentity {
        member: info.member,
        incarnation: info.incarnation + 1,
        group: cluster.nodes[0].info.as_ref().unwrap().group,
        levels: (1, quorate_consensus::LEVEL),
        group_name: victim.options.group_name.clone(),
        name: victim.options.name.clone(),
        addr: victim.options.advertise.clone(),
        ..PeerIdentity::default()
    };
    let to = (cluster.nodes[0].id(), &*cluster.nodes[0].options.advertise);
    let dial = |security: &Security| Guest::dial(to, identity.clone(), security, None);
    let refused = dial(&other).err().expect("another name").to_string();
    assert!(refused.contains("another name"), "{refused}");
    let let_in = dial(&Security::Certificates(own));
    assert!(let_in.is_ok(), "{:?}", let_in.err());
}
