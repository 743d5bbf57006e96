//! One node: everything that the interface's calls share. State is per node, never per process.

use crate::blocking::{Mutex, RwLock};
use crate::counters::Counters;
use crate::exit::Exit;
use crate::failed::FailedNotes;
use crate::helpers::Helpers;
use crate::host::Host;
#[cfg(test)]
use crate::host::{ApplyCall, HostCtx, HostView};
use crate::isolated::IsolatedNotes;
use crate::link::Link;
use crate::options::Options;
use crate::order::{ApplyOrder, CommitOrder};
use crate::pause::PauseState;
use crate::primary::Primary;
use crate::queue::EventQueue;
use crate::toi::ToiTable;
use crate::transfer::Transfer;
use crate::trx::TrxTable;
use crate::vote::Desk;
use quorate_live::Group;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

/// A place in a history of write sets: the interface's GTID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    pub uuid: u128,
    pub seqno: i64,
}

/// What the server said of itself at `init`.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    pub name: String,
    pub address: String,
    pub incoming: String,
    pub data_dir: PathBuf,
    pub proto_ver: i32,
    /// The recovered position (`--wsrep_start_position`), if the server has one.
    pub start: Option<Position>,
}

/// `wsrep_local_state`.
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
    pub options: Mutex<Options>,
    pub commit: CommitOrder,
    pub apply: ApplyOrder,
    pub trxs: TrxTable,
    pub toi: ToiTable,
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
    /// The member behind the link, for what an operator orders of it.
    controls: RwLock<Option<Arc<Group>>>,
    link: RwLock<Option<Arc<Link>>>,
    local_state: AtomicU8,
}

impl Node {
    pub fn new(host: Box<dyn Host>, config: NodeConfig, options: Options) -> Self {
        let queue = EventQueue::new(options.bytes("quorate.queue_bytes") as usize);
        let isolated = IsolatedNotes::new(&config.data_dir);
        let failed = FailedNotes::new(&config.data_dir);
        Self {
            isolated,
            failed,
            host,
            recovered: Mutex::new(config.start),
            config,
            options: Mutex::new(options),
            commit: CommitOrder::new(),
            apply: ApplyOrder::new(),
            trxs: TrxTable::new(),
            toi: ToiTable::new(),
            queue,
            transfer: Transfer::new(),
            pause: PauseState::new(),
            desk: Desk::new(),
            primary: Primary::new(),
            exit: Exit::default(),
            helpers: Helpers::default(),
            counters: Counters::new(),
            controls: RwLock::new(None),
            link: RwLock::new(None),
            local_state: AtomicU8::new(LocalState::Undefined as u8),
        }
    }

    /// Without a server or a group.
    #[cfg(test)]
    pub fn for_tests() -> Self {
        struct Deaf;
        impl Host for Deaf {
            fn log(&self, _level: libc::c_int, _message: &str) {}
            fn connected(&self, _view: &HostView) -> Result<(), ()> {
                Err(())
            }
            fn view(&self, _ctx: HostCtx, _view: &HostView) -> Result<(), ()> {
                Err(())
            }
            fn sst_request(&self) -> Result<Vec<u8>, ()> {
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
        };
        Node::new(Box::new(Deaf), config, Options::default())
    }

    /// The connection to the group, while there is one.
    pub fn link(&self) -> Option<Arc<Link>> {
        self.link.read().clone()
    }

    /// The member of the group, to be told what to do.
    pub fn controls(&self) -> Option<Arc<Group>> {
        self.controls.read().clone()
    }

    pub fn set_controls(&self, group: Option<Arc<Group>>) {
        *self.controls.write() = group;
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
        self.host.log(crate::abi::log_level::ERROR, text);
    }

    pub fn warn(&self, text: &str) {
        self.host.log(crate::abi::log_level::WARN, text);
    }

    pub fn info(&self, text: &str) {
        self.host.log(crate::abi::log_level::INFO, text);
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
