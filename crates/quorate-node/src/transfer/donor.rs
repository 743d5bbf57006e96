//! The donor: has its server send its state.

use super::signals::Signals;
use super::DONOR_BUSY;
use crate::blocking::Mutex;
use crate::catch_up::CatchUp;
use crate::host::HostCtx;
use crate::link::Link;
use crate::local::{Local, LocalState};
use crate::order::GateHolder;
use crate::proposals::Proposals;
use crate::withdraw::Withdrawal;
use quorate_certify::{Kind, StateOutcome};
use quorate_consensus::MemberId;
use std::sync::Arc;

pub struct Donor {
    pub local: Arc<Local>,
    pub withdrawal: Arc<Withdrawal>,
    pub proposals: Arc<Proposals>,
    pub catch_up: Arc<CatchUp>,
    pub signals: Arc<Signals>,
    /// Whom it serves.
    pub serving: Mutex<Option<u128>>,
}

impl Donor {
    pub fn begin_connection(&self) {
        *self.serving.lock() = None;
    }

    /// Starts sending, with commits held still until the script has taken its place.
    pub fn donate(&self, ctx: HostCtx, link: &Link, seqno: i64, request: &[u8], joiner: u128) {
        let level = self.withdrawal.in_order(self.local.apply.wait(seqno)).is_some();
        // Only a synced server lets the script's own sessions in.
        let can = level
            && self.local.state() == LocalState::Synced
            && self.signals.is_present(joiner)
            && self.serve(joiner);
        if !can {
            self.tell_joiner(link, joiner, DONOR_BUSY);
            return;
        }
        self.local.set_state(LocalState::Donor);
        let at = self.local.commit.close_gates_of_donor(seqno);
        self.let_ddl_run_if_told();
        if self.withdrawal.in_order(self.local.apply.wait(at)).is_none() {
            *self.serving.lock() = None;
            self.tell_joiner(link, joiner, -libc::ECANCELED);
            return;
        }
        let started = self.local.host.donate(ctx, request, link.history.to_be_bytes(), at, false);
        self.local.commit.open_gate(GateHolder::Donor);
        if started.is_err() {
            self.local.warn(&format!(
                "State transfer to {} failed: it could not be started (see the lines above). This node goes on, the joiner has to ask again",
                MemberId(joiner)
            ));
            *self.serving.lock() = None;
            self.local.commit.open_isolated_gate();
            self.local.set_state(LocalState::Joined);
            self.tell_joiner(link, joiner, -libc::ECANCELED);
        }
    }

    /// The option may be set at any time, in a transfer too.
    pub fn let_ddl_run_if_told(&self) {
        if !self.local.settings(|settings| settings.transfer_holds_isolated) {
            self.local.commit.open_isolated_gate();
        }
    }

    /// The server has sent it (or failed to).
    pub fn sent(&self, code: i32) {
        let joiner = self.serving.lock().take();
        self.local.commit.open_isolated_gate();
        let Some(link) = self.local.link() else { return };
        if let Some(joiner) = joiner {
            self.tell_joiner(&link, joiner, code);
        }
        self.catch_up.donated(&link);
    }

    /// Notes that `joiner` is served, if nobody is yet.
    fn serve(&self, joiner: u128) -> bool {
        let mut serving = self.serving.lock();
        let free = serving.is_none();
        serving.get_or_insert(joiner);
        free
    }

    pub fn tell_joiner(&self, link: &Link, joiner: u128, code: i32) {
        let outcome = StateOutcome { joiner, code };
        if let Err(e) = self.proposals.message(link, Kind::STATE_OUTCOME, &outcome.encode()) {
            self.local.warn(&e);
        }
    }
}
