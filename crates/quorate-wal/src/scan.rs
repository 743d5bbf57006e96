//! Reading a segment back, record by record, and judging what stands behind the first bad one.
//!
//! A crash can damage only the write that was under way: everything before it was synced. Each
//! record says how far its segment was synced when it was written, each segment is synced and ended
//! by an `End` record before anything is written to the next. So, with the first bad record at `b`:
//!
//! * a genuine record behind it, not older than the last good one, that says `synced > b`, or any
//!   genuine record in a later segment: `b` was on disk once and is **damaged**. Refused.
//! * otherwise everything behind `b` belongs to the last write (or to an even older cut-off one):
//!   a **torn tail**. The log ends at `b`. What stands behind is never taken for part of the log
//!   later, because each start of the node writes a record with a higher incarnation first.
//!
//! Beside the records, the meta file says how far the log was synced when it was last written: at
//! each vote, each snapshot, each open and close. A log that ends before that is damaged, too.
//!
//! What remains: damage inside the *last* synced write looks like a torn one if nothing was
//! written after it. The writer narrows this by a `Mark` record, on a page of its own, when it has
//! been idle for a while, and at each open. It remains for the last batch before a crash that comes
//! sooner, and for the end of the one before, where both stand in the sector that is lost: that
//! the tail was never acknowledged is then likely, not known.

use crate::codec::Codec;
use crate::error::WalError;
use crate::record::{Head, RecordKind, ALIGN};
use crate::segment::HEADER_BYTES;
use crate::window::Window;

/// What the next record must follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Of the record before; `None` if that was purged.
    pub(crate) crc: Option<u32>,
    pub(crate) incarnation: u32,
}

/// How far a segment is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Where the first bad record, or the end of the log, stands.
    pub(crate) end: u64,
    /// The records prove that everything before this was synced.
    pub(crate) synced: u64,
    /// The segment ends with its `End` record.
    pub(crate) sealed: bool,
}

/// A good record, and where it stands.
pub(crate) struct Record<'a> {
    pub(crate) offset: u64,
    /// All of it.
    pub(crate) bytes: u64,
    pub(crate) head: &'a Head,
    pub(crate) data: &'a [u8],
}

/// Visits the good records of a segment in order. Sealed ones are opened in place.
pub(crate) fn walk(
    window: &mut Window<'_>,
    codec: &Codec,
    chain: &mut Chain,
    mut visit: impl FnMut(&Record<'_>) -> Result<(), WalError>,
) -> Result<Walk, WalError> {
    let head_bytes = codec.layout().head_bytes();
    let mut walk = Walk { end: HEADER_BYTES, synced: HEADER_BYTES, sealed: false };
    while !walk.sealed {
        let rest = window.at(walk.end, head_bytes)?;
        let Some(found) = codec.decode_head(rest, walk.end) else { break };
        let (offset, bytes, head) = (walk.end, found.bytes as u64, &found.head);
        if chain.crc.is_some_and(|crc| crc != head.prev) || head.incarnation < chain.incarnation {
            break;
        }
        if bytes > window.size() - offset {
            break;
        }
        // What cannot be opened is lost here, but `behind`, in the same window, looks at heads alone.
        let rest = window.at(offset, found.bytes)?;
        let Some((data, _)) = codec.open(&found, rest, offset) else { break };
        visit(&Record { offset, bytes, head, data: &rest[data] })?;
        *chain = Chain { crc: Some(found.crc), incarnation: head.incarnation };
        walk.synced = walk.synced.max(head.synced);
        walk.sealed = head.kind == RecordKind::End;
        walk.end += bytes;
    }
    Ok(walk)
}

/// What stands at and behind a bad record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// No genuine record.
    Nothing,
    /// Genuine records of the write that was under way, up to `end`.
    Torn { end: u64 },
    /// The record at `offset` was written when the bad one was already on disk.
    Synced { offset: u64 },
}

/// Looks at every place at and behind `bad` for genuine records that are not older than
/// `incarnation`. The window is a new one, or that of the [`walk`] which ended at `bad`.
pub(crate) fn behind(
    window: &mut Window<'_>,
    codec: &Codec,
    bad: u64,
    incarnation: u32,
) -> Result<Behind, WalError> {
    let head_bytes = codec.layout().head_bytes();
    let (mut result, mut at) = (Behind::Nothing, bad);
    loop {
        let rest = window.at(at, head_bytes)?;
        let Some(last) = rest.len().checked_sub(head_bytes) else { return Ok(result) };
        let found = (0..=last).step_by(ALIGN).find_map(|skipped| {
            let offset = at + skipped as u64;
            let found = codec.decode_head(&rest[skipped..], offset)?;
            (found.head.incarnation >= incarnation).then_some((offset, found))
        });
        match found {
            Some((offset, found)) if found.head.synced > bad => {
                return Ok(Behind::Synced { offset });
            }
            Some((offset, found)) => {
                at = window.size().min(offset + found.bytes as u64);
                result = Behind::Torn { end: at };
            }
            // All the places that a whole head was read of.
            None => at += (last / ALIGN * ALIGN + ALIGN) as u64,
        }
    }
}

#[cfg(test)]
mod tests;
