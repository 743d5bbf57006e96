//! Somebody who has a way in, and lies: about who it is, or within its own identity. Nothing is lost, forged or
//! voted for; the group's commits go on as before; what it costs is bounded.

mod common;
#[path = "common/scene.rs"]
mod scene;

use bytes::Bytes;
use common::authority::Authority;
use common::Cluster;
use quorate_consensus::{
    Entry, EntryKind, LogPosition, MemberId, MemberRole, Message, MessageBody, Proposal,
    SnapshotMeta,
};
use quorate_live::guest::{Guest, Host};
use quorate_live::{GroupStatus, Secret, SecretOptions, Security};
use quorate_wire::{
    LeaveAnswer, Packet, PeerIdentity, Refusal, RefusalCode, SnapshotBegin, Standing,
};
use scene::Scene;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

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
        (term + 1, MessageBody::AppendReply { matched: last }),
        (term + 1, MessageBody::AppendReject { rejected: last, hint: end }),
        (term + 1, MessageBody::SnapshotReply { matched: last }),
        (term + 1, MessageBody::HeartbeatReply { round: 0, persisted_last: last }),
        (term + 1, MessageBody::ReadIndex { ctx: 0 }),
        (term + 1, MessageBody::ReadIndexReply { ctx: 0, index: 0 }),
        (term + 1, MessageBody::PreVoteReply { granted: false }),
        (term + 1, MessageBody::VoteReply { granted: true }),
        (term + 1, MessageBody::ForcedVoteReply { granted: true, commit: end }),
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
        Packet::Standing(Standing {
            synced: true,
            prompt: true,
            applied: -1,
            certified: i64::MAX,
            index: u64::MAX,
            lag_ms: u32::MAX,
            written: u64::MAX,
        }),
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

/// It is no member any more.
fn remove_fourth(scene: &Scene) {
    let node = &scene.cluster.nodes[scene.leader()];
    node.operator().remove_member("n3", common::PATIENCE).unwrap();
    node.wait("its removal", |node| {
        let status = node.status();
        !status.config.is_joint() && status.voters.len() == 3
    });
}

#[test]
fn a_member_without_a_vote_that_lies_about_terms_and_indexes_changes_nothing() {
    let mut scene = Scene::new("hostile-learner", MemberRole::Learner);
    let proposal = Proposal::new(EntryKind::Data, Bytes::from_static(b"forged"));
    let forged = [Packet::Forward(vec![proposal])];
    // Beyond the term that it says to be in, once.
    scene.withstands_within(2, |scene, ended| lie(scene, ended, &forged));
    let rejected = scene.cluster.nodes[scene.leader()].status().rejected;
    let kinds = ["ahead", "forged", "leap", "never_sent", "no_voter", "second_leader", "unasked"];
    for kind in kinds.into_iter().chain(["unsound"]) {
        assert!(rejected.iter().any(|(known, count)| *known == kind && *count > 0), "{rejected:?}");
    }
}

#[test]
fn a_removed_member_with_its_old_key_changes_nothing() {
    let mut scene = Scene::new("hostile-removed", MemberRole::Voter);
    remove_fourth(&scene);
    let proposal = Proposal::new(EntryKind::Data, Bytes::from_static(b"forged"));
    let wishes = [
        Packet::Forward(vec![proposal]),
        Packet::WantVotes { votes: 200 },
        Packet::ViewRefresh { number: u64::MAX },
        Packet::LeaveRequest,
    ];
    scene.withstands(|scene, ended| lie(scene, ended, &wishes));
    let rejected = scene.cluster.nodes[scene.leader()].status().rejected;
    for kind in ["no_member", "stranger", "no_voter"] {
        assert!(rejected.iter().any(|(known, count)| *known == kind && *count > 0), "{rejected:?}");
    }
}

#[test]
fn who_is_no_member_any_more_says_nothing_long() {
    let scene = Scene::new("hostile-long", MemberRole::Voter);
    let node = &scene.cluster.nodes[0];
    let long = Bytes::from(b"forged".repeat(400_000));
    let long = Packet::Forward(vec![Proposal::new(EntryKind::Data, long)]);
    let forged = |node: &common::Node| {
        let rejected = node.status().rejected;
        rejected.iter().find(|(kind, _)| *kind == "forged").map_or(0, |(_, count)| *count)
    };
    let mut member = scene.dial(0, scene.identity(1)).expect("a member");
    member.says(&long).unwrap();
    node.wait("that it was heard", |node| forged(node) == 1);
    remove_fourth(&scene);
    let mut guest = scene.dial(0, scene.identity(2)).expect("a guest");
    // Its end may be noticed while it is still being said.
    let _cut_off = guest.says(&long);
    node.wait("the end of the connection", |node| {
        node.has_line("the limit for its sender is 1048576")
    });
    assert_eq!(forged(node), 1);
}

/// Followers could not receive it: nothing behind it would be committed any more.
#[test]
fn a_proposal_that_is_a_little_longer_than_any_may_be_is_not_taken() {
    let scene = Scene::new("hostile-longest", MemberRole::Voter);
    let node = &scene.cluster.nodes[scene.leader()];
    let longest = scene.cluster.nodes[0].options.proposal_bytes_max;
    let mut member = scene.dial(scene.leader(), scene.identity(1)).expect("a member");
    for (bytes, forged) in [(longest, 0), (longest + 1, 1)] {
        let before = node.status().last_index;
        let long = Proposal::new(EntryKind::Data, Bytes::from(vec![b'x'; bytes]));
        member.says(&Packet::Forward(vec![long])).unwrap();
        node.wait("what becomes of it", |node| {
            let status = node.status();
            let rejected = status.rejected.iter().find(|(kind, _)| *kind == "forged");
            let rejected = rejected.map_or(0, |(_, count)| *count);
            rejected == forged && (forged > 0 || status.commit_index > before)
        });
    }
}

#[test]
fn a_member_with_a_rolled_back_directory_is_told_so_and_changes_nothing() {
    let mut scene = Scene::new("hostile-rollback", MemberRole::Voter);
    for at in 0..3 {
        let ahead = scene.dial(at, scene.identity(5));
        assert!(ahead.is_ok(), "{:?}", ahead.err());
    }
    scene.withstands(|scene, ended| {
        let tries = (0..3).cycle().zip([4, 0, -1].into_iter().cycle());
        for (at, starts) in tries.take_while(|_| !ended.load(Ordering::SeqCst)) {
            let refused = scene.dial(at, scene.identity(starts)).err().expect("a former start");
            assert!(refused.contains("start number"), "{refused}");
        }
    });
}

/// Bytes that are said to each member's port by somebody who has nothing to show.
fn babble() -> Vec<Vec<u8>> {
    let hello = |want: u8| [b"QRT\x01\x01\0\0\0\x08\0\0\0".to_vec(), vec![want; 12]].concat();
    // The beginning of a TLS greeting of 512 bytes, of which the rest never comes.
    let greeting = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec();
    vec![b"GET / HTTP/1.1\r\n\r\n".to_vec(), hello(1), hello(3), greeting, Vec::new()]
}

#[test]
fn without_the_secret_nothing_is_heard_and_nothing_changes() {
    let mut scene = Scene::new("hostile-stranger", MemberRole::Voter);
    let wrong = std::env::temp_dir().join(format!("quorate-wrong-{}", std::process::id()));
    let _absent = std::fs::remove_file(&wrong);
    Secret::new().unwrap().write(&wrong).unwrap();
    let security = Security::Secret(SecretOptions { file: wrong.clone(), dynamic: false });
    scene.withstands(|scene, ended| {
        let dir = &scene.cluster.nodes[3].options.dir;
        let mut silent = VecDeque::new();
        for at in (0..3).cycle().take_while(|_| !ended.load(Ordering::SeqCst)) {
            let node = &scene.cluster.nodes[at];
            let to = (node.id(), &*node.options.advertise);
            // With a member's own key, but not the secret.
            let refused = Guest::dial(to, scene.identity(1), &security, Some(dir)).err();
            assert!(refused.is_some(), "a wrong secret is let in");
            for said in babble() {
                let mut stream = TcpStream::connect(&node.options.advertise).unwrap();
                stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                // Whom it has heard enough of it does not wait for.
                let _ended = stream.write_all(&said);
                let mut heard = Vec::new();
                let _ended = (&stream).take(4096).read_to_end(&mut heard);
                let heard = String::from_utf8_lossy(&heard);
                assert!(!heard.contains(&*node.options.name), "who is here: {heard}");
                silent.push_back(stream);
            }
            silent.drain(..silent.len().saturating_sub(40));
        }
    });
    std::fs::remove_file(&wrong).unwrap();
}

#[test]
fn another_certificate_of_the_same_ca_changes_nothing() {
    let authority = Authority::new("hostile-other");
    let mut scene = Scene::certified("hostile-other", &authority);
    scene.withstands(|scene, ended| {
        for at in (0..3).cycle().take_while(|_| !ended.load(Ordering::SeqCst)) {
            let refused = scene.dial(at, scene.identity(1)).err().expect("another name");
            assert!(refused.contains("another name"), "{refused}");
        }
    });
}

#[test]
fn a_guest_that_is_dialled_back_does_not_stop_a_member() {
    let scene = Scene::new("hostile-refusal", MemberRole::Voter);
    remove_fourth(&scene);
    let refusal = Refusal { code: RefusalCode::RolledBack, text: "an older state".into() };
    for at in 0..3 {
        let dir = &scene.cluster.nodes[3].options.dir;
        let host = Host::bind(&scene.security, Some(dir)).unwrap();
        let (member, addr) = (MemberId(99), host.addr().unwrap());
        let identity = PeerIdentity { member, addr, ..scene.identity(1) };
        let _connection = scene.dial(at, identity).expect("it is let in");
        host.answers(&Packet::Refuse(refusal.clone())).unwrap();
        let node = &scene.cluster.nodes[at];
        node.wait("that it does not count", |node| {
            node.status().rejected.iter().any(|(kind, count)| *kind == "no_member" && *count > 0)
        });
        assert!(node.shared.fatal.lock().is_empty());
        assert!(!node.options.dir.join("rolled-back").exists());
    }
    let written = [scene.cluster.nodes[0].propose()];
    scene.cluster.nodes[..3].iter().for_each(|node| node.await_applied(&written));
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
