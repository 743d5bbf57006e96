//! What the node notes in its data directory, and when: see `start`.

use crate::link::Link;
use crate::local::{Local, LocalState};
use crate::start::failed::{FailedNotes, Past};
use crate::start::grastate::{Grastate, NAME};
use crate::start::isolated::{IsolatedNotes, Stream};
use crate::start::{refused, Position, UnusableNote};
use quorate_certify::votes::Ballot;
use quorate_live::View;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The file is replaced as a whole, by way of another one.
static WRITING: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

pub struct Records {
    local: Arc<Local>,
    isolated: IsolatedNotes,
    errors: FailedNotes,
    /// Streaming transactions of this process that DDL found open, as long as their ends are not in the log.
    met: parking_lot::Mutex<BTreeSet<u64>>,
    /// The data is not what a position would say of it.
    unusable: AtomicBool,
}

impl Records {
    pub fn new(local: Arc<Local>) -> Self {
        let isolated = IsolatedNotes::new(&local.config.data_dir);
        let errors = FailedNotes::new(&local.config.data_dir);
        let (met, unusable) = (parking_lot::Mutex::default(), AtomicBool::new(false));
        Self { local, isolated, errors, met, unusable }
    }

    /// Marks the database as the group's; before it takes in anything of it. While the server
    /// runs, the file has no seqno (-1).
    pub fn note_group(&self, link: &Link) -> Result<(), String> {
        self.begin();
        self.save(link.history, -1, false, link).map_err(|e| self.unwritable(&e))
    }

    /// The database is about to be replaced: until that has ended it has no position.
    pub fn note_transfer(&self, link: &Link) -> Result<(), String> {
        self.begin();
        self.save(0, -1, false, link).map_err(|e| self.unwritable(&e))
    }

    fn begin(&self) {
        self.met.lock().clear();
        self.unusable.store(false, Ordering::Release);
    }

    pub fn note_view(&self, link: &Link, view: &View) {
        self.replace(link, -1, view.members.len() == 1);
    }

    /// Without a seqno nothing is recorded: a state transfer has not ended, and the file says so.
    /// Nor is it as long as sessions have not ended what was ordered: they note it when they have.
    pub fn note_closed(&self, link: &Link, seqno: i64) {
        self.look_at_ends(link);
        if seqno < 0 || seqno < link.progress.seqno() {
            return;
        }
        let saved = Grastate::read(&self.local.config.data_dir);
        let safe = matches!(saved, Ok(Some(saved)) if saved.safe_to_bootstrap);
        self.replace(link, seqno, safe);
    }

    /// The data is not what its position says: the next start has to fetch the state.
    pub fn note_unusable(&self) {
        self.unusable.store(true, Ordering::Release);
        let position = Position { uuid: 0, seqno: -1 };
        let state = Grastate { position, safe_to_bootstrap: false, group: 0, gtid_domain: None };
        let data_dir = &self.local.config.data_dir;
        let _one_at_a_time = WRITING.lock();
        // A full disk takes no new file, but lets go of an old one; without it a start fetches the state, too.
        let noted = state.write(data_dir).or_else(|full| {
            Grastate::remove(data_dir).map_err(|e| {
                io::Error::new(e.kind(), format!("{full}; nor can it be removed: {e}"))
            })
        });
        if let Err(e) = noted {
            self.local.error(&format!(
                "{}: {e}. This database must not be used any more, and the next start would not know it: remove \
                 the file before you start the node, which then fetches the state from another",
                data_dir.join(NAME).display()
            ));
        }
    }

    /// Not over the mark of a node whose data is not to be gone on with.
    fn replace(&self, link: &Link, seqno: i64, safe_to_bootstrap: bool) {
        let _one_at_a_time = WRITING.lock();
        if self.local.state() == LocalState::Error || self.unusable.load(Ordering::Acquire) {
            return;
        }
        self.grastate_written(self.save(link.history, seqno, safe_to_bootstrap, link));
    }

    /// Where an old file does no harm.
    fn grastate_written(&self, written: io::Result<()>) {
        if let Err(e) = written {
            self.local.warn(&format!(
                "{}: {e}; tools that read this file see its former content",
                self.local.config.data_dir.join(NAME).display()
            ));
        }
    }

    fn save(&self, uuid: u128, seqno: i64, safe: bool, link: &Link) -> io::Result<()> {
        let position = Position { uuid, seqno };
        let (group, gtid_domain) = match uuid {
            0 => (0, None),
            _ => (link.group.group_id(), self.local.host.gtid_domain().map(|domain| domain.used)),
        };
        let state = Grastate { position, safe_to_bootstrap: safe, group, gtid_domain };
        state.write(&self.local.config.data_dir)
    }

    fn unwritable(&self, error: &io::Error) -> String {
        format!(
            "{} cannot be written ({error}): it has to say what this database belongs to before \
             the database changes. Nothing was changed; make room or correct the directory's \
             permissions, and restart the node",
            self.local.config.data_dir.join(NAME).display()
        )
    }

    /// The group has refused this database, at this seqno, beside this log: the next start is to know.
    pub fn note_refused(&self, link: &Link, seqno: i64) {
        let database = Position { uuid: link.history, seqno };
        if let Err(e) = refused::note(&self.log_dir(), database) {
            self.local.error(&format!(
                "{}: {e}. The next start would not know that this database was refused: do not start this \
                 node before you have done what the next line says",
                self.log_dir().join(refused::NAME).display()
            ));
        }
    }

    /// The database is another one now.
    pub fn forget_refused(&self) {
        if let Err(e) = refused::forget(&self.log_dir()) {
            self.local.warn(&format!(
                "{}: {e}; it speaks of a database that was replaced, and may be removed",
                self.log_dir().join(refused::NAME).display()
            ));
        }
    }

    fn log_dir(&self) -> PathBuf {
        self.local.settings(|settings| PathBuf::from(&settings.log_dir))
    }

    /// Reads what the former run noted of isolated actions on this data, which stands at `position`.
    /// Gives back, by seqno, the streaming transactions that they may have ended.
    pub fn open_isolated(
        &self,
        history: u128,
        position: Option<i64>,
    ) -> Result<BTreeMap<i64, BTreeSet<Stream>>, UnusableNote> {
        self.isolated.open(history, position)
    }

    /// The seqno of the last isolated action that may have been executed on this data above its position.
    pub fn last_isolated(&self) -> Option<i64> {
        self.isolated.last_noted()
    }

    /// Whether the action of this seqno was executed on this data before the restart.
    pub fn was_executed(&self, seqno: i64, tables: &[(String, String)]) -> bool {
        self.isolated.was_executed(seqno, tables)
    }

    /// Notes that an isolated action is about to run on this node's data.
    pub fn isolated_begins(&self, seqno: i64, tables: &[(String, String)]) {
        let link = self.local.link();
        let history = link.as_ref().map_or(0, |l| l.history);
        self.noted(seqno, self.isolated.begun(history, seqno, tables));
        self.isolated_severs(|origin| link.as_ref().is_some_and(|l| l.node == *origin));
        if let Some(link) = &link {
            let own = link.severed.met(seqno, |origin| *origin == link.node);
            let open = link.ends.open();
            let mut met = self.met.lock();
            met.retain(|trx_id| open.contains(trx_id));
            met.extend(own.into_iter().map(|(_, trx_id)| trx_id));
            drop(met);
            self.look_at_ends(link);
        }
    }

    /// A streaming transaction of this process has ended here, its end is not in the log, and the connection closes.
    /// The server may find it again when it is started. Where DDL was in between, others may have ended it in the place
    /// of that, and written its rows: then the next start fetches the state. Without others nobody has; and the only
    /// state that there is must not be given up.
    pub fn look_at_ends(&self, link: &Link) {
        let is_alone = || self.local.counters.view_members.lock().len() == 1;
        let has_only_state = || !link.state_elsewhere() || is_alone();
        let is_noted = self.unusable.load(Ordering::Acquire);
        if is_noted || !link.closing() || link.ends.are_ordered() || has_only_state() {
            return;
        }
        let open = link.ends.open();
        if self.met.lock().iter().any(|trx_id| open.contains(trx_id)) {
            self.local.warn(
                "A streaming transaction was rolled back here while this node was closing. DDL ran at the same time, and \
                 may have ended it on the other nodes before: the next start fetches the state from one of them",
            );
            self.note_unusable();
        }
    }

    /// The one that runs, if any, aborts a transaction, which may be any streaming one.
    pub fn isolated_aborts(&self) {
        self.isolated_severs(|_| true);
    }

    /// The one that runs, if any, may end the streaming transactions of these processes that it met.
    fn isolated_severs(&self, of: impl Fn(&u128) -> bool) {
        let Some(link) = self.local.link() else { return };
        let met = |seqno| link.severed.met(seqno, &of);
        if let Err((seqno, error)) = self.isolated.severs(link.history, met) {
            self.noted(seqno, Err(error));
        }
    }

    /// Notes that it has run.
    pub fn isolated_is_done(&self, seqno: i64) {
        let link = self.local.link();
        if let Some(link) = &link {
            // What goes on here behind it was in nobody's way, here or elsewhere.
            let open = link.ends.open();
            self.met.lock().retain(|trx_id| open.contains(trx_id));
        }
        self.noted(seqno, self.isolated.done(link.map_or(0, |l| l.history), seqno));
    }

    fn noted(&self, seqno: i64, result: std::io::Result<()>) {
        if let Err(e) = result {
            self.local.warn(&format!(
                "The DDL of seqno {seqno} could not be noted in the data directory ({e}); \
                 should this node crash right now, it may execute it twice"
            ));
        }
    }

    /// Reads what is known of errors on this data, which stands at `position`; after [`Records::open_isolated`].
    pub fn open_errors(&self, history: u128, position: i64) -> Result<(), UnusableNote> {
        let is_done = |seqno| self.isolated.is_done(seqno);
        self.errors_noted(self.errors.open(history, position, is_done)?);
        Ok(())
    }

    /// This data was replaced by a state of this position: what went before does not count.
    pub fn errors_replaced(&self, history: u128, position: i64) {
        self.errors_noted(self.errors.replaced(history, position));
    }

    /// Notes an error, durably, before anybody is asked about it.
    pub fn note_error(&self, seqno: i64, ballot: Ballot) -> io::Result<()> {
        self.errors.note(seqno, ballot)
    }

    /// How the write set of this seqno went on this data.
    pub fn past(&self, seqno: i64) -> Past {
        self.errors.past(seqno)
    }

    fn errors_noted(&self, result: io::Result<()>) {
        if let Err(e) = result {
            self.local.warn(&format!(
                "The notes of errors in the data directory cannot be kept ({e}): should this node be away \
                 while the group votes, it may have to fetch the state anew"
            ));
        }
    }
}
