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
use std::collections::BTreeSet;
use std::sync::Arc;

pub struct Donor {
    pub local: Arc<Local>,
    pub withdrawal: Arc<Withdrawal>,
    pub proposals: Arc<Proposals>,
    pub catch_up: Arc<CatchUp>,
    pub signals: Arc<Signals>,
    /// Whom it serves.
    pub serving: Mutex<Option<u128>>,
    /// Whose requests wait for their turn, one of each.
    pub waiting: Mutex<BTreeSet<u128>>,
}

/// The server's are a few names and an address.
const REQUEST_BYTES_MAX: usize = 4096;

impl Donor {
    pub fn begin_connection(&self) {
        self.serves_nobody();
        self.waiting.lock().clear();
    }

    /// Whether a request is to wait for its turn, or another one of its joiner does already; or the answer to it. The
    /// server looks for two texts, each ended by a zero byte, and relies on the first.
    pub fn takes(&self, joiner: u128, request: &[u8]) -> Result<bool, i32> {
        if !is_request(request) {
            return Err(-libc::EINVAL);
        }
        Ok(self.waiting.lock().insert(joiner))
    }

    /// Starts sending, with commits held still until the script has taken its place.
    pub fn donate(&self, ctx: HostCtx, link: &Link, seqno: i64, request: &[u8], joiner: u128) {
        self.waiting.lock().remove(&joiner);
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
        self.catch_up.set_donates(true);
        self.local.set_state(LocalState::Donor);
        let at = self.local.commit.close_gates_of_donor(seqno);
        self.let_ddl_run_if_told();
        if link.closing() && !link.server_stays() {
            // The end of the server has opened it, or will, and waits behind what the gate holds.
            self.local.commit.open_isolated_gate();
        }
        if self.withdrawal.in_order(self.local.apply.wait(at)).is_none() {
            self.serves_nobody();
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
            self.serves_nobody();
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

    fn serves_nobody(&self) {
        *self.serving.lock() = None;
        self.catch_up.set_donates(false);
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
            self.local.warn(&format!(
                "How a state transfer ended could not be sent to the node that asked for it: {e}. If that node goes on \
                 waiting for its state, restart it. No data is affected"
            ));
        }
    }
}

/// What a server's own request looks like.
fn is_request(request: &[u8]) -> bool {
    request.len() <= REQUEST_BYTES_MAX && request.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_given_nothing_that_has_no_end() {
        assert!(is_request(b"rsync\0db1:4444/rsync_sst\0") && is_request(b"trivial\0"));
        assert!(!is_request(b"") && !is_request(b"rsync"));
        assert!(!is_request(&[0; REQUEST_BYTES_MAX + 1]));
    }
}
