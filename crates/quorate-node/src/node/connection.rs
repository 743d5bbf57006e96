//! How a connection to a group begins and ends, whatever the group was found by.

use super::Node;
use crate::group::Group;
use crate::link::Link;
use crate::local::LocalState;
use crate::order::Event;
use crate::sequencer::Sequencer;
use crate::start::genesis::Genesis;
use crate::start::grastate::Grastate;
use crate::start::refused::Refused;
use crate::start::resume::Database;
use crate::start::{Position, UnusableNote};
use crate::withdraw::LEAVE_TIMEOUT;
use quorate_certify::Limits;
use quorate_consensus::MemberId;
use std::path::Path;
use std::sync::Arc;

impl Node {
    /// Before this node looks for its group.
    pub fn begin_connection(&self) {
        self.exit.forget_contact();
        self.primary.begin_connection();
    }

    /// The donors to choose from in this connection, as the server was told.
    pub fn prefer_donors(&self, donors: &str) {
        self.transfer.begin_connection(donors);
    }

    /// The connection did not come about.
    pub fn abandon_connection(&self) {
        self.local.set_link(None);
    }

    /// What the server recovered at its start, until a connection has begun from it.
    pub fn recovered(&self) -> Option<Position> {
        *self.recovered.lock()
    }

    /// The connection has begun from what the server recovered.
    pub fn started(&self) {
        *self.recovered.lock() = None;
    }

    /// Begins a connection to this group, whose entries are to be applied to what is returned. The
    /// database stands at `start` (`None`: it needs a state transfer).
    pub fn attach(
        &self,
        group: Arc<dyn Group>,
        (member, incarnation): (MemberId, u32),
        genesis: Genesis,
        start: Option<i64>,
        limits: Limits,
    ) -> Result<Sequencer, UnusableNote> {
        let severed = self.records.open_isolated(genesis.history, start)?;
        if let Some(position) = start {
            self.records.open_errors(genesis.history, position)?;
        }
        let link = Arc::new(Link::new(group, genesis, member, incarnation, start));
        self.local.commit.set_position(start.unwrap_or(-1));
        self.local.apply.set_position(start.unwrap_or(-1));
        link.severed.watch(severed);
        self.votes.begin_connection();
        self.local.queue.open();
        self.local.part_places.clear();
        self.local.lags.clear();
        self.local.queue.push(Event::Connect);
        self.local.set_link(Some(link.clone()));
        self.primary.settle();
        let noted = self.records.last_isolated();
        Ok(Sequencer::new(self.sequencer_parts(), link, limits, noted))
    }

    /// What is known of the database before a connection.
    pub fn database(&self) -> Result<Database, UnusableNote> {
        let log_dir = self.local.settings(|settings| settings.log_dir.clone());
        Ok(Database {
            refused: Refused::read(Path::new(&log_dir)),
            saved: Grastate::read(&self.local.config.data_dir)?,
            recovered: self.recovered(),
            data_dir: self.local.config.data_dir.clone(),
            log_dir,
            words: self.local.config.words,
        })
    }

    /// Takes leave of the group; the applier threads see the final view and end.
    pub fn disconnect(&self) {
        let Some(link) = self.local.link() else { return };
        // Who disconnects waits for no majority any more.
        self.exit.forget_contact();
        self.withdrawal.begin_closing(&link);
        if self.local.still.is_begun() {
            return self.withdrawal.end_standing(&link);
        }
        if self.local.state() == LocalState::Error {
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
        self.withdrawal.end(&link);
    }

    /// Disconnects for good, without taking leave: nobody may be there to take leave of.
    pub fn give_up_connection(&self) {
        self.withdrawal.give_up_connection();
    }

    /// Ends everything; idempotent.
    pub fn free(&self) {
        self.exit.forget_contact();
        if let Some(link) = self.local.set_link(None) {
            self.withdrawal.begin_closing(&link);
            link.group.close();
            self.local.queue.close();
        }
        // A notice may have come between, of the group that is closed now.
        self.exit.forget_contact();
        self.helpers.join();
        self.primary.forget();
    }
}
