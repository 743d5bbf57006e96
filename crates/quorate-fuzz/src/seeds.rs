//! The seeds of the corpus: real values, encoded, and short stories for the targets that tell some.
//!
//! `cargo run -p quorate-fuzz --example seeds` writes them, the same each time. What releases have written
//! is taken from `tests/formats` of the crates that read it.

use crate::certify::LIMITS;
use bytes::Bytes;
use quorate_certify::votes::Ballot;
use quorate_certify::{Sequenced, StateOutcome, StateRequest, VoteAct, VoteMessage};
use quorate_consensus::{Config, MemberId, MemberInfo, MemberRole, SnapshotMeta, LEVEL};
use quorate_group::{
    Author, Content, EventKind, EventNote, Mandate, Note, NoteId, Notes, OrderNote, OrderTaken,
    Parcel, Stored, View, ViewMember,
};
use quorate_live::port::{
    Answer, MemberChange, MemberReport, Plan, Report, Request, RulesChange, Why,
};
use quorate_node::start::isolated::action;
use quorate_wire::{Fragmenter, FrameReader, FrameType, Packet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// An input of a target.
pub struct Seed {
    pub target: &'static str,
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Longer packets are no better seeds.
const PACKET_BYTES_MAX: usize = 400;
/// Stories of chance, for the targets that tell some.
const STORIES: [(&str, usize, u64); 6] = [
    ("peer", 700, 6),
    ("entries", 800, 2),
    ("feed", 400, 1),
    ("votes", 200, 1),
    ("genesis", 90, 2),
    ("snapshot_packets", 60, 1),
];

/// All of them.
pub fn all() -> io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    let mut add = |target, name: &str, bytes: &[u8]| {
        seeds.push(Seed { target, name: format!("seed-{name}"), bytes: bytes.to_vec() });
    };
    packets(&mut add)?;
    proposals(&mut add)?;
    files(&mut add)?;
    group(&mut add);
    certificates(&mut add);
    texts(&mut add);
    operators(&mut add);
    for (target, length, count) in STORIES {
        (1..=count)
            .for_each(|number| add(target, &format!("story-{number}"), &story(number, length)));
    }
    Ok(seeds)
}

/// The committed corpus of a target.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// What the first release wrote.
fn format_of(package: &str, file: &str) -> io::Result<Vec<u8>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read(crates.join(package).join("tests/formats").join(file))
}

/// One of each type, as the first release said it.
fn packets(add: &mut impl FnMut(&'static str, &str, &[u8])) -> io::Result<()> {
    let stream = format_of("quorate-wire", "0.1.0")?;
    let mut reader = FrameReader::new(&stream[..], 1 << 20);
    let (mut number, mut frames) = (0, Vec::new());
    while let Ok((frame_type, body)) = reader.next_packet() {
        if body.len() > PACKET_BYTES_MAX {
            continue;
        }
        number += 1;
        let code = FrameType::ALL.iter().position(|known| *known == frame_type);
        let code = code.unwrap_or_default() as u8;
        add("wire_packet", &format!("{number:02}"), &[&[code], &body[..]].concat());
        let packet = Packet::SnapshotData(body);
        Fragmenter::new(frame_type, packet.encode()).all_frames(&mut frames);
    }
    add("wire_frame", "stream", &[&[15], &frames[..]].concat());
    // A packet in two frames, and what begins like one.
    add("wire_frame", "repaired", &[16 | 8, 16, 0, 13, 3, 3, 1, 2, 3, 15, 200]);
    Ok(())
}

/// Entries, and the state that follows from them.
fn proposals(add: &mut impl FnMut(&'static str, &str, &[u8])) -> io::Result<()> {
    let entries = format_of("quorate-certify", "0.1.0/entries")?;
    let (mut rest, mut number) = (&entries[..], 0);
    while let Some((length, tail)) = rest.split_first_chunk() {
        let (entry, tail) = tail.split_at(u32::from_le_bytes(*length) as usize);
        (rest, number) = (tail, number + 1);
        add("write_set", &format!("{number:02}"), entry);
    }
    let state = format_of("quorate-certify", "0.1.0/state")?;
    add("sequenced", "state", &state);
    let restored = Sequenced::restore(&state).map_err(io::Error::other)?;
    let certifier = restored.certifier.snapshot();
    let (content, _checksum) = certifier.split_at(certifier.len() - 8);
    add("certifier", "whole", &certifier);
    add("certifier", "content", content);
    let votes = restored.votes.encode();
    add("votes", "state", &votes);
    let transfers = part(&state, 1);
    add("transfers", "state", transfers);
    let parts = [&[2][..], &short(&votes), &votes, &short(transfers), transfers, content].concat();
    add("sequenced", "parts", &parts);
    for (name, act) in [("cast", VoteAct::Cast(Ballot::Dissent(9))), ("close", VoteAct::Close)] {
        let vote = VoteMessage { seqno: 5, policy: 1, act, text: "1062;".into() };
        add("messages", name, &vote.encode());
    }
    let message = Bytes::from_static(b"rsync\0host:4444\0");
    add("messages", "request", &StateRequest { donor: 12, joiner: 13, message }.encode());
    add("messages", "outcome", &StateOutcome { joiner: 13, code: -5 }.encode());
    Ok(())
}

/// A part of a snapshot of all that follows from the log.
fn part(state: &[u8], number: usize) -> &[u8] {
    let mut rest = &state[5..];
    for _ in 0..number {
        let (length, tail) = rest.split_first_chunk().expect("a length");
        rest = &tail[u32::from_le_bytes(*length) as usize..];
    }
    let (length, tail) = rest.split_first_chunk().expect("a length");
    &tail[..u32::from_le_bytes(*length) as usize]
}

/// A length as `Source::long_block` reads it.
fn short(part: &[u8]) -> [u8; 2] {
    (part.len() as u16).to_le_bytes()
}

/// Files of a log directory.
fn files(add: &mut impl FnMut(&'static str, &str, &[u8])) -> io::Result<()> {
    let meta = format_of("quorate-live", "0.1.0/meta")?;
    add("wal_meta", "slot", &meta[..512]);
    let snapshot = format_of("quorate-live", "0.1.0/snap-000000000000002a")?;
    add("wal_snapshot", "file", &snapshot);
    let mut records = vec![0; 12];
    for index in 1..9 {
        records.extend([1, 0, 2, 0, 0, 64, 0, index, 4, 1, 2, 3]);
    }
    add("wal_segment", "entries", &records);
    let truncated = [&records[..], &[4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0], &[20, 3]].concat();
    add("wal_segment", "truncated", &truncated);
    add("wal_sealed_segment", "entries", &records);
    add("wal_sealed_segment", "truncated", &truncated);
    add("wal_sealed_segment", "head", &quorate_wal::fuzzing::sealed_head());
    add("wal_snapshot", "sealed", &[&snapshot[..40], &[7; 80], &snapshot[40..], &[7; 16]].concat());
    add("wal_segment", "head", &format_of("quorate-live", "0.1.0/log-0000000000000001")?[..64]);
    Ok(())
}

fn group(add: &mut impl FnMut(&'static str, &str, &[u8])) {
    let info = |id: u128| MemberInfo::new(MemberRole::Voter, format!("node{id}"), format!("n{id}"));
    let member = |id| (MemberId(id), info(id));
    let three = Config { members: (1..=3).map(member).collect(), level: 1, ..Config::default() };
    let joint = Config {
        outgoing: vec![MemberId(1), MemberId(1), MemberId(4)],
        lost: vec![MemberId(7)],
        audit: "by force".into(),
        ..three.clone()
    };
    add("config", "three", &three.encode());
    add("config", "joint", &joint.encode());
    let member = |id| ViewMember {
        id: MemberId(id),
        incarnation: 2,
        name: format!("n{id}"),
        incoming: format!("host{id}:3306"),
        addr: format!("node{id}"),
    };
    for (name, primary) in [("multi", None), ("single", Some(MemberId(2)))] {
        let view = View { number: 4, members: vec![member(1), member(2)], primary };
        let machine = Sequenced::beginning(LIMITS, 3).snapshot();
        let notes = Notes::default();
        let content = Content { view, notes, machine }.encode(1);
        add("snapshot_content", name, &content);
        let length = u32::from_le_bytes([content[1], content[2], content[3], content[4]]);
        add("view", name, &content[5..5 + length as usize]);
    }
    let order = |number, outcome| {
        let id = NoteId { member: MemberId(1), incarnation: 2, number };
        let author = Author { name: "root@localhost".into(), from: "10.0.0.9".into() };
        let mandate = Mandate { author, given_ms: 1_764_018_300_123 };
        let taken = OrderTaken::new(id, "n1", mandate, "switchover to n2");
        Note::Order(OrderNote::new(taken, outcome))
    };
    let event = |number, kind, what| {
        let id = NoteId { member: MemberId(1), incarnation: 2, number };
        Note::Event(EventNote::new(id, "n1", 1_764_018_300_456, kind, what))
    };
    let mut notes = Notes::default();
    for (index, (name, note)) in [
        ("done", order(1, Ok("n2 leads".into()))),
        ("refused", order(2, Err("it does not lead".into()))),
        ("leader", event(3, EventKind::Leader, "n1 leads in term 4: n2 handed leadership over")),
        ("transfer", event(4, EventKind::Transfer, "received the state of n2, up to seqno 70")),
    ]
    .into_iter()
    .enumerate()
    {
        add("note", name, &note.encode());
        notes.take(index as u64 + 1, note);
    }
    add("note", "all", &notes.encode());
    let machine = Sequenced::beginning(LIMITS, 3).snapshot();
    let view = View { number: 4, members: vec![member(1)], primary: None };
    add("snapshot_content", "notes", &Content { view, notes, machine }.encode(LEVEL));
    let last = quorate_consensus::LogPosition { term: 3, index: 70 };
    let meta = SnapshotMeta { last, config: three };
    let stored = Stored { meta: meta.clone(), received: true }.encode();
    add("snapshot_content", "stored", &stored);
    let begin = Parcel::new(3, meta, Bytes::from_static(b"content")).next();
    let begin = begin.map(|packet| packet.encode().to_bytes()).unwrap_or_default();
    let head = [&[0, begin.len() as u8][..], &begin].concat();
    add("snapshot_packets", "whole", &[&head[..], &[2, 7], b"content", &[3]].concat());
    let beginning = [&short(&stored)[..], &stored, &[0, 0, 4]].concat();
    let data = [0, 5, 0, 1, 2, 3, 4, 5, 0, 0];
    add("feed", "data", &[&beginning[..], &data, &data].concat());
}

/// Without a signature of anybody's: the parts that are read, with and without names.
fn certificates(add: &mut impl FnMut(&'static str, &str, &[u8])) {
    fn part(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let length = match content.len() {
            short @ ..128 => vec![short as u8],
            long => vec![0x82, (long >> 8) as u8, long as u8],
        };
        [&[tag][..], &length, &content].concat()
    }
    const SEQUENCE: u8 = 0x30;
    let sequence = |parts: &[&[u8]]| part(SEQUENCE, parts);
    let algorithm = sequence(&[&part(0x06, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]])]);
    let name = sequence(&[&part(
        0x31,
        &[&sequence(&[&part(0x06, &[&[0x55, 4, 3]]), &part(0x0c, &[b"node"])])],
    )]);
    let validity = sequence(&[&part(0x17, &[b"250101000000Z"]), &part(0x17, &[b"350101000000Z"])]);
    let names =
        [part(0x82, &[b"db1.example"]), part(0x82, &[b"*.x"]), part(0x87, &[&[10, 0, 0, 1]])];
    let names = sequence(&[&names.concat()]);
    let extension = sequence(&[&part(0x06, &[&[0x55, 0x1d, 0x11]]), &part(0x04, &[&names])]);
    let extensions = part(0xa3, &[&sequence(&[&extension])]);
    let public = sequence(&[&algorithm, &part(0x03, &[&[0, 4]])]);
    for (kind, extensions) in [("names", &extensions[..]), ("subject", &[])] {
        let signed = sequence(&[
            &part(0xa0, &[&part(0x02, &[&[2]])]),
            &part(0x02, &[&[7]]),
            &algorithm,
            &name,
            &validity,
            &name,
            &public,
            extensions,
        ]);
        add("certificate", kind, &sequence(&[&signed, &algorithm, &part(0x03, &[&[0, 1]])]));
    }
}

fn operators(add: &mut impl FnMut(&'static str, &str, &[u8])) {
    add("operator_claim", "ann", &[&[1, 3][..], b"ann", &[7; 32]].concat());
    let change = MemberChange { name: "n1".into(), priority: Some(7), ..MemberChange::default() };
    let requests = [
        ("status", Request::Status),
        ("switchover", Request::Switchover { to: Some("n2".into()) }),
        ("member", Request::MemberSet(change)),
        ("rules", Request::Rules(RulesChange { zones: Some(2), ..RulesChange::default() })),
        ("force", Request::ForceQuorum { keep: vec!["n1".into()], reason: "fire".into() }),
    ];
    for (name, request) in requests {
        add("operator_request", name, &request.encode().expect("a request"));
    }
    let members = vec![MemberReport { levels: Some((1, 2)), ..MemberReport::default() }];
    let answers = [
        ("status", Answer::Status(Box::new(Report { members, ..Report::default() }))),
        ("plan", Answer::Plan(Plan { refusal: Some("no".into()), ..Plan::default() })),
        ("leader", Answer::AskLeader { name: "n1".into(), address: "a:1".into() }),
        ("refused", Answer::refused(Why::Permission, "no")),
    ];
    for (name, answer) in answers {
        add("operator_answer", name, &answer.encode().expect("an answer"));
    }
    let credential = "# of a test\nquorate-operator-1 ann read \
                      abababababababababababababababababababababababababababababababab 85357ed3";
    add("operator_texts", "credential", credential.as_bytes());
    add("operator_texts", "list", b"ann,bob:read, db1.example.com,::1:read");
    for (name, asked) in [
        ("bearer", "Bearer token"),
        ("basic", "Basic YW5uOnRva2Vu"),
        ("lag", "1.5MB"),
        ("age", "200ms"),
        ("time", "2099-01-01T00:00+01:00"),
        ("order", r#"{"leader":"n1","candidate":"n2","scheduled_at":"2098-01-01T00:00Z"}"#),
    ] {
        add("agent_request", name, asked.as_bytes());
    }
}

fn texts(add: &mut impl FnMut(&'static str, &str, &[u8])) {
    let statement = [&b"drop"[..], &action::trailer(&[("db".into(), "t".into())])].concat();
    add("action", "drop", &statement);
    let grastate = "# GALERA saved state\nversion: 2.1\n\
                    uuid:    0000002a-0000-0000-0000-000000000000\nseqno:   -1\n\
                    safe_to_bootstrap: 0\n";
    add("grastate", "galera", grastate.as_bytes());
    let marked = format!("{grastate}# Quorate group {:032x}\n# Quorate GTID domain 7\n", 77);
    add("grastate", "marked", marked.as_bytes());
    let seven = format!("{:032x}", 7);
    let isolated = format!(
        "{seven} 3 begun 00000000000000ab\n{seven} 3 severs {seven}:1f {seven}:2\n{seven} 3 done\n\
         {seven} 4 beg"
    );
    add("refused_database", "database", b"0000002a-0000-0000-0000-000000000000:12\n");
    add("isolated_notes", "notes", isolated.as_bytes());
    let errors = format!(
        "{seven} base 10\n{seven} error 12 00000000000000ab\n{seven} dissent 15 00000000000000cd\n"
    );
    add("error_notes", "notes", errors.as_bytes());
    add("galera_cache", "ring", &galera_ring());
    for (name, text) in [
        ("hosts", "gcomm://10.0.0.1,b:4030,[::1]:5?pc.weight=1&base_port=9"),
        ("incoming", ":3306 [fd00::2]:4567"),
        ("bare", "tcp://::1"),
    ] {
        add("cluster_address", name, text.as_bytes());
    }
    for (name, text) in [
        (
            "galera",
            "base_port=4030; gcache.size=10M;evs.suspect_timeout=PT10S;;pc.ignore_sb = true",
        ),
        ("tls", "socket.ssl=1;socket.ssl_key=/k;socket.ssl_cert=/c;socket.ssl_ca=/a"),
        ("command", "quorate.switchover=node2; debug=yes; quorate.exit_action=abort"),
        ("period", "repl.causal_read_timeout=P1DT1M; quorate.expel_timeout=0.5"),
    ] {
        add("options", name, text.as_bytes());
    }
    for (name, text) in [
        ("member", "node2 role=learner priority=7 zone=eu"),
        ("rules", "zones=2 priorities=forced primary_mode=single leader_follows_writes=yes"),
    ] {
        add("orders", name, text.as_bytes());
    }
}

/// Buffers 6 to 9, of which the last two are views, as the target reads it: position and place first.
fn galera_ring() -> Vec<u8> {
    let first = 1280_u16.to_le_bytes();
    let mut bytes = vec![9, first[0], first[1]];
    bytes.resize(3 + 256, 0);
    for (seqno, kind) in [(6_i64, 0), (7, 0), (8, 3), (9, 3)] {
        bytes.extend_from_slice(&seqno.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&24_u32.to_le_bytes());
        bytes.extend_from_slice(&[0, 0, 1, kind]);
    }
    bytes.resize(bytes.len() + 24, 0);
    bytes
}

/// Bytes of chance, the same for the same number (splitmix64).
fn story(number: u64, length: usize) -> Vec<u8> {
    let mut state = number;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 56
    };
    (0..length).map(|_| next() as u8).collect()
}
