//! What all parts of a node stand on: its host, what it is, its place in both orders, what waits to be
//! applied, and its connection to the group. State is per node, never per process.
//!
//! Locks, here and in the rooms above: a lock of a part may be held while those of lower parts are taken,
//! never the other way round. Of those here only the queue's is held while another one is taken (commit
//! order's, and the link's, when a pause chooses where to stand still); the link's and the settings' are
//! let go before anything is called.

mod caused;
mod standing;
mod state;

pub use state::LocalState;

pub use caused::Caused;
use caused::Paces;
use standing::Telling;

use crate::blocking::{Mutex, RwLock};
use crate::counters::Counters;
use crate::host::{Host, Level};
use crate::lag::Lag;
use crate::link::Link;
use crate::order::queue::EventQueue;
use crate::order::{ApplyOrder, CommitOrder, GateHolder, Halted, PartPlaces, Still};
use crate::settings::{PartSizes, Settings, Words};
use crate::start::Position;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

/// What the server said of itself at its start.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    pub name: String,
    pub address: String,
    pub incoming: String,
    pub data_dir: PathBuf,
    pub proto_ver: i32,
    /// The recovered position, if the server has one.
    pub start: Option<Position>,
    pub words: Words,
}

pub struct Local {
    pub host: Box<dyn Host>,
    pub config: NodeConfig,
    pub commit: CommitOrder,
    pub apply: ApplyOrder,
    pub queue: EventQueue,
    pub still: Still,
    pub part_places: PartPlaces,
    pub part_sizes: PartSizes,
    pub counters: Counters,
    pub lags: Lag,
    telling: Telling,
    paces: Paces,
    settings: Mutex<Settings>,
    link: RwLock<Option<Arc<Link>>>,
    state: AtomicU8,
}

impl Local {
    pub fn new(host: Box<dyn Host>, config: NodeConfig, settings: Settings) -> Self {
        let counters = Counters::new();
        counters.configure(&settings);
        let telling = Telling::default();
        telling.configure(settings.consistency);
        Self {
            host,
            config,
            commit: CommitOrder::new(),
            apply: ApplyOrder::new(),
            queue: EventQueue::new(settings.queue_bytes),
            still: Still::default(),
            part_places: PartPlaces::default(),
            part_sizes: settings.parts,
            counters,
            lags: Lag::default(),
            telling,
            paces: Paces::default(),
            settings: Mutex::new(settings),
            link: RwLock::new(None),
            state: AtomicU8::new(LocalState::Undefined as u8),
        }
    }

    /// The operator has changed something.
    pub fn configure(&self, settings: Settings) {
        self.counters.configure(&settings);
        self.telling.configure(settings.consistency);
        if let Some(link) = self.link() {
            link.flow.configure(settings.flow);
        }
        *self.settings.lock() = settings;
    }

    /// Whoever asked for standing still, it is over.
    pub fn move_on(&self) {
        self.commit.open_gate(GateHolder::Pause);
        self.queue.open_gate();
        self.still.end();
    }

    /// What has this seqno is done here: it is visible, or undone.
    pub fn leave(&self, seqno: i64) -> Result<(), Halted> {
        self.part_places.done(seqno);
        self.apply.leave(seqno)?;
        self.tell_if_awaited();
        Ok(())
    }

    /// What `read` takes of the settings.
    pub fn settings<T>(&self, read: impl FnOnce(&Settings) -> T) -> T {
        read(&self.settings.lock())
    }

    /// The connection to the group, while there is one.
    pub fn link(&self) -> Option<Arc<Link>> {
        self.link.read().clone()
    }

    pub fn set_link(&self, link: Option<Arc<Link>>) -> Option<Arc<Link>> {
        match &link {
            Some(link) => link.flow.configure(self.settings(|settings| settings.flow)),
            None => self.telling.forget(),
        }
        std::mem::replace(&mut self.link.write(), link)
    }

    pub fn state(&self) -> LocalState {
        LocalState::of(self.state.load(Ordering::Acquire))
    }

    pub fn set_state(&self, state: LocalState) {
        let before = self.state();
        if before != state {
            self.state.store(state as u8, Ordering::Release);
            self.info(&format!(
                "Shifting {} -> {} (TO: {})",
                before.shift_name(),
                state.shift_name(),
                self.apply.last_left()
            ));
        }
    }

    pub fn error(&self, text: &str) {
        self.host.log(Level::Error, text);
    }

    pub fn warn(&self, text: &str) {
        self.host.log(Level::Warn, text);
    }

    pub fn info(&self, text: &str) {
        self.host.log(Level::Info, text);
    }

    /// A line that a member can cause as often as it likes.
    pub fn caused(&self, what: Caused, level: Level, text: &str) {
        if let Some(others) = self.may_be_caused(what) {
            self.host.log(level, &(text.to_owned() + &others));
        }
    }

    /// Whether this may happen now, since members can cause it as often as they like. If so: what to say of those
    /// times that were left out.
    pub fn may_be_caused(&self, what: Caused) -> Option<String> {
        self.paces.due(what)
    }

    /// Without a server or a group.
    #[cfg(test)]
    pub fn for_tests() -> Self {
        let config = NodeConfig {
            name: "node".into(),
            address: String::new(),
            incoming: String::new(),
            data_dir: PathBuf::from("/nonexistent"),
            proto_ver: 4,
            start: None,
            words: Words::for_tests(),
        };
        Local::new(Box::<crate::host::Deaf>::default(), config, Settings::default())
    }
}
