//! The state machine.

use crate::effects::{Effects, Status};
use crate::event::{Event, Options, Restored, StepError};
use crate::types::MemberId;

pub struct Consensus {}

impl Consensus {
    /// A member as the disk left it. With an empty config it waits to be added by a leader.
    pub fn new(_options: Options, _restored: Restored, _now_ms: u64) -> Self {
        todo!()
    }

    /// Takes one event at `now_ms` (never goes back) and adds what is to be done to `effects`.
    pub fn step(&mut self, _now_ms: u64, _event: Event, _effects: &mut Effects) -> Result<(), StepError> {
        todo!()
    }

    pub fn status(&self, _now_ms: u64) -> Status {
        todo!()
    }

    pub fn id(&self) -> MemberId {
        todo!()
    }
    pub fn is_leader(&self) -> bool {
        todo!()
    }
    pub fn leader(&self) -> Option<MemberId> {
        todo!()
    }
}
