//! How a member's server stands: what members tell each other of it several times a second.

use crate::body::{BodyReader, BodyWriter};
use crate::error::WireError;
use quorate_consensus::Index;

/// Seqnos are the server's, the same on all members; -1: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// It has caught up, and is not to fall behind on purpose.
    pub synced: bool,
    /// Clients of this member wait until others have applied their writes: it is to be told of each step at once.
    pub prompt: bool,
    /// Everything up to here is in its database.
    pub applied: i64,
    /// The last that is certified there.
    pub certified: i64,
    /// The last entry of the log that it has passed: what follows is not certified there yet.
    pub index: Index,
    /// How old the first write set is that is certified and not applied, in milliseconds.
    pub lag_ms: u32,
    /// Write sets that its own clients proposed since its start.
    pub written: u64,
}

/// Flags.
const SYNCED: u8 = 1;
const PROMPT: u8 = 2;

impl Standing {
    /// Write sets that are certified and wait to be applied.
    pub fn backlog(&self) -> u64 {
        self.certified.saturating_sub(self.applied).max(0) as u64
    }

    pub(crate) fn encode(&self, out: &mut BodyWriter) {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.u8(flag(self.synced, SYNCED) | flag(self.prompt, PROMPT));
        out.u64(self.applied as u64);
        out.u64(self.certified as u64);
        out.u64(self.index);
        out.u32(self.lag_ms);
        out.u64(self.written);
    }

    pub(crate) fn decode(body: &mut BodyReader) -> Result<Self, WireError> {
        let flags = body.u8()?;
        if flags & !(SYNCED | PROMPT) != 0 {
            return Err(WireError::BadValue { what: "flags of a standing", value: flags.into() });
        }
        let (synced, prompt) = (flags & SYNCED != 0, flags & PROMPT != 0);
        let (applied, certified) = (read_seqno(body)?, read_seqno(body)?);
        let (index, lag_ms, written) = (body.u64()?, body.u32()?, body.u64()?);
        Ok(Self { synced, prompt, applied, certified, index, lag_ms, written })
    }
}

fn read_seqno(body: &mut BodyReader) -> Result<i64, WireError> {
    let value = body.u64()?;
    match value as i64 {
        seqno @ -1.. => Ok(seqno),
        _ => Err(WireError::BadValue { what: "seqno of a standing", value }),
    }
}
