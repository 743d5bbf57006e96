//! How a connection to a group begins and ends, whatever the group was found by.

pub mod observer;

use crate::group::Group;
use crate::link::Link;
use crate::node::{LocalState, Node, LEAVE_TIMEOUT};
use crate::order::queue::Event;
use crate::sequencer::Sequencer;
use crate::start::genesis::{Genesis, Standing};
use crate::start::grastate::Grastate;
use quorate_certify::Limits;
use quorate_consensus::MemberId;
use std::sync::Arc;

impl Node {
    /// Begins a connection to this group, whose entries are to be fed to what is returned. The
    /// database stands at `start` (`None`: it needs a state transfer).
    pub fn attach(
        self: &Arc<Self>,
        group: Arc<dyn Group>,
        (member, incarnation): (MemberId, u32),
        genesis: Genesis,
        start: Option<i64>,
        limits: Limits,
    ) -> Sequencer {
        let link = Arc::new(Link::new(group, genesis, member, incarnation, start));
        self.commit.set_position(start.unwrap_or(-1));
        self.apply.set_position(start.unwrap_or(-1));
        self.isolated.open(genesis.history, start);
        self.desk.begin_connection();
        if let Some(position) = start {
            self.errors_noted(self.failed.open(genesis.history, position));
        }
        self.queue.open();
        self.queue.push(Event::Connect);
        self.set_link(Some(link.clone()));
        self.settle_primary();
        Sequencer::new(self.clone(), link, limits)
    }

    pub fn standing(&self, genesis: &Genesis, group: u128) -> Standing {
        let saved = Grastate::read(&self.config.data_dir);
        let recovered = *self.recovered.lock();
        genesis.standing(group, saved.as_ref(), recovered, self.config.words.start_position)
    }

    /// Refuses a log that is of another group than the database (one of the two was swapped), and
    /// a database that has what the group does not have: to replace it could lose the only copy.
    pub fn check_ours(
        &self,
        fresh: bool,
        genesis: &Genesis,
        standing: &Standing,
    ) -> Result<(), String> {
        let data = self.config.data_dir.display();
        let log = self.settings.lock().log_dir.clone();
        let words = &self.config.words;
        let text = match *standing {
            Standing::OtherHistory(uuid) if !fresh => format!(
                "the log directory {log} belongs to group {}, but the database in {data} to group \
                 {}: one of them is not this node's. Nothing was changed. Correct quorate.dir in \
                 {}, or, to make this node a new member, move both aside",
                MemberId(genesis.history),
                MemberId(uuid),
                words.options,
            ),
            Standing::WrittenByOthers(seqno) if seqno > genesis.seqno || !fresh => format!(
                "the database in {data} is at seqno {seqno} of the group's own history, but was \
                 last written by another provider or group; this group went on from seqno {}. \
                 The two may have different transactions under the same numbers. Nothing was \
                 changed. To give up what only this node has and fetch the group's state, remove \
                 grastate.dat from {data} (keep a copy of the database). To go on with this \
                 database instead, stop all nodes, move {log} and its like aside on each of them, \
                 and begin the group on this node ({})",
                genesis.seqno, words.found,
            ),
            _ => return Ok(()),
        };
        Err(text)
    }

    /// Takes leave of the group; the recv threads see the final view and end.
    pub fn disconnect(&self) {
        let Some(link) = self.link() else { return };
        self.begin_closing(&link);
        if self.local_state() == LocalState::Error {
            // The final view is under way already.
            return;
        }
        let had_quorum = link.primary();
        if let Err(e) = link.group.leave(LEAVE_TIMEOUT) {
            let text = format!(
                "Left without taking leave ({e}): this node stays a voter of the group until it returns or is removed"
            );
            // Without a quorum there is nobody to take leave of, and that was reported.
            if had_quorum {
                self.warn(&text);
            } else {
                self.info(&text);
            }
        }
        self.queue.push(Event::Final);
    }

    /// Ends everything; idempotent.
    pub fn free(&self) {
        self.forget_contact();
        if let Some(link) = self.set_link(None) {
            self.begin_closing(&link);
            link.group.close();
            link.set_closed();
            self.queue.close();
        }
        self.helpers.join();
        self.forget_primary();
    }
}
