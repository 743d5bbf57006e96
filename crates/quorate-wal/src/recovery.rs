//! Opening: what the files of the directory add up to. Changes nothing on disk.
//!
//! Segments before the first one named by the meta file, and files under other names than
//! `log-<sequence>`, are leftovers. What counts must be there without a gap, each file with its
//! full size and an intact header; records are judged as [`crate::scan`] says. Memory is taken for a
//! window of a file ([`crate::window`]), however long the files are.

use crate::disk::Disk;
use crate::error::{IoContext, WalError};
use crate::index::{Placement, SparseIndex};
use crate::replay::Replay;
use crate::scan::{behind, walk, Behind, Chain};
use crate::seal::DiskKeys;
use crate::segment::{file_name, parse_file_name, Segment, HEADER_BYTES};
use crate::segment_files::is_leftover_name;
use crate::tail::End;
use crate::window::{Window, WINDOW_BYTES};
use quorate_consensus::MemberId;
use std::ops::Range;
use std::sync::Arc;

pub(crate) struct Found {
    pub(crate) replay: Replay,
    pub(crate) index: SparseIndex,
    pub(crate) end: End,
    pub(crate) torn_bytes: u64,
    /// Records of the last write, which nothing proves to be on disk rather than in the kernel's
    /// memory.
    pub(crate) unproven: Option<(Arc<Segment>, Range<u64>)>,
    /// Prepared for what follows the end, if it is.
    pub(crate) next: Option<Arc<Segment>>,
    /// Files of ours that hold nothing of the log.
    pub(crate) leftovers: Vec<String>,
}

/// Reads the log that begins in segment `first`.
pub(crate) fn recover(
    disk: &dyn Disk,
    member: MemberId,
    first: u64,
    keys: &DiskKeys,
) -> Result<Found, WalError> {
    let (sequences, mut leftovers) = inventory(disk, first)?;
    let segments = open_all(disk, member, &sequences, keys)?;
    let mut log = Log::default();
    let mut current = 0;
    let torn_bytes = loop {
        let segment = segments.get(current).ok_or_else(|| missing(disk, first + current as u64))?;
        let mut window = Window::new(&**segment, WINDOW_BYTES);
        if log.take(segment, &mut window)? {
            current += 1;
            continue;
        }
        let torn_bytes = log.judge(segment, &mut window)?;
        for later in &segments[current + 1..] {
            log.must_be_empty(later, segment)?;
        }
        break torn_bytes;
    };
    let segment = segments[current].clone();
    let mut rest = segments.into_iter().skip(current + 1);
    let next = rest.next();
    leftovers.extend(rest.map(|s| file_name(s.sequence())));
    let crc = log.chain.crc.unwrap_or_default();
    let end = End { segment, offset: log.end, crc, last: log.replay.last };
    let Log { replay, index, unproven, .. } = log;
    Ok(Found { replay, index, end, torn_bytes, unproven, next, leftovers })
}

#[derive(Default)]
struct Log {
    replay: Replay,
    index: SparseIndex,
    chain: Chain,
    end: u64,
    unproven: Option<(Arc<Segment>, Range<u64>)>,
}

impl Log {
    /// Adds the good records of the next segment; false if the log ends in it.
    fn take(&mut self, segment: &Arc<Segment>, window: &mut Window<'_>) -> Result<bool, WalError> {
        self.index.apply(Placement::Segment(segment.clone()));
        let Log { replay, index, chain, .. } = self;
        let walk = walk(window, &segment.codec, chain, |record| {
            let placement =
                replay.apply(record).map_err(|what| segment.damaged(record.offset, what))?;
            if let Some(placement) = placement {
                index.apply(placement);
            }
            Ok(())
        })?;
        if walk.sealed {
            // The rest is nobody's, but is to be readable as well: else the disk is failing.
            window.at(segment.size(), 0)?;
        }
        self.end = walk.end;
        if walk.end > HEADER_BYTES {
            self.unproven = Some((segment.clone(), walk.synced..walk.end));
        }
        Ok(walk.sealed)
    }

    /// Tells a torn tail (returning its bytes) from damage.
    fn judge(&self, segment: &Segment, window: &mut Window<'_>) -> Result<u64, WalError> {
        match behind(window, &segment.codec, self.end, self.chain.incarnation)? {
            Behind::Nothing => Ok(0),
            Behind::Torn { end } => Ok(end - self.end),
            Behind::Synced { offset } => Err(segment.damaged(
                self.end,
                format!("the record there is unreadable, a later one at {offset} is intact"),
            )),
        }
    }

    /// Records were written to `later` only when `ending` was synced up to its `End`.
    fn must_be_empty(&self, later: &Segment, ending: &Segment) -> Result<(), WalError> {
        let mut window = Window::new(later, WINDOW_BYTES);
        match behind(&mut window, &later.codec, HEADER_BYTES, self.chain.incarnation)? {
            Behind::Nothing => Ok(()),
            _ => Err(ending.damaged(
                self.end,
                format!(
                    "the record there is unreadable, but the log goes on in {}",
                    file_name(later.sequence())
                ),
            )),
        }
    }
}

/// The log's sequence numbers, ascending without a gap, and the leftovers.
fn inventory(disk: &dyn Disk, first: u64) -> Result<(Vec<u64>, Vec<String>), WalError> {
    let mut sequences = Vec::new();
    let mut leftovers = Vec::new();
    for name in disk.list().doing("list", disk.dir())? {
        match parse_file_name(&name) {
            Some(sequence) if sequence >= first => sequences.push(sequence),
            Some(_) => leftovers.push(name),
            None if is_leftover_name(&name) => leftovers.push(name),
            None => {}
        }
    }
    sequences.sort_unstable();
    for (expected, &found) in (first..).zip(&sequences) {
        if expected != found {
            return Err(missing(disk, expected));
        }
    }
    Ok((sequences, leftovers))
}

fn open_all(
    disk: &dyn Disk,
    member: MemberId,
    sequences: &[u64],
    keys: &DiskKeys,
) -> Result<Vec<Arc<Segment>>, WalError> {
    sequences.iter().map(|&s| Segment::open(disk, s, member, keys).map(Arc::new)).collect()
}

fn missing(disk: &dyn Disk, sequence: u64) -> WalError {
    WalError::Missing { file: disk.path(&file_name(sequence)) }
}
