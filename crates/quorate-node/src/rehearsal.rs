//! Whether a log has all that a database may have, found out before anything of it is known to be committed: seqnos are
//! given out by the sequencer's rules, on a copy of its state.

use crate::link::process_ids;
use quorate_certify::{Rules, Sequenced};
use quorate_consensus::level::VOTES_BY_MAJORITY;
use quorate_live::{Committed, Rehearsal};

/// Gives out seqnos as the sequencer does, and tells nobody.
pub struct Rehearsed {
    /// `None`: it could not be copied, and gets nowhere.
    state: Option<Sequenced>,
    database: i64,
}

impl Rehearsed {
    /// From `state` on, up to the seqno that the database may have.
    pub fn new(state: &Sequenced, database: i64) -> Self {
        Self { state: Sequenced::restore(&state.snapshot()).ok(), database }
    }
}

impl Rehearsal for Rehearsed {
    fn reaches_database(&mut self, entry: Committed) -> Result<bool, String> {
        let Some(state) = &mut self.state else { return Ok(false) };
        match entry {
            Committed::Data { index, data, primary_term, level } => {
                let rules = Rules::new(primary_term, level >= VOTES_BY_MAJORITY);
                state.follow(index, data, rules).map_err(|error| error.to_string())?;
            }
            Committed::View { view, .. } => {
                state.view(&process_ids(&view));
            }
        }
        Ok(state.certifier.seqno() >= self.database)
    }
}
