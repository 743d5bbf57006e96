//! Reading entries back from disk.

use crate::error::{ReadError, WalError};
use crate::index::{Plan, Section};
use crate::record::{decode_head, RecordKind};
use bytes::Bytes;
use quorate_consensus::{Entry, Index};
use std::sync::Arc;

/// The kernel is asked to read so much ahead.
const READ_AHEAD: u64 = 1 << 20;

/// Reads the entries from `from` on as planned: at least one, then until `bytes_max` of data.
/// Needs no lock: a section's bytes never change while it is held.
pub(crate) fn read_planned(
    plan: &Plan,
    from: Index,
    bytes_max: usize,
    out: &mut Vec<Entry>,
) -> Result<(), ReadError> {
    if let Some((segment, offset)) = &plan.ahead {
        segment.will_need(*offset, READ_AHEAD.min(segment.size() - offset));
    }
    let mut budget = Budget { bytes: 0, bytes_max };
    let mut next = from;
    for (section, end) in &plan.sections {
        let done = read_section(section, &mut next, *end, &mut budget, out).map_err(Arc::new)?;
        if done {
            break;
        }
    }
    Ok(())
}

struct Budget {
    bytes: usize,
    bytes_max: usize,
}

/// Reads entries `*next..end`; true when the budget is spent.
fn read_section(
    section: &Section,
    next: &mut Index,
    end: Index,
    budget: &mut Budget,
    out: &mut Vec<Entry>,
) -> Result<bool, WalError> {
    let mut buf = vec![0; section.bytes as usize];
    section.segment.read(&mut buf, section.offset)?;
    let bytes = Bytes::from(buf);
    let nonce = section.segment.header.nonce;
    let mut at = 0;
    while *next < end {
        let offset = section.offset + at as u64;
        let damaged = || section.segment.damaged(offset, format!("entry {next} is unreadable"));
        let rest = bytes.get(at..).ok_or_else(damaged)?;
        let found = decode_head(rest, nonce, offset).ok_or_else(damaged)?;
        let head = &found.head;
        if head.kind == RecordKind::Entry && head.position.index >= *next {
            let data = found.data(rest).ok_or_else(damaged)?;
            if head.position.index != *next {
                return Err(damaged());
            }
            if budget.bytes > 0 && budget.bytes + data.len() > budget.bytes_max {
                return Ok(true);
            }
            budget.bytes += data.len().max(1);
            out.push(Entry {
                index: head.position.index,
                term: head.position.term,
                kind: head.entry_kind,
                data: bytes.slice_ref(data),
                sum: found.data_crc,
            });
            *next += 1;
        }
        at += found.record_bytes();
    }
    Ok(false)
}
