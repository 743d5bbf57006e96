//! The group's own entries and snapshots.

use crate::source::Source;
use bytes::Bytes;
use quorate_consensus::{Config, MemberId, LEVEL};
use quorate_group::{
    Assembly, Content, Note, Notes, Stored, EVENTS_MAX, NOTES_MAX, NOTE_BYTES_MAX,
};
use quorate_wire::{FrameType, Packet, SnapshotBegin};

/// A membership: one that is read is written the same.
pub fn config(input: &[u8]) {
    let decoded = Config::decode(input);
    if let Ok(config) = &decoded {
        assert_eq!(config.encode(), input);
        let votes: usize = config.members.values().map(|info| usize::from(info.votes)).sum();
        assert!(config.votes().count() <= votes && config.voters().count() <= config.members.len());
        assert!(!config.is_quorum(|_| false));
    }
    let known = Config::decode_up_to(LEVEL, input);
    assert_eq!(known.is_ok(), decoded.is_ok_and(|config| config.level <= LEVEL));
}

/// A view, as it stands in a snapshot's content.
pub fn view(input: &[u8]) {
    let length = (input.len() as u32).to_le_bytes();
    content(&[&[1], &length[..], input, b"machine"].concat());
}

/// What a snapshot's file holds, and what it says of itself.
pub fn content(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    if let Ok(content) = Content::decode(bytes.clone()) {
        assert_eq!(Content::decode(content.encode(LEVEL)), Ok(content));
    }
    if let Ok(stored) = Stored::decode(bytes) {
        assert_eq!(Stored::decode(stored.encode()), Ok(stored));
    }
}

/// A note, alone and as one of many.
pub fn note(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    if let Ok(note) = Note::decode(bytes.clone()) {
        assert_eq!(Note::decode(note.encode()), Ok(note.clone()));
        assert!(note.encode().len() <= NOTE_BYTES_MAX);
        let shown = note.to_string();
        assert!(shown.starts_with("id=") && !shown.contains(char::is_control));
    }
    if let Ok(notes) = Notes::decode(bytes) {
        assert!(notes.orders().count() <= NOTES_MAX && notes.events().count() <= EVENTS_MAX);
        assert_eq!(Notes::decode(notes.encode()), Ok(notes));
    }
}

/// Packets that carry snapshots, in any order: what comes out is what was announced.
pub fn packets(input: &[u8]) {
    let mut source = Source::new(input);
    let mut assembly = Assembly::new(MemberId(2));
    let (mut begun, mut came) = (None, Vec::new());
    while !source.is_empty() {
        let Some(packet) = next_packet(&mut source, &came) else { continue };
        match &packet {
            Packet::SnapshotBegin(begin) => (begun, came) = (Some(begin.clone()), Vec::new()),
            Packet::SnapshotData(data) => came.extend_from_slice(data),
            _ => {}
        }
        match assembly.take(packet) {
            Ok(Some((received, content))) => {
                let SnapshotBegin { term, meta, bytes } = begun.take().expect("it was begun");
                assert_eq!((received.term, received.meta), (term, meta));
                assert!(content == came && content.len() as u64 == bytes);
            }
            Ok(None) => {}
            // The connection ends.
            Err(_) => return,
        }
    }
}

fn next_packet(source: &mut Source<'_>, came: &[u8]) -> Option<Packet> {
    let decoded = |frame_type, body| Packet::decode(frame_type, body, MemberId(2), MemberId(1));
    Some(match source.below(5) {
        0 => decoded(FrameType::SnapshotBegin, source.block()).ok()?,
        1 => {
            let (term, bytes) = (source.near(3), source.near(4));
            Packet::SnapshotBegin(SnapshotBegin { term, meta: Default::default(), bytes })
        }
        2 => Packet::SnapshotData(source.block()),
        3 => Packet::SnapshotEnd { crc: crc32c::crc32c(came) },
        _ => decoded(source.one_of(&FrameType::ALL), source.block()).ok()?,
    })
}
