//! Committed entries as the layer above is shown them, from any state that a snapshot may hold.

use crate::source::Source;
use bytes::Bytes;
use quorate_consensus::level::OPERATORS;
use quorate_consensus::{Config, Entry, EntryKind, LogPosition, MemberId, SnapshotMeta, LEVEL};
use quorate_group::{Committed, Content, Feed, Stored, EVENTS_MAX, NOTES_MAX};

pub fn run(input: &[u8]) {
    let mut source = Source::new(input);
    let mut feed = beginning(&mut source);
    while !source.is_empty() {
        let entry = entry(&mut source, feed.position());
        let (before, view) = (feed.position(), feed.view().clone());
        let (position, intact) = (entry.position(), entry.is_intact());
        let Ok(shown) = feed.entry(entry) else {
            assert_eq!((feed.position(), feed.view()), (before, &view));
            continue;
        };
        assert!(intact && position.index == before.index + 1 && feed.position() == position);
        match shown {
            Some(Committed::View { view: shown, .. }) => {
                assert!(shown.number == view.number + 1 && *feed.view() == shown);
            }
            Some(Committed::Data { .. }) | None => assert_eq!(*feed.view(), view),
        }
        let noted = feed.take_noted();
        assert!(noted.is_none_or(|noted| noted.index == position.index));
        assert!(feed.notes().orders().count() <= NOTES_MAX);
        assert!(feed.notes().events().count() <= EVENTS_MAX);
        if feed.is_snapshot_due() {
            goes_on(&mut feed);
        }
    }
}

/// After a snapshot, as a member has it that starts from one.
fn beginning(source: &mut Source<'_>) -> Feed {
    let stored = Stored::decode(Bytes::copy_from_slice(source.long_block()));
    let nothing = Stored { meta: SnapshotMeta::default(), received: false };
    let mut stored = stored.unwrap_or(nothing);
    // The core takes no later one.
    stored.meta.last.index = stored.meta.last.index.min(1 << 62);
    let content = Content::decode(Bytes::copy_from_slice(source.long_block()));
    let (view, notes) = content.map(|c| (c.view, c.notes)).unwrap_or_default();
    let segment_bytes = 64 * u64::from(source.byte());
    Feed::new(("n1", MemberId(1)), LEVEL, segment_bytes, stored, view, notes)
}

/// Its snapshot is read, and says where it stands.
fn goes_on(feed: &mut Feed) {
    let (meta, content) = feed.snapshot().fill(Bytes::from_static(b"machine"));
    let stored = Stored { meta, received: false };
    let stored = Stored::decode(stored.encode()).expect("its own");
    let content = Content::decode(content).expect("its own");
    assert_eq!((stored.meta.last, &content.view), (feed.position(), feed.view()));
    // Before their level there are no notes.
    if stored.meta.config.level >= OPERATORS {
        assert_eq!(&content.notes, feed.notes());
    }
    feed.install(stored, content.view, content.notes);
}

fn entry(source: &mut Source<'_>, last: LogPosition) -> Entry {
    let kind = match source.below(6) {
        0 => EntryKind::Data,
        1 => EntryKind::View,
        2 => EntryKind::Config,
        3 => EntryKind::Noop,
        4 => EntryKind::Note,
        _ => EntryKind::from_code(source.byte()),
    };
    let data = match kind {
        EntryKind::Config if source.flag() => {
            let rules = source.below(2);
            let mut config = Config::default();
            config.rules.zones_min = rules;
            config.level = source.below(3).into();
            config.encode()
        }
        _ => Bytes::copy_from_slice(source.long_block()),
    };
    let index = if source.byte() == 255 { source.u64() } else { last.index + 1 };
    let mut entry = Entry::new(index, last.term.max(1), kind, data);
    if source.byte() == 255 {
        entry.sum ^= 1;
    }
    entry
}
