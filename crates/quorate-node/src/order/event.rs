//! What the applier threads are told.

use super::places::Place;
use bytes::Bytes;
use quorate_certify::flags;
use quorate_live::View;

/// Flags of a write set that only advances the position.
pub const DUMMY: u32 = flags::TRX_START | flags::TRX_END | flags::ROLLBACK;

/// About half of what is received in one piece.
const LONG: usize = 512 << 10;

/// A write set to apply (or to record as failed).
#[derive(Clone, Debug)]
pub struct WriteSetEvent {
    /// Its flags are those that the server is to see.
    pub place: Place,
    /// The whole log entry.
    pub entry: Bytes,
}

#[derive(Clone, Debug)]
pub enum Event {
    /// Introduce the server to the group: the first event of each connection.
    Connect,
    WriteSet(WriteSetEvent),
    /// A primary view; `mine` if this member (this process) is in it.
    View {
        seqno: i64,
        view: View,
        mine: bool,
    },
    /// Contact with the quorum was lost.
    NonPrimary,
    /// This member is to send its state to another.
    Donate {
        /// Everything up to here must be applied first.
        seqno: i64,
        request: Bytes,
        joiner: u128,
    },
    /// Others vote on an error at this seqno: say how it went here, once it is past.
    Vote {
        seqno: i64,
    },
    /// This member has nothing more to catch up with.
    Synced,
    /// The connection ends: the last event.
    Final,
}

impl Event {
    pub fn exclusive(&self) -> bool {
        !matches!(self, Event::WriteSet(_) | Event::Vote { .. })
    }

    /// The place in the total order that this event fills.
    pub(super) fn seqno(&self) -> Option<i64> {
        match self {
            Event::WriteSet(w) => Some(w.place.seqno),
            Event::View { seqno, .. } => Some(*seqno),
            _ => None,
        }
    }

    /// The state of the server is another one after it. At the end of a pause the server goes by the state that it had
    /// at the begin. It is a donor's then; as such it refuses to send its state once more.
    pub(super) fn changes_state(&self) -> bool {
        matches!(self, Event::NonPrimary | Event::Synced)
    }

    /// With memory of its own: what came over the network, or was read, is one piece with all that came with it, and
    /// as long as any of it waits, all stays. What is long is much of its piece.
    pub(super) fn detached(self) -> Event {
        match self {
            Event::WriteSet(w) if w.entry.len() < LONG => {
                let entry = Bytes::copy_from_slice(&w.entry);
                Event::WriteSet(WriteSetEvent { entry, ..w })
            }
            event => event,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Event::WriteSet(w) => w.entry.len(),
            _ => 0,
        }
    }
}
