//! Reading entries back from disk.

use crate::error::{ReadError, WalError};
use crate::index::{Plan, Section};
use crate::record::RecordKind;
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

impl Budget {
    /// Whether there is room for so much more; for something there always is.
    fn takes(&mut self, bytes: usize) -> bool {
        if self.bytes > 0 && self.bytes + bytes > self.bytes_max {
            return false;
        }
        self.bytes += bytes.max(1);
        true
    }
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
    let codec = &section.segment.codec;
    let (mut found_here, mut at, mut done) = (Vec::new(), 0, false);
    while *next < end && !done {
        let offset = section.offset + at as u64;
        let damaged = || section.segment.damaged(offset, format!("entry {next} is unreadable"));
        let rest = buf.get_mut(at..).ok_or_else(damaged)?;
        let found = codec.decode_head(rest, offset).ok_or_else(damaged)?;
        let head = &found.head;
        if head.kind == RecordKind::Entry && head.position.index >= *next {
            if head.position.index != *next {
                return Err(damaged());
            }
            done = !budget.takes(found.data_len);
            if !done {
                let (data, sum) = codec.open(&found, rest, offset).ok_or_else(damaged)?;
                found_here.push((found.head, at + data.start..at + data.end, sum));
                *next += 1;
            }
        }
        at += found.bytes;
    }
    let bytes = Bytes::from(buf);
    out.extend(found_here.into_iter().map(|(head, data, sum)| Entry {
        index: head.position.index,
        term: head.position.term,
        kind: head.entry_kind,
        data: bytes.slice(data),
        sum,
    }));
    Ok(done)
}
