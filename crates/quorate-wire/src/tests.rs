//! Round trips of every packet, and decoders under random and mutated bytes.

use crate::frame::{FRAME_BODY_MAX, HEADER_BYTES, PLAIN_BODY_MAX};
use crate::*;
use bytes::Bytes;
use quorate_consensus::level::NEWEST;
use quorate_consensus::{
    Charter, Entry, EntryKind, KeyId, LogPosition, MemberId, Message, MessageBody, Proposal,
    SnapshotMeta,
};
use std::fs;
use std::path::Path;

const FROM: MemberId = MemberId(7);
const TO: MemberId = MemberId(9);

/// Deterministic noise (splitmix64).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

fn position(term: u64, index: u64) -> LogPosition {
    LogPosition { term, index }
}

fn identity() -> PeerIdentity {
    PeerIdentity {
        member: FROM,
        incarnation: 3,
        group: 5,
        charter: Charter([1, 2, 3, 4, u64::MAX]),
        levels: (1, 3),
        group_name: "cluster".into(),
        name: "n1".into(),
        addr: "127.0.0.1:4567".into(),
        incoming: "127.0.0.1:3306".into(),
        key: KeyId::default(),
    }
}

fn entry(index: u64, bytes: usize) -> Entry {
    let data = Bytes::from((0..bytes).map(|at| at as u8).collect::<Vec<_>>());
    Entry::new(index, 4, EntryKind::Data, data)
}

fn proposal(bytes: usize) -> Proposal {
    Proposal::new(EntryKind::Data, entry(1, bytes).data)
}

fn every_packet() -> Vec<Packet> {
    let bodies = [
        MessageBody::PreVote { last: position(1, 2) },
        MessageBody::PreVoteReply { granted: true },
        MessageBody::Vote { last: position(1, 2), transfer: true },
        MessageBody::VoteReply { granted: false },
        MessageBody::Append { prev: position(1, 2), entries: vec![], commit: 1 },
        MessageBody::Append {
            prev: position(1, 2),
            entries: vec![entry(3, 0), entry(4, 5000), entry(5, 10)],
            commit: 1,
        },
        MessageBody::AppendReply { matched: 9 },
        MessageBody::AppendReject { rejected: 8, hint: position(1, 1) },
        MessageBody::Heartbeat { commit: 3, round: 4 },
        MessageBody::HeartbeatReply { round: 4, persisted_last: 3 },
        MessageBody::ReadIndex { ctx: 1 },
        MessageBody::ReadIndexReply { ctx: 1, index: 2 },
        MessageBody::TimeoutNow,
        MessageBody::ForcedVote { last: position(1, 2) },
        MessageBody::ForcedVoteReply { granted: true, commit: position(3, 4) },
        MessageBody::SnapshotReply { matched: 5 },
    ];
    let message = |body| Packet::Consensus(Message { from: FROM, to: TO, term: 6, body });
    let mut packets: Vec<_> = bodies.into_iter().map(message).collect();
    let hello = Hello { versions: (1, 1), want: Want::Peer, from: identity(), expects: Some(TO) };
    packets.extend([
        Packet::Hello(hello),
        Packet::Welcome(Welcome { version: 1, from: identity() }),
        Packet::Refuse(Refusal { code: RefusalCode::OtherGroup, text: "other".into() }),
        Packet::Forward([0, 300, 9000].map(proposal).into()),
        Packet::JoinRequest(JoinRequest { last_index: 3, ..JoinRequest::default() }),
        Packet::JoinRequest(JoinRequest {
            last_index: 0,
            blank: true,
            wish: Wish {
                role: quorate_consensus::MemberRole::Logger,
                priority: 0,
                zone: "west".into(),
            },
        }),
        Packet::Admission(Admission::Granted),
        Packet::Admission(Admission::AskLeader { addr: "h:1".into() }),
        Packet::Admission(Admission::Later { reason: "r".into() }),
        Packet::Admission(Admission::Refused { reason: "r".into() }),
        Packet::LeaveRequest,
        Packet::LeaveAnswer(LeaveAnswer::Done),
        Packet::LeaveAnswer(LeaveAnswer::Later { reason: "r".into() }),
        Packet::ViewRefresh { number: 4 },
        Packet::WantVotes { votes: 3 },
        Packet::SnapshotData(entry(1, 3000).data),
        Packet::SnapshotEnd { crc: 77 },
        Packet::Ping,
        Packet::StatusRequest,
        Packet::StatusReport(vec![("a".into(), "b".into()), ("c".into(), "".into())]),
        // Since 0.2.0.
        Packet::Note(Proposal::new(EntryKind::Note, Bytes::from_static(b"a note"))),
        Packet::Standing(Standing {
            synced: true,
            prompt: false,
            applied: -1,
            certified: 7,
            index: 9,
            lag_ms: 20,
            written: 5,
        }),
    ]);
    packets
}

fn frames(packet: &Packet) -> Vec<u8> {
    let mut out = Vec::new();
    Fragmenter::of(packet).all_frames(&mut out);
    out
}

fn decode_all(bytes: &[u8], message_max: usize) -> Result<Vec<Packet>, ReadFailure> {
    let mut reader = FrameReader::new(bytes, message_max);
    let mut packets = Vec::new();
    loop {
        match reader.next_packet() {
            Ok((kind, body)) => packets.push(Packet::decode(kind, body, FROM, TO)?),
            Err(ReadFailure::Closed) => return Ok(packets),
            Err(failure) => return Err(failure),
        }
    }
}

#[test]
fn what_would_forge_a_line_of_a_log_arrives_as_question_marks() {
    let identity = PeerIdentity { name: "n1\n[ERROR] \x1b[2Jgone".into(), ..identity() };
    let hello = Hello { versions: (2, 2), want: Want::Peer, from: identity, expects: None };
    let bytes = frames(&Packet::Hello(hello));
    match decode_all(&bytes, 1 << 20).unwrap().remove(0) {
        Packet::Hello(hello) => assert_eq!(hello.from.name, "n1?[ERROR] ?[2Jgone"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_packet_survives_the_wire() {
    let packets = every_packet();
    let stream: Vec<u8> = packets.iter().flat_map(frames).collect();
    assert_eq!(decode_all(&stream, 1 << 20).unwrap(), packets);
}

/// Streams of all packets as releases wrote them, `tests/formats/RELEASE`. A release with another
/// protocol than the one before adds its file:
/// `QUORATE_WRITE_FORMATS=1 cargo test -p quorate-wire what_releases_said`
#[test]
fn what_releases_said_is_understood() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats");
    let now: Vec<u8> = every_packet().iter().flat_map(frames).collect();
    let newest = folder.join(NEWEST.release);
    if std::env::var_os("QUORATE_WRITE_FORMATS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        fs::write(&newest, &now).unwrap();
    }
    for release in fs::read_dir(&folder).unwrap() {
        let release = release.unwrap().path();
        let packets = decode_all(&fs::read(&release).unwrap(), 1 << 20).unwrap();
        let known = match release.ends_with("0.1.0") {
            true => every_packet().len() - 2,
            false => every_packet().len(),
        };
        assert_eq!(packets, every_packet()[..known], "{}", release.display());
    }
    let said = fs::read(&newest).expect("a release with a protocol of its own has its file");
    assert!(said == now, "another byte is another protocol, which is another level");
}

#[test]
fn what_is_short_by_nature_may_not_be_long() {
    let lines = vec![("name".to_owned(), "value".to_owned()); PLAIN_BODY_MAX / 8];
    let report = frames(&Packet::StatusReport(lines));
    let refused = decode_all(&report, usize::MAX).unwrap_err();
    let limit = PLAIN_BODY_MAX;
    assert!(
        matches!(refused, ReadFailure::Wire(WireError::MessageTooLong { limit: at, .. }) if at == limit),
        "{refused}"
    );
    let forward =
        Packet::Forward(vec![Proposal::new(EntryKind::Data, vec![0; PLAIN_BODY_MAX].into())]);
    assert_eq!(decode_all(&frames(&forward), usize::MAX).unwrap(), [forward]);
}

#[test]
fn a_snapshot_start_survives_the_wire() {
    let meta = SnapshotMeta { last: position(2, 10), config: Default::default() };
    let begin = Packet::SnapshotBegin(SnapshotBegin { term: 3, meta, bytes: 100 });
    assert_eq!(decode_all(&frames(&begin), 1 << 20).unwrap(), [begin]);
}

#[test]
fn urgent_packets_pass_between_fragments_of_a_large_one() {
    let large = Packet::Forward(vec![proposal(3 * FRAME_BODY_MAX)]);
    let urgent = Packet::LeaveRequest;
    assert!(urgent.is_urgent() && !large.is_urgent());
    // Asks what became of the entries before it: must not arrive first.
    let (from, to) = (MemberId(1), MemberId(2));
    let body = MessageBody::Append { prev: position(1, 1), entries: Vec::new(), commit: 0 };
    assert!(!Packet::Consensus(Message { from, to, term: 1, body }).is_urgent());
    let mut stream = Vec::new();
    let mut fragmenter = Fragmenter::of(&large);
    while fragmenter.next_frame(&mut stream) {
        stream.extend(frames(&urgent));
    }
    let packets = decode_all(&stream, 1 << 20).unwrap();
    assert_eq!(packets.len(), 4);
    assert_eq!(packets[3], large);
}

#[test]
fn a_message_beyond_the_limit_is_refused_by_size() {
    let large = frames(&Packet::Forward(vec![proposal(3 * FRAME_BODY_MAX)]));
    let failure = decode_all(&large, 2 * FRAME_BODY_MAX).unwrap_err();
    assert!(matches!(failure, ReadFailure::Wire(WireError::MessageTooLong { .. })), "{failure}");

    let small_limit = decode_all(&large, 4096).unwrap_err();
    assert!(matches!(small_limit, ReadFailure::Wire(WireError::FrameTooLong { .. })));
}

#[test]
fn an_impossible_count_is_refused_before_anything_is_allocated() {
    let body = Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let error = Packet::decode(FrameType::Forward, body, FROM, TO).unwrap_err();
    assert!(matches!(error, WireError::Truncated { .. }));
}

#[test]
fn strangers_are_refused_at_once() {
    for stranger in [&b"GET / HTTP/1.1\r\n"[..], b"\x16\x03\x01", b"\0", b"SSH-2.0"] {
        let failure = decode_all(stranger, 4096).unwrap_err();
        assert!(matches!(failure, ReadFailure::Wire(WireError::NotOurs { .. })), "{failure}");
    }
}

#[test]
fn one_flipped_bit_never_passes() {
    let mut noise = Noise(1);
    for packet in every_packet() {
        let stream = frames(&packet);
        for _ in 0..200 {
            let mut damaged = stream.clone();
            let at = noise.below(damaged.len());
            damaged[at] ^= 1 << noise.below(8);
            // Bytes 6 and 7 are reserved and covered by the checksum like all others.
            assert!(decode_all(&damaged, 1 << 20).is_err(), "{packet:?} at {at}");
        }
    }
}

/// The frames are made of what is in memory then: their checksums say nothing of what happened to
/// it since it was proposed.
#[test]
fn one_bit_flipped_before_the_frames_are_made_never_passes() {
    let forwarded = Packet::Forward(vec![proposal(40)]);
    let entries = vec![entry(3, 40)];
    let body = MessageBody::Append { prev: position(1, 2), entries, commit: 1 };
    let appended = Packet::Consensus(Message { from: FROM, to: TO, term: 5, body });
    // Up to and with its length the Append has: term, kind of message, prev, commit, count; and of
    // the entry index and term, which its leader gives it, so that no proposer's checksum covers
    // them.
    for (packet, covered_from) in [(forwarded, 4), (appended, 8 + 1 + 16 + 8 + 4 + 16)] {
        let sound = packet.encode().to_bytes();
        for bit in 8 * covered_from..8 * sound.len() {
            let mut altered = sound.to_vec();
            altered[bit / 8] ^= 1 << (bit % 8);
            let decoded = Packet::decode(packet.frame_type(), altered.into(), FROM, TO);
            assert!(decoded.is_err(), "bit {bit} of {packet:?}");
        }
    }
}

#[test]
fn decoders_bear_random_and_mutated_bodies() {
    let mut noise = Noise(2);
    let samples: Vec<_> =
        every_packet().iter().map(|packet| packet.encode().to_bytes().to_vec()).collect();
    for round in 0..60_000 {
        let mut bytes = if round % 3 == 0 {
            (0..noise.below(80)).map(|_| noise.next() as u8).collect()
        } else {
            samples[noise.below(samples.len())].clone()
        };
        for _ in 0..noise.below(4) {
            if bytes.is_empty() {
                break;
            }
            let at = noise.below(bytes.len());
            match noise.below(4) {
                0 => bytes[at] = noise.next() as u8,
                1 => bytes.truncate(at),
                2 => bytes.insert(at, noise.next() as u8),
                _ => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][noise.below(5)],
            }
        }
        let kind = FrameType::ALL[noise.below(FrameType::ALL.len())];
        if let Ok(packet) = Packet::decode(kind, Bytes::from(bytes), FROM, TO) {
            let again = Packet::decode(kind, packet.encode().to_bytes(), FROM, TO);
            assert_eq!(again.as_ref(), Ok(&packet));
        }
    }
}

#[test]
fn the_frame_reader_bears_random_streams() {
    let mut noise = Noise(3);
    let sample: Vec<u8> = every_packet().iter().flat_map(frames).collect();
    for _ in 0..3_000 {
        let mut stream = sample.clone();
        let from = noise.below(stream.len());
        stream.drain(..from);
        for _ in 0..1 + noise.below(HEADER_BYTES) {
            let at = noise.below(stream.len());
            stream[at] = noise.next() as u8;
        }
        let _outcome = decode_all(&stream, 4096);
    }
}

#[test]
fn proposals_and_entries_without_end_are_refused_before_they_are_made() {
    let read = |packet: Packet| {
        let body = packet.encode().to_bytes();
        Packet::decode(packet.frame_type(), body, MemberId(1), MemberId(2))
    };
    let proposals = |count: usize| {
        read(Packet::Forward(vec![Proposal::new(EntryKind::Data, Bytes::new()); count]))
    };
    assert!(proposals(1 << 16).is_ok());
    assert!(matches!(proposals((1 << 16) + 1), Err(WireError::BadValue { .. })));
    let entries = |count: usize| {
        let entries = vec![Entry::new(1, 1, EntryKind::Data, Bytes::new()); count];
        let body = MessageBody::Append { prev: LogPosition::default(), entries, commit: 0 };
        let (from, to) = (MemberId(1), MemberId(2));
        read(Packet::Consensus(Message { from, to, term: 1, body }))
    };
    assert!(entries(1 << 20).is_ok());
    assert!(matches!(entries((1 << 20) + 1), Err(WireError::BadValue { .. })));
}
