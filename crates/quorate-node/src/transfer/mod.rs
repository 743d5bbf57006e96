//! State transfer by the server's own scripts: for a node whose position the log does not cover.
//!
//! The joiner's request is an entry of the group log, addressed to one donor, so that the donor
//! serves it at a place in the total order that is after the joiner's arrival. A donor that is
//! busy says so by another entry, and the joiner asks the next one. Once a donor has begun, the
//! joiner's database is no database until it is complete: if the donor fails, or leaves the group
//! without a word, the joiner stops at once, rather than when its script has lost patience.
//!
//! Which transfers are under way follows from the log ([`quorate_certify::Transfers`]). A joiner
//! does not listen before the last one has ended whose joiner is gone: it may be its own former
//! process that the stream is for, and the stream does not know the one from the other.
//!
//! Isolated actions (DDL) wait on the donor until the transfer is over. mariabackup copies the
//! tables' definitions and the InnoDB files one after the other, and counts on the server's backup
//! locks to keep DDL out; but appliers pass those locks, and the server does not stop for a backup
//! that sends the state. What came through would leave the joiner with definitions that do not
//! fit its tables. Other write sets go on until the first one that follows a DDL; that costs only
//! this node, whose backlog is the log. Wherever the server does stop this provider (`pause`), DDL
//! up to the point where it is to stand still runs: the server waits for it, and the backup for
//! the server. An operator who cannot wait says so (`quorate.transfer_holds_ddl`).
//!
//! Locks: that of the signals and that of whom the donor serves, neither under the other; nothing is called
//! under them.

mod donor;
mod joiner;
mod signals;

pub use signals::Signals;

use self::donor::Donor;
use self::joiner::Joiner;
use crate::blocking::Mutex;
use crate::catch_up::CatchUp;
use crate::host::HostCtx;
use crate::link::Link;
use crate::local::{Local, LocalState};
use crate::order::Event;
use crate::primary::Primary;
use crate::proposals::Proposals;
use crate::records::Records;
use crate::withdraw::{Stop, Withdrawal};
use bytes::Bytes;
use quorate_certify::{Asked, StateRequest};
use quorate_live::View;
use std::sync::Arc;

/// A donor that is busy: ask another.
const DONOR_BUSY: i32 = -libc::EAGAIN;

/// What a joiner notes for a donor that left the group before it was done.
const DONOR_GONE: i32 = -libc::ENOTCONN;

pub struct Transfer {
    local: Arc<Local>,
    signals: Arc<Signals>,
    joiner: Joiner,
    donor: Donor,
}

/// What a transfer is handed.
pub struct Parts {
    pub local: Arc<Local>,
    pub records: Arc<Records>,
    pub withdrawal: Arc<Withdrawal>,
    pub proposals: Arc<Proposals>,
    pub catch_up: Arc<CatchUp>,
    pub primary: Arc<Primary>,
    pub signals: Arc<Signals>,
}

impl Transfer {
    pub fn new(parts: Parts) -> Self {
        let Parts { local, records, withdrawal, proposals, catch_up, primary, signals } = parts;
        let joiner = Joiner {
            local: local.clone(),
            records,
            proposals: proposals.clone(),
            primary,
            signals: signals.clone(),
        };
        let donor = Donor {
            local: local.clone(),
            withdrawal,
            proposals,
            catch_up,
            signals: signals.clone(),
            serving: Mutex::default(),
            waiting: Mutex::default(),
        };
        Self { local, signals, joiner, donor }
    }

    /// `preferred`: the donors to choose from, as the server was told.
    pub fn begin_connection(&self, preferred: &str) {
        self.signals.begin_connection(preferred);
        self.donor.begin_connection();
    }

    /// A state request at its place in the log: `seqno` is the last one before it.
    /// A request that was sent twice (its sender had no answer from a leader in time) is one: the
    /// second would be refused by a donor at work, or set it to work again on a running database.
    pub fn requested(&self, link: &Link, request: StateRequest, asked: Asked, seqno: i64) {
        let StateRequest { donor, joiner, message } = request;
        match asked {
            Asked::Opened if donor == link.node => match self.local.state() {
                LocalState::Joined | LocalState::Donor | LocalState::Synced => {
                    match self.donor.takes(joiner, &message) {
                        Ok(false) => {}
                        // Not all of the entry is kept for it.
                        Ok(true) => self.local.queue.push(Event::Donate {
                            seqno,
                            request: Bytes::copy_from_slice(&message),
                            joiner,
                        }),
                        Err(code) => self.donor.tell_joiner(link, joiner, code),
                    }
                }
                // The queue stands still until this node has its own state, perhaps from that very
                // joiner.
                LocalState::Undefined | LocalState::Joiner | LocalState::Error => {
                    self.donor.tell_joiner(link, joiner, DONOR_BUSY);
                }
            },
            Asked::Void if joiner == link.node => self.signals.void(),
            _ => {}
        }
    }

    /// A donor has said to its joiner how it went.
    pub fn ended(&self, link: &Link, joiner: u128, code: i32) {
        if joiner == link.node {
            self.signals.donor_said(code);
        }
    }

    /// The transfers that are under way have changed: these donors' joiners are gone.
    pub fn set_orphans(&self, orphans: Vec<u128>) {
        self.signals.set_orphans(orphans);
    }

    /// A view in the log's order.
    pub fn view(&self, view: &View) {
        self.signals.view(view);
    }

    /// Has the server receive the state of another node. `None` if the connection is being closed.
    pub fn receive(&self, link: &Link) -> Result<Option<i64>, Stop> {
        self.joiner.receive(link)
    }

    /// The server has received a state (or failed to): called on a thread of its own.
    pub fn received(&self, uuid: u128, seqno: i64, code: i32) -> bool {
        self.joiner.received(uuid, seqno, code)
    }

    /// Has the server send its state to `joiner`.
    pub fn donate(&self, ctx: HostCtx, link: &Link, seqno: i64, request: &[u8], joiner: u128) {
        self.donor.donate(ctx, link, seqno, request, joiner);
    }

    /// The server has sent it (or failed to).
    pub fn sent(&self, code: i32) {
        self.donor.sent(code);
    }

    /// The option may be set at any time, in a transfer too.
    pub fn let_ddl_run_if_told(&self) {
        self.donor.let_ddl_run_if_told();
    }
}
