//! What can be due: to whom it happens, and in which life of the process.

use super::operators::Act;
use crate::node::Save;
use quorate_consensus::{Fetch, MemberId};
use quorate_group::SnapshotOrder;

/// Something due at some time. `m` is the node it happens to, `run` the life of the process it
/// belongs to.
pub enum Event {
    // In a process.
    Tick {
        m: usize,
        run: u32,
    },
    Disk {
        m: usize,
        run: u32,
        turn: u64,
    },
    Feed {
        m: usize,
        run: u32,
    },
    Fetch {
        m: usize,
        run: u32,
        fetch: Fetch,
    },
    Save {
        m: usize,
        run: u32,
        save: Box<Save>,
    },
    SendSnapshot {
        m: usize,
        run: u32,
        order: SnapshotOrder,
    },
    Client {
        m: usize,
        run: u32,
        client: usize,
    },
    /// A read that was not answered after the faults.
    ReadAgain {
        m: usize,
        run: u32,
        client: usize,
    },
    Dial {
        m: usize,
        run: u32,
        peer: MemberId,
        attempt: u64,
        addr: usize,
        refused: bool,
    },
    DialFailed {
        m: usize,
        run: u32,
        peer: MemberId,
        attempt: u64,
        addr: usize,
        refused: bool,
    },
    Greeted {
        m: usize,
        run: u32,
        connection: u64,
        addr: usize,
        refused: bool,
        bytes: Vec<u8>,
    },
    Hello {
        m: usize,
        run: u32,
        connection: u64,
        addr: usize,
        refused: bool,
        bytes: Vec<u8>,
    },
    Arrive {
        m: usize,
        run: u32,
        connection: u64,
        bytes: Vec<u8>,
    },
    Pump {
        m: usize,
        run: u32,
        connection: u64,
    },
    OutgoingEnded {
        m: usize,
        run: u32,
        connection: u64,
    },
    IncomingEnded {
        m: usize,
        run: u32,
        connection: u64,
    },
    AskArrives {
        m: usize,
        run: u32,
        ask: Asked,
    },
    AskAnswered {
        m: usize,
        run: u32,
        number: u64,
        addr: String,
        bytes: Vec<Vec<u8>>,
    },
    AskFailed {
        m: usize,
        run: u32,
        number: u64,
        addr: String,
        reason: &'static str,
    },
    /// The client of this write loses its connection.
    Leave {
        m: usize,
        run: u32,
        serial: u64,
    },
    Unhang {
        m: usize,
        run: u32,
    },
    // Outside.
    LinkTimeout {
        connection: u64,
    },
    Restart {
        m: usize,
        run: u32,
    },
    Resume {
        m: usize,
        run: u32,
    },
    /// The client of this task finds another node.
    Return {
        task: u32,
        from: usize,
    },
    Join,
    Room {
        m: usize,
    },
    Fault,
    Order,
    Act(Act),
    HealCheck,
}

/// A question of `from` for admission, as it travels.
pub struct Asked {
    pub from: usize,
    pub from_run: u32,
    /// Which question of its it is.
    pub number: u64,
    pub addr: String,
    pub hello: Vec<u8>,
    pub request: Vec<u8>,
}

impl Event {
    /// The process that has to be running for this to happen, if any.
    pub fn process(&self) -> Option<(usize, u32)> {
        match *self {
            Event::Tick { m, run }
            | Event::Disk { m, run, .. }
            | Event::Feed { m, run }
            | Event::Fetch { m, run, .. }
            | Event::Save { m, run, .. }
            | Event::SendSnapshot { m, run, .. }
            | Event::Client { m, run, .. }
            | Event::ReadAgain { m, run, .. }
            | Event::Dial { m, run, .. }
            | Event::DialFailed { m, run, .. }
            | Event::Hello { m, run, .. }
            | Event::Greeted { m, run, .. }
            | Event::Arrive { m, run, .. }
            | Event::Pump { m, run, .. }
            | Event::OutgoingEnded { m, run, .. }
            | Event::IncomingEnded { m, run, .. }
            | Event::AskArrives { m, run, .. }
            | Event::AskAnswered { m, run, .. }
            | Event::AskFailed { m, run, .. }
            | Event::Leave { m, run, .. }
            | Event::Unhang { m, run } => Some((m, run)),
            Event::LinkTimeout { .. }
            | Event::Restart { .. }
            | Event::Resume { .. }
            | Event::Return { .. }
            | Event::Join
            | Event::Room { .. }
            | Event::Fault
            | Event::Order
            | Event::Act(_)
            | Event::HealCheck => None,
        }
    }
}
