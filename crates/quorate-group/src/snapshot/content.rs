//! What a snapshot's file holds.

use crate::note::Notes;
use crate::view::View;
use bytes::Bytes;
use quorate_consensus::level::{self, Level, LEVEL, NEWEST};
use quorate_consensus::{Config, Index, LogPosition, SnapshotMeta};
use quorate_wire::{BodyReader, BodyWriter, WireError};

const VERSION: u8 = 1;
/// With the notes of operators' orders, which there are from [`level::OPERATORS`] on.
const VERSION_WITH_NOTES: u8 = 2;
const _: () = assert!(VERSION_WITH_NOTES == NEWEST.snapshot);
/// Of the meta: since 2 it says where the snapshot came from.
const META_VERSION: u8 = 2;
const META_VERSION_FIRST: u8 = 1;
const _: () = assert!(META_VERSION == NEWEST.snapshot_meta);

/// What the file of a snapshot says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub meta: SnapshotMeta,
    /// From a leader; else this member took it itself, of entries that it had on disk. Files of
    /// version 1 do not say: they count as the latter, which forbids more.
    pub received: bool,
}

/// What a snapshot holds: the group's own part, and the state machine's.
#[derive(Debug, PartialEq, Eq)]
pub struct Content {
    pub view: View,
    pub notes: Notes,
    pub machine: Bytes,
}

/// The group's own part of a snapshot: what there is of one before the state machine's part is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    pub meta: SnapshotMeta,
    pub view: View,
    pub notes: Notes,
}

impl Outline {
    /// The last entry that it stands for.
    pub fn index(&self) -> Index {
        self.meta.last.index
    }

    /// The snapshot with this state machine's part.
    pub fn fill(self, machine: Bytes) -> (SnapshotMeta, Bytes) {
        let content = Content { view: self.view, notes: self.notes, machine };
        let encoded = content.encode(self.meta.config.level);
        (self.meta, encoded)
    }
}

impl Content {
    /// As it stands in a group at this level.
    pub fn encode(&self, level: Level) -> Bytes {
        let mut out = BodyWriter::default();
        let with_notes = level >= level::OPERATORS;
        out.u8(if with_notes { VERSION_WITH_NOTES } else { VERSION });
        out.data(&self.view.encode());
        if with_notes {
            out.data(&self.notes.encode());
        }
        out.rest(&self.machine);
        out.finish().to_bytes()
    }

    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut body = BodyReader::new(bytes, "snapshot");
        let version = body.u8()?;
        if ![VERSION, VERSION_WITH_NOTES].contains(&version) {
            return Err(unknown_version(version));
        }
        let view = View::decode(body.data()?)?;
        let notes = match version {
            VERSION_WITH_NOTES => Notes::decode(body.data()?)?,
            _ => Notes::default(),
        };
        Ok(Self { view, notes, machine: body.rest() })
    }
}

impl Stored {
    pub fn encode(&self) -> Bytes {
        let mut out = BodyWriter::default();
        out.u8(META_VERSION);
        out.u64(self.meta.last.term);
        out.u64(self.meta.last.index);
        out.u8(self.received.into());
        out.rest(&self.meta.config.encode());
        out.finish().to_bytes()
    }

    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut body = BodyReader::new(bytes, "snapshot meta");
        let version = body.u8()?;
        if ![META_VERSION_FIRST, META_VERSION].contains(&version) {
            return Err(unknown_version(version));
        }
        let last = LogPosition { term: body.u64()?, index: body.u64()? };
        let received = version == META_VERSION && body.u8()? != 0;
        let config = Config::decode(&body.rest());
        let config = config.map_err(|error| WireError::BadConfig(error.to_string()))?;
        Ok(Self { meta: SnapshotMeta { last, config }, received })
    }
}

fn unknown_version(version: u8) -> WireError {
    let upgrade = level::upgrade(LEVEL + 1);
    WireError::Newer(format!("the snapshot's layout has version {version}: {upgrade}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_where_its_snapshot_came_from_and_an_old_one_counts_as_own() {
        let meta =
            SnapshotMeta { last: LogPosition { term: 3, index: 70 }, config: Config::default() };
        for received in [false, true] {
            let stored = Stored { meta: meta.clone(), received };
            assert_eq!(Stored::decode(stored.encode()), Ok(stored));
        }
        let mut old = BodyWriter::default();
        old.u8(1);
        old.u64(3);
        old.u64(70);
        old.rest(&meta.config.encode());
        let read = Stored::decode(old.finish().to_bytes());
        assert_eq!(read, Ok(Stored { meta, received: false }));
    }
}
