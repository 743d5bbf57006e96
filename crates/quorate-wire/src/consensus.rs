//! Consensus messages. Sender and receiver are those of the connection and not repeated.

use crate::body::{BodyReader, BodyWriter};
use crate::error::WireError;
use quorate_consensus::{Entry, EntryKind, LogPosition, Message, MessageBody};

const PRE_VOTE: u8 = 1;
const PRE_VOTE_REPLY: u8 = 2;
const VOTE: u8 = 3;
const VOTE_REPLY: u8 = 4;
const APPEND: u8 = 5;
const APPEND_REPLY: u8 = 6;
const APPEND_REJECT: u8 = 7;
const HEARTBEAT: u8 = 8;
const HEARTBEAT_REPLY: u8 = 9;
const READ_INDEX: u8 = 10;
const READ_INDEX_REPLY: u8 = 11;
const TIMEOUT_NOW: u8 = 12;
const SNAPSHOT_REPLY: u8 = 13;
const FORCED_VOTE: u8 = 14;
const FORCED_VOTE_REPLY: u8 = 15;

/// Least bytes of an encoded entry: index, term, kind, length.
const ENTRY_LEAST: usize = 8 + 8 + 1 + 4;
/// So many entries come in one message at most. Honest ones are cut by their bytes long before; in memory an empty
/// entry is several times of what it is here.
const ENTRIES_MAX: usize = 1 << 20;

pub(crate) fn encode(message: &Message, out: &mut BodyWriter) {
    out.u64(message.term);
    match &message.body {
        MessageBody::PreVote { last } => {
            out.u8(PRE_VOTE);
            position(*last, out);
        }
        MessageBody::PreVoteReply { granted } => {
            out.u8(PRE_VOTE_REPLY);
            out.bool(*granted);
        }
        MessageBody::Vote { last, transfer } => {
            out.u8(VOTE);
            position(*last, out);
            out.bool(*transfer);
        }
        MessageBody::VoteReply { granted } => {
            out.u8(VOTE_REPLY);
            out.bool(*granted);
        }
        MessageBody::ForcedVote { last } => {
            out.u8(FORCED_VOTE);
            position(*last, out);
        }
        MessageBody::ForcedVoteReply { granted, commit } => {
            out.u8(FORCED_VOTE_REPLY);
            out.bool(*granted);
            position(*commit, out);
        }
        MessageBody::Append { prev, entries, commit } => {
            out.u8(APPEND);
            position(*prev, out);
            out.u64(*commit);
            out.u32(entries.len() as u32);
            entries.iter().for_each(|each| entry(each, out));
        }
        MessageBody::AppendReply { matched } => {
            out.u8(APPEND_REPLY);
            out.u64(*matched);
        }
        MessageBody::AppendReject { rejected, hint } => {
            out.u8(APPEND_REJECT);
            out.u64(*rejected);
            position(*hint, out);
        }
        MessageBody::Heartbeat { commit, round } => {
            out.u8(HEARTBEAT);
            out.u64(*commit);
            out.u64(*round);
        }
        MessageBody::HeartbeatReply { round, persisted_last } => {
            out.u8(HEARTBEAT_REPLY);
            out.u64(*round);
            out.u64(*persisted_last);
        }
        MessageBody::ReadIndex { ctx } => {
            out.u8(READ_INDEX);
            out.u64(*ctx);
        }
        MessageBody::ReadIndexReply { ctx, index } => {
            out.u8(READ_INDEX_REPLY);
            out.u64(*ctx);
            out.u64(*index);
        }
        MessageBody::TimeoutNow => out.u8(TIMEOUT_NOW),
        MessageBody::SnapshotReply { matched } => {
            out.u8(SNAPSHOT_REPLY);
            out.u64(*matched);
        }
    }
}

/// Term and body of a message.
pub(crate) fn decode(body: &mut BodyReader) -> Result<(u64, MessageBody), WireError> {
    let term = body.u64()?;
    let decoded = match body.u8()? {
        PRE_VOTE => MessageBody::PreVote { last: read_position(body)? },
        PRE_VOTE_REPLY => MessageBody::PreVoteReply { granted: body.bool()? },
        VOTE => MessageBody::Vote { last: read_position(body)?, transfer: body.bool()? },
        VOTE_REPLY => MessageBody::VoteReply { granted: body.bool()? },
        APPEND => {
            let prev = read_position(body)?;
            let commit = body.u64()?;
            let count = body.count(ENTRY_LEAST)?;
            if count > ENTRIES_MAX {
                return Err(WireError::BadValue { what: "number of entries", value: count as u64 });
            }
            let entries = (0..count).map(|_| read_entry(body)).collect::<Result<_, _>>()?;
            MessageBody::Append { prev, entries, commit }
        }
        APPEND_REPLY => MessageBody::AppendReply { matched: body.u64()? },
        APPEND_REJECT => {
            MessageBody::AppendReject { rejected: body.u64()?, hint: read_position(body)? }
        }
        HEARTBEAT => MessageBody::Heartbeat { commit: body.u64()?, round: body.u64()? },
        HEARTBEAT_REPLY => {
            MessageBody::HeartbeatReply { round: body.u64()?, persisted_last: body.u64()? }
        }
        READ_INDEX => MessageBody::ReadIndex { ctx: body.u64()? },
        READ_INDEX_REPLY => MessageBody::ReadIndexReply { ctx: body.u64()?, index: body.u64()? },
        TIMEOUT_NOW => MessageBody::TimeoutNow,
        SNAPSHOT_REPLY => MessageBody::SnapshotReply { matched: body.u64()? },
        FORCED_VOTE => MessageBody::ForcedVote { last: read_position(body)? },
        FORCED_VOTE_REPLY => {
            MessageBody::ForcedVoteReply { granted: body.bool()?, commit: read_position(body)? }
        }
        value => return Err(WireError::BadValue { what: "message kind", value: value.into() }),
    };
    Ok((term, decoded))
}

pub(crate) fn position(position: LogPosition, out: &mut BodyWriter) {
    out.u64(position.term);
    out.u64(position.index);
}

pub(crate) fn read_position(body: &mut BodyReader) -> Result<LogPosition, WireError> {
    Ok(LogPosition { term: body.u64()?, index: body.u64()? })
}

fn entry(entry: &Entry, out: &mut BodyWriter) {
    out.u64(entry.index);
    out.u64(entry.term);
    out.u8(entry.kind.code());
    out.u32(entry.sum);
    out.data(&entry.data);
}

fn read_entry(body: &mut BodyReader) -> Result<Entry, WireError> {
    let (index, term) = (body.u64()?, body.u64()?);
    let kind = EntryKind::from_code(body.u8()?);
    let (sum, data) = (body.u32()?, body.data()?);
    let entry = Entry { index, term, kind, data, sum };
    match entry.is_intact() {
        true => Ok(entry),
        false => Err(WireError::EntryAltered { index }),
    }
}
