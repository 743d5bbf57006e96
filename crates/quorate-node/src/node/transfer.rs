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

use super::Stop;
use super::{LocalState, Node};
use crate::blocking::{self, Condvar, Mutex, MutexGuard};
use crate::host::HostCtx;
use crate::link::{node_uuid, Link};
use crate::order::queue::Event;
use crate::order::GateKeeper;
use crate::settings::Words;
use crate::start::durable::sync_tree;
use bytes::Bytes;
use quorate_certify::{Asked, Kind, StateOutcome, StateRequest};
use quorate_consensus::MemberId;
use quorate_live::{View, ViewMember};
use std::time::Duration;

/// A donor that is busy: ask another.
pub const DONOR_BUSY: i32 = -libc::EAGAIN;

/// What a joiner notes for a donor that left the group before it was done.
const DONOR_GONE: i32 = -libc::ENOTCONN;

/// A donor's script for a joiner that is gone finds nobody listening and ends, with mariabackup
/// after ten seconds. It is waited for as long as that may take on a busy machine, and for a donor
/// that is away itself only so long that it would have ended before it.
const ORPHAN_LIMIT: Duration = Duration::from_secs(60);
const ORPHAN_LIMIT_AWAY: Duration = Duration::from_secs(20);

/// How long to wait before asking busy donors again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What the joining applier thread waits for.
pub struct Transfer {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    /// Joiner: what the server received.
    received: Option<Result<i64, i32>>,
    /// Joiner: what the donor asked last has said.
    donor_code: Option<i32>,
    /// Joiner: whom it asked last.
    asked: Option<u128>,
    /// Who is in the group, at the sequencer's place in the log.
    view: View,
    /// Donors whose joiners are gone, at the same place.
    orphans: Vec<u128>,
    /// Donor: whom it serves.
    serving: Option<u128>,
    /// Donors to choose from, as the server was told.
    preferred: String,
}

impl Inner {
    fn is_present(&self, node: u128) -> bool {
        self.view.members.iter().any(|m| node_uuid(m.id, m.incarnation) == node)
    }
}

impl Transfer {
    pub fn new() -> Self {
        Self { inner: Mutex::new(Inner::default()), changed: Condvar::new() }
    }

    pub fn begin_connection(&self, preferred: &str) {
        *self.inner.lock() = Inner { preferred: preferred.to_string(), ..Inner::default() };
    }

    pub fn donor_said(&self, code: i32) {
        self.inner.lock().donor_code = Some(code);
        self.changed.notify_all();
    }

    /// The transfers that are under way have changed.
    pub fn follow(&self, orphans: Vec<u128>) {
        self.inner.lock().orphans = orphans;
        self.changed.notify_all();
    }

    /// A view in the log's order. A donor that is gone will not say how it went.
    pub fn view(&self, view: &View) {
        let mut inner = self.inner.lock();
        inner.view = view.clone();
        let gone = inner.asked.is_some_and(|donor| !inner.is_present(donor));
        if gone && inner.donor_code.is_none() {
            inner.donor_code = Some(DONOR_GONE);
            self.changed.notify_all();
        }
    }

    /// The own request was not opened: nobody is there to hear it.
    fn void(&self) {
        self.inner.lock().donor_code = Some(DONOR_BUSY);
        self.changed.notify_all();
    }

    pub fn wake(&self) {
        let _inner = self.inner.lock();
        self.changed.notify_all();
    }
}

impl Node {
    /// A state request at its place in the log: `seqno` is the last one before it.
    /// A request that was sent twice (its sender had no answer from a leader in time) is one: the
    /// second would be refused by a donor at work, or set it to work again on a running database.
    pub fn state_requested(&self, link: &Link, request: StateRequest, asked: Asked, seqno: i64) {
        match asked {
            Asked::Opened if request.donor == link.node => match self.local_state() {
                LocalState::Joined | LocalState::Donor | LocalState::Synced => {
                    self.queue.push(Event::Donate {
                        seqno,
                        request: request.message,
                        joiner: request.joiner,
                    });
                }
                // The queue stands still until this node has its own state, perhaps from that very
                // joiner.
                LocalState::Undefined | LocalState::Joiner | LocalState::Error => {
                    self.tell_joiner(link, request.joiner, DONOR_BUSY);
                }
            },
            Asked::Void if request.joiner == link.node => self.transfer.void(),
            _ => {}
        }
    }

    /// Joiner: has the server fetch the state. `None` if the connection is being closed.
    pub fn receive_state(&self, link: &Link) -> Result<Option<i64>, Stop> {
        self.info("This node's position is not covered by the group's log (or unknown): requesting a state transfer");
        self.await_orphans(link);
        if link.closing() {
            return Ok(None);
        }
        let message = self.host.state_request().map_err(|()| {
            format!("Requesting state transfer failed: it could not be prepared (see the lines above; check {} and its address). The node cannot join", self.config.words.transfer_method)
        })?;
        if message.is_empty() {
            let Words { transfer_method, transfer_methods, .. } = self.config.words;
            return Err(format!("this node needs a state transfer, but {transfer_method} allows none: set it to {transfer_methods} and restart").into());
        }
        let mut donors = self.donors(link)?;
        loop {
            for donor in &donors {
                self.info(&format!("Requesting state transfer from {}", donor.name));
                crate::sync::point("before_send_state_request");
                self.propose_request(link, node_uuid(donor.id, donor.incarnation), &message)?;
                crate::sync::point("after_shift_to_joining");
                match self.await_transfer(link) {
                    Waited::Received(result) => return self.received(result).map(Some),
                    Waited::Closing => return Ok(None),
                    Waited::Failed(code) => return Err(failed_at_donor(&donor.name, code)),
                    Waited::Refused => self.info(&format!("{} cannot donate now", donor.name)),
                }
            }
            match self.pause_before_asking_again(link) {
                Some(Waited::Received(result)) => return self.received(result).map(Some),
                Some(_) => return Ok(None),
                None => {}
            }
            // Others may have come, or come back as other processes. If nobody is left, those who
            // were there last are asked until somebody is.
            donors = self.donors(link).unwrap_or(donors);
        }
    }

    /// Blocks while a donor may still send to a joiner that is gone.
    fn await_orphans(&self, link: &Link) {
        let begin = blocking::now();
        let mut inner = self.transfer.inner.lock();
        let mut said = false;
        while !inner.orphans.is_empty() && !link.closing() {
            let present = inner.orphans.iter().any(|donor| inner.is_present(*donor));
            let limit = begin + if present { ORPHAN_LIMIT } else { ORPHAN_LIMIT_AWAY };
            if !said {
                said = true;
                let names = names(&inner.view, &inner.orphans);
                MutexGuard::unlocked(&mut inner, || {
                    self.info(&format!(
                        "{names} may still be sending the state to a node that has gone (this one, before its restart?): waiting for the end of that"
                    ));
                });
                continue;
            }
            if self.transfer.changed.wait_until(&mut inner, limit).timed_out() {
                let names = names(&inner.view, &inner.orphans);
                drop(inner);
                self.warn(&format!(
                    "{names} did not say that a state transfer to a node that has gone is over. This node asks for the state now; if it receives a stream that was not meant for it, it stops, and is to be started again"
                ));
                return;
            }
        }
    }

    fn received(&self, result: Result<i64, i32>) -> Result<i64, Stop> {
        result.map_err(|code| Stop {
            why: format!(
                "Will never receive state. Need to abort. The state transfer failed (code {code}); the lines of the transfer script above say why. \
                 No other node is affected. Restart this node to try again"
            ),
            for_now: true,
        })
    }

    fn propose_request(&self, link: &Link, donor: u128, message: &[u8]) -> Result<(), String> {
        let mut inner = self.transfer.inner.lock();
        inner.donor_code = None;
        inner.asked = Some(donor);
        drop(inner);
        let request =
            StateRequest { donor, joiner: link.node, message: Bytes::copy_from_slice(message) };
        self.propose_small(link, Kind::STATE_REQUEST, &request.encode())
    }

    fn await_transfer(&self, link: &Link) -> Waited {
        let mut inner = self.transfer.inner.lock();
        loop {
            if let Some(result) = inner.received.take() {
                return Waited::Received(result);
            }
            match inner.donor_code {
                Some(DONOR_BUSY) => return Waited::Refused,
                Some(code) if code < 0 => return Waited::Failed(code),
                _ => {}
            }
            if link.closing() {
                return Waited::Closing;
            }
            self.transfer.changed.wait(&mut inner);
        }
    }

    /// All donors were busy: gives them a moment. Some: the wait ended for another reason.
    fn pause_before_asking_again(&self, link: &Link) -> Option<Waited> {
        let until = blocking::now() + ASK_AGAIN;
        let mut inner = self.transfer.inner.lock();
        while blocking::now() < until && !link.closing() {
            if let Some(result) = inner.received.take() {
                return Some(Waited::Received(result));
            }
            self.transfer.changed.wait_until(&mut inner, until);
        }
        link.closing().then_some(Waited::Closing)
    }

    /// Whom to ask, best first: the configured ones, else followers before the leader.
    fn donors(&self, link: &Link) -> Result<Vec<ViewMember>, String> {
        let leader = link.group.status().leader;
        let (preferred, view) = {
            let inner = self.transfer.inner.lock();
            (inner.preferred.clone(), inner.view.clone())
        };
        let mut others: Vec<_> = view.members.iter().filter(|m| m.id != link.member).collect();
        others.sort_by_key(|m| Some(m.id) == leader);
        let names: Vec<&str> = preferred.split(',').map(str::trim).collect();
        let mut chosen: Vec<_> = names
            .iter()
            .filter_map(|n| others.iter().find(|m| !n.is_empty() && m.name == *n).copied())
            .collect();
        let any_other = names.last().is_none_or(|n| n.is_empty()) || chosen.is_empty();
        if any_other {
            chosen.extend(others.iter().filter(|m| !names.contains(&m.name.as_str())).copied());
        }
        if chosen.is_empty() {
            let Words { recover, start_position, .. } = self.config.words;
            return Err(format!(
                "this node needs a state transfer, but it is alone in the group: its position is unknown \
                 and nobody can send it the state. If its data is the one to go on with, restart it with \
                 the position that {recover} prints ({start_position})"
            ));
        }
        Ok(chosen.into_iter().cloned().collect())
    }

    /// The server has received a state (or failed to): called on a thread of its own.
    pub fn state_received(&self, uuid: u128, seqno: i64, code: i32) -> bool {
        let Some(link) = self.link() else { return false };
        let result = if code != 0 {
            Err(code)
        } else if uuid != link.history || seqno < 0 {
            self.error(
                "The state transfer brought a state of another group, or without a position",
            );
            Err(-libc::EINVAL)
        } else if let Err(error) = sync_tree(&self.config.data_dir) {
            self.error(&format!(
                "The state transfer brought data that cannot be made durable ({error}): this node does not go on with it. See to its disk, then start it again; it will ask for the state anew"
            ));
            Err(-libc::EIO)
        } else {
            self.commit.set_position(seqno);
            self.apply.set_position(seqno);
            self.queue.discard_upto(seqno);
            self.errors_noted(self.failed.replaced(link.history, seqno));
            self.info(&format!("State transfer complete: position {seqno}"));
            self.ask_for_view();
            Ok(seqno)
        };
        let good = result.is_ok();
        self.transfer.inner.lock().received = Some(result);
        self.transfer.changed.notify_all();
        good
    }

    /// Donor: starts sending, with commits held still until the script has taken its place.
    pub fn donate(&self, ctx: HostCtx, link: &Link, seqno: i64, request: &[u8], joiner: u128) {
        let level = self.in_order(self.apply.wait(seqno)).is_some();
        // Only a synced server lets the script's own sessions in.
        let can = level && self.local_state() == LocalState::Synced && {
            let inner = self.transfer.inner.lock();
            inner.serving.is_none() && inner.is_present(joiner)
        };
        if !can {
            self.tell_joiner(link, joiner, DONOR_BUSY);
            return;
        }
        self.transfer.inner.lock().serving = Some(joiner);
        self.set_local_state(LocalState::Donor);
        let at = self.commit.close_gates_of_donor(seqno);
        self.let_ddl_run_if_told();
        if self.in_order(self.apply.wait(at)).is_none() {
            self.transfer.inner.lock().serving = None;
            self.tell_joiner(link, joiner, -libc::ECANCELED);
            return;
        }
        let started = self.host.donate(ctx, request, link.history.to_be_bytes(), at, false);
        self.commit.open_gate(GateKeeper::Donor);
        if started.is_err() {
            self.warn(&format!(
                "State transfer to {} failed: it could not be started (see the lines above). This node goes on, the joiner has to ask again",
                MemberId(joiner)
            ));
            self.transfer.inner.lock().serving = None;
            self.commit.open_isolated_gate();
            self.set_local_state(LocalState::Joined);
            self.tell_joiner(link, joiner, -libc::ECANCELED);
        }
    }

    /// The option may be set at any time, in a transfer too.
    pub fn let_ddl_run_if_told(&self) {
        if !self.settings.lock().transfer_holds_isolated {
            self.commit.open_isolated_gate();
        }
    }

    /// Donor: the script has ended.
    pub fn state_sent(&self, code: i32) {
        let joiner = self.transfer.inner.lock().serving.take();
        self.commit.open_isolated_gate();
        let Some(link) = self.link() else { return };
        if let Some(joiner) = joiner {
            self.tell_joiner(&link, joiner, code);
        }
        if self.local_state() == LocalState::Donor && self.pause.desync_count() == 0 {
            self.set_local_state(LocalState::Joined);
            self.check_synced(&link);
        }
    }

    fn tell_joiner(&self, link: &Link, joiner: u128, code: i32) {
        let outcome = StateOutcome { joiner, code };
        if let Err(e) = self.propose_small(link, Kind::STATE_OUTCOME, &outcome.encode()) {
            self.warn(&e);
        }
    }
}

fn failed_at_donor(name: &str, code: i32) -> Stop {
    let why = match code {
        DONOR_GONE => format!(
            "Donor {name} is no longer in the group. State transfer cannot be completed, need to abort. \
             Restart this node to fetch the state from another"
        ),
        code => format!(
            "Will never receive state. Need to abort. State transfer from {name} failed (code {code}): \
             its error log says why. Restart this node to try again"
        ),
    };
    Stop { why, for_now: true }
}

/// The nodes that these are, as far as they are in the view.
fn names(view: &View, nodes: &[u128]) -> String {
    let name = |node: &u128| {
        let member = view.members.iter().find(|m| node_uuid(m.id, m.incarnation) == *node);
        member.map_or_else(|| MemberId(*node).to_string(), |m| m.name.clone())
    };
    nodes.iter().map(name).collect::<Vec<_>>().join(", ")
}

enum Waited {
    Received(Result<i64, i32>),
    Refused,
    /// The donor gave up after it had begun.
    Failed(i32),
    Closing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_donor_that_leaves_has_failed_and_one_that_had_left_was_never_asked() {
        let transfer = Transfer::new();
        let code = || transfer.inner.lock().donor_code;
        let view = |ids: &[u128]| {
            let member = |id: &u128| ViewMember { id: MemberId(*id), ..ViewMember::default() };
            transfer.view(&View {
                number: 1,
                members: ids.iter().map(member).collect(),
                ..View::default()
            });
        };
        view(&[1, 2, 9]);
        transfer.inner.lock().asked = Some(2);
        view(&[1, 2]);
        assert_eq!(code(), None);
        view(&[1, 9]);
        assert_eq!(code(), Some(DONOR_GONE));
        transfer.void();
        assert_eq!(code(), Some(DONOR_BUSY), "the next one is asked");
        transfer.donor_said(0);
        view(&[9]);
        assert_eq!(code(), Some(0), "it had finished");
    }
}
