//! How a connection to a group begins and ends, whatever the group was found by.

pub mod observer;

use crate::group::Group;
use crate::link::Link;
use crate::node::{LocalState, Node, LEAVE_TIMEOUT};
use crate::order::queue::Event;
use crate::sequencer::Sequencer;
use crate::start::genesis::Genesis;
use crate::start::grastate::Grastate;
use crate::start::resume::Database;
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

    /// What is known of the database before a connection.
    pub fn database(&self) -> Database {
        Database {
            saved: Grastate::read(&self.config.data_dir),
            recovered: *self.recovered.lock(),
            data_dir: self.config.data_dir.clone(),
            log_dir: self.settings.lock().log_dir.clone(),
            words: self.config.words,
        }
    }

    /// Takes leave of the group; the applier threads see the final view and end.
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
