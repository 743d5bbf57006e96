//! One node: everything that the interface's calls share. State is per node, never per process.

mod counters;
mod exit;
mod gtid_domain;
mod helpers;
mod pause;
mod primary;
mod proposals;
mod record;
mod synced;
mod transfer;
mod views;
mod votes;
mod withdraw;

pub use primary::Gate;
pub use transfer::DONOR_BUSY;
pub use views::refused;
pub use withdraw::{guard, Stop, LEAVE_TIMEOUT};

use self::counters::Counters;
use self::exit::Exit;
use self::helpers::Helpers;
use self::pause::PauseState;
use self::primary::Primary;
use self::transfer::Transfer;
use self::votes::Desk;
use crate::blocking::{Mutex, RwLock};
use crate::fate::trx::{IsolatedTable, TrxTable};
#[cfg(test)]
use crate::host::{ApplyCall, HostCtx, HostView};
use crate::host::{Host, Level};
use crate::link::Link;
use crate::order::queue::EventQueue;
use crate::order::{ApplyOrder, CommitOrder};
use crate::settings::{Settings, Words};
use crate::start::failed::FailedNotes;
use crate::start::isolated::IsolatedNotes;
use crate::start::Position;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

/// What the server said of itself at `init`.
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

/// Where a node stands on its way into the group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum LocalState {
    Undefined = 0,
    Joiner = 1,
    Donor = 2,
    Joined = 3,
    Synced = 4,
    Error = 5,
}

pub struct Node {
    pub host: Box<dyn Host>,
    pub config: NodeConfig,
    /// What the server recovered at its start (`NodeConfig::start`), until a connection has begun
    /// from it. A later one begins where the former ended, as `grastate.dat` says.
    pub recovered: Mutex<Option<Position>>,
    pub settings: Mutex<Settings>,
    pub commit: CommitOrder,
    pub apply: ApplyOrder,
    pub trxs: TrxTable,
    pub isolated_running: IsolatedTable,
    pub isolated: IsolatedNotes,
    pub failed: FailedNotes,
    pub queue: EventQueue,
    pub transfer: Transfer,
    pub pause: PauseState,
    pub desk: Desk,
    pub primary: Primary,
    pub exit: Exit,
    pub helpers: Helpers,
    pub counters: Counters,
    link: RwLock<Option<Arc<Link>>>,
    local_state: AtomicU8,
}

impl Node {
    pub fn new(host: Box<dyn Host>, config: NodeConfig, settings: Settings) -> Self {
        let counters = Counters::new();
        counters.configure(&settings);
        let queue = EventQueue::new(settings.queue_bytes);
        let isolated = IsolatedNotes::new(&config.data_dir);
        let failed = FailedNotes::new(&config.data_dir);
        Self {
            isolated,
            failed,
            host,
            recovered: Mutex::new(config.start),
            config,
            settings: Mutex::new(settings),
            commit: CommitOrder::new(),
            apply: ApplyOrder::new(),
            trxs: TrxTable::default(),
            isolated_running: IsolatedTable::default(),
            queue,
            transfer: Transfer::new(),
            pause: PauseState::new(),
            desk: Desk::new(),
            primary: Primary::new(),
            exit: Exit::default(),
            helpers: Helpers::default(),
            counters,
            link: RwLock::new(None),
            local_state: AtomicU8::new(LocalState::Undefined as u8),
        }
    }

    /// Without a server or a group.
    #[cfg(test)]
    pub fn for_tests() -> Self {
        struct Deaf;
        impl Host for Deaf {
            fn log(&self, _level: Level, _message: &str) {}
            fn connected(&self, _view: &HostView) -> Result<(), ()> {
                Err(())
            }
            fn view(&self, _ctx: HostCtx, _view: &HostView) -> Result<(), ()> {
                Err(())
            }
            fn state_request(&self) -> Result<Vec<u8>, ()> {
                Err(())
            }
            fn donate(
                &self,
                _ctx: HostCtx,
                _request: &[u8],
                _uuid: [u8; 16],
                _seqno: i64,
                _bypass: bool,
            ) -> Result<(), ()> {
                Err(())
            }
            fn synced(&self) -> Result<(), ()> {
                Err(())
            }
            fn apply(&self, _ctx: HostCtx, _call: &ApplyCall<'_>) -> Result<bool, ()> {
                Err(())
            }
        }
        let config = NodeConfig {
            name: "node".into(),
            address: String::new(),
            incoming: String::new(),
            data_dir: PathBuf::from("/nonexistent"),
            proto_ver: 4,
            start: None,
            words: Words::for_tests(),
        };
        Node::new(Box::new(Deaf), config, Settings::default())
    }

    /// The operator has changed something.
    pub fn configure(&self, settings: Settings) {
        self.counters.configure(&settings);
        *self.settings.lock() = settings;
        self.let_ddl_run_if_told();
    }

    /// The connection to the group, while there is one.
    pub fn link(&self) -> Option<Arc<Link>> {
        self.link.read().clone()
    }

    pub fn set_link(&self, link: Option<Arc<Link>>) -> Option<Arc<Link>> {
        std::mem::replace(&mut self.link.write(), link)
    }

    pub fn local_state(&self) -> LocalState {
        match self.local_state.load(Ordering::Acquire) {
            1 => LocalState::Joiner,
            2 => LocalState::Donor,
            3 => LocalState::Joined,
            4 => LocalState::Synced,
            5 => LocalState::Error,
            _ => LocalState::Undefined,
        }
    }

    pub fn set_local_state(&self, state: LocalState) {
        let before = self.local_state();
        if before != state {
            self.local_state.store(state as u8, Ordering::Release);
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
}

impl LocalState {
    /// As Galera writes it in its log lines, which people search for.
    fn shift_name(self) -> &'static str {
        match self {
            LocalState::Undefined => "CLOSED",
            LocalState::Joiner => "JOINER",
            LocalState::Donor => "DONOR/DESYNCED",
            LocalState::Joined => "JOINED",
            LocalState::Synced => "SYNCED",
            LocalState::Error => "INCONSISTENT",
        }
    }
}
