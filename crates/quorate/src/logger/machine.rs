//! What a logger keeps beside the log: the state that follows from it, for members that start
//! from a snapshot. No database, and nobody to tell.

use bytes::Bytes;
use quorate_certify::{process_uuid, Constants, Rules, Sequenced};
use quorate_consensus::level::VOTES_BY_MAJORITY;
use quorate_live::{Committed, Frozen, StateMachine};

pub struct LogMachine {
    constants: Constants,
    state: Sequenced,
}

impl LogMachine {
    pub fn new(constants: Constants) -> LogMachine {
        LogMachine { constants, state: beginning(&constants) }
    }
}

fn beginning(constants: &Constants) -> Sequenced {
    Sequenced::beginning(constants.limits(), constants.seqno)
}

impl StateMachine for LogMachine {
    /// Nothing of a logger's is done elsewhere.
    fn is_brief(&self, _data: &Bytes) -> bool {
        true
    }

    fn apply(&mut self, entry: Committed) -> Result<(), String> {
        match entry {
            Committed::Data { index, data, primary_term, level } => {
                let rules = Rules::new(primary_term, level >= VOTES_BY_MAJORITY);
                self.state.follow(index, data, rules).map_err(|error| error.to_string())?;
            }
            Committed::View { view, .. } => {
                let uuid = |m: &quorate_live::ViewMember| process_uuid(m.id.0, m.incarnation);
                let members: Vec<u128> = view.members.iter().map(uuid).collect();
                self.state.view(&members);
            }
        }
        Ok(())
    }

    fn freeze(&mut self) -> Frozen {
        let state = self.state.freeze();
        Box::new(|| state.encode())
    }

    fn restore(&mut self, _index: u64, snapshot: Bytes) -> Result<(), String> {
        self.state = match snapshot.is_empty() {
            true => beginning(&self.constants),
            false => Sequenced::restore_within(&snapshot, self.constants.limits())?,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::LEVEL;
    use quorate_live::{View, ViewMember};

    #[test]
    fn a_snapshot_restores_the_state_and_garbage_is_refused() {
        let mut machine = LogMachine::new(Constants::default());
        let members = vec![ViewMember { incarnation: 1, ..ViewMember::default() }];
        machine
            .apply(Committed::View {
                index: 1,
                view: View { number: 1, members, ..View::default() },
            })
            .unwrap();
        let data = Bytes::from_static(b"no write set");
        machine
            .apply(Committed::Data { index: 2, data, primary_term: None, level: LEVEL })
            .unwrap();
        let snapshot = machine.freeze()();
        let mut other = LogMachine::new(Constants::default());
        assert_ne!(other.freeze()(), snapshot);
        other.restore(2, snapshot.clone()).unwrap();
        assert_eq!(other.freeze()(), snapshot);
        assert!(other.restore(2, Bytes::from_static(b"damaged")).is_err());
    }
}
