//! What the node notes in its data directory, and when: see `start`.

use super::{LocalState, Node};
use crate::link::Link;
use crate::start::grastate::{Grastate, NAME};
use crate::start::Position;
use quorate_live::View;
use std::io;

/// The file is replaced as a whole, by way of another one.
static WRITING: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

impl Node {
    /// Marks the database as the group's; before it takes in anything of it. While the server
    /// runs, the file has no seqno (-1).
    pub fn record_group(&self, link: &Link) -> Result<(), String> {
        self.save(link.history, -1, false, link).map_err(|e| self.unwritable(&e))
    }

    /// The database is about to be replaced: until that has ended it has no position.
    pub fn record_transfer(&self, link: &Link) -> Result<(), String> {
        self.save(0, -1, false, link).map_err(|e| self.unwritable(&e))
    }

    pub fn record_view(&self, link: &Link, view: &View) {
        self.record(link, -1, view.members.len() == 1);
    }

    /// Without a seqno nothing is recorded: a state transfer has not ended, and the file says so.
    pub fn record_closed(&self, link: &Link, seqno: i64) {
        if seqno < 0 {
            return;
        }
        let safe = Grastate::read(&self.config.data_dir).is_some_and(|g| g.safe_to_bootstrap);
        self.record(link, seqno, safe);
    }

    /// The data is not what its position says: the next start has to fetch the state.
    pub fn record_unusable(&self) {
        let position = Position { uuid: 0, seqno: -1 };
        let state = Grastate { position, safe_to_bootstrap: false, group: 0, gtid_domain: None };
        let _one_at_a_time = WRITING.lock();
        self.grastate_written(state.write(&self.config.data_dir));
    }

    /// Not over the mark of a node whose data is not to be gone on with.
    fn record(&self, link: &Link, seqno: i64, safe_to_bootstrap: bool) {
        let _one_at_a_time = WRITING.lock();
        if self.local_state() == LocalState::Error {
            return;
        }
        self.grastate_written(self.save(link.history, seqno, safe_to_bootstrap, link));
    }

    /// Where an old file does no harm.
    fn grastate_written(&self, written: io::Result<()>) {
        if let Err(e) = written {
            self.warn(&format!(
                "{}: {e}; tools that read this file see its former content",
                self.config.data_dir.join(NAME).display()
            ));
        }
    }

    fn save(&self, uuid: u128, seqno: i64, safe: bool, link: &Link) -> io::Result<()> {
        let position = Position { uuid, seqno };
        let (group, gtid_domain) = match uuid {
            0 => (0, None),
            _ => (link.group.group_id(), self.host.gtid_domain().map(|domain| domain.used)),
        };
        let state = Grastate { position, safe_to_bootstrap: safe, group, gtid_domain };
        state.write(&self.config.data_dir)
    }

    fn unwritable(&self, error: &io::Error) -> String {
        format!(
            "{} cannot be written ({error}): it has to say what this database belongs to before \
             the database changes. Nothing was changed; make room or correct the directory's \
             permissions, and restart the node",
            self.config.data_dir.join(NAME).display()
        )
    }

    /// Notes that an isolated action is about to run on this node's data.
    pub fn isolated_begins(&self, seqno: i64, tables: &[(String, String)]) {
        let history = self.link().map_or(0, |l| l.history);
        self.noted(seqno, self.isolated.begun(history, seqno, tables));
    }

    /// Notes that it has run.
    pub fn isolated_is_done(&self, seqno: i64) {
        let history = self.link().map_or(0, |l| l.history);
        self.noted(seqno, self.isolated.done(history, seqno));
    }

    fn noted(&self, seqno: i64, result: std::io::Result<()>) {
        if let Err(e) = result {
            self.warn(&format!(
                "The DDL of seqno {seqno} could not be noted in the data directory ({e}); \
                 should this node crash right now, it may execute it twice"
            ));
        }
    }
}
