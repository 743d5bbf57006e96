//! Those who asked to be removed. Requests to this member, as the leader it is or was, are repeated
//! by their senders until they are met.

use super::{changes, policy};
use crate::driver::Driver;
use crate::output::Output;
use quorate_consensus::{MemberId, Status};
use quorate_wire::{LeaveAnswer, Packet};
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Departures {
    leaving: BTreeMap<MemberId, Leaving>,
    /// The removal of this member is committed.
    left: bool,
}

/// A member that wants to leave.
#[derive(Clone, Copy)]
struct Leaving {
    since_ms: u64,
    /// Of the process that wants it. The one after it does not.
    incarnation: Option<u32>,
}

impl Departures {
    pub fn ask(&mut self, leaver: MemberId, driver: &Driver) {
        let (since_ms, incarnation) = (driver.now_ms, incarnation_of(leaver, driver));
        let leaving = self.leaving.entry(leaver).or_insert(Leaving { since_ms, incarnation });
        if leaving.incarnation != incarnation {
            *leaving = Leaving { since_ms, incarnation };
        }
    }

    pub fn set_left(&mut self) {
        self.left = true;
    }

    pub fn has_left(&self) -> bool {
        self.left
    }

    /// Removes those who asked for it, and tells them once that is committed.
    pub fn serve(&mut self, driver: &mut Driver, status: &Status, out: &mut Output) {
        let committed = status.commit >= status.config_index && !status.config.is_joint();
        self.leaving.retain(|id, leaving| incarnation_of(*id, driver) == leaving.incarnation);
        for (id, Leaving { since_ms, .. }) in self.leaving.clone() {
            if !status.config.members.contains_key(&id) {
                if committed {
                    self.leaving.remove(&id);
                    self.done(id, driver, out);
                }
            } else if driver.leads() && committed {
                remove(driver, status, id, since_ms, out);
            } else if !driver.leads() && id != driver.id {
                // It asks the next leader.
                self.leaving.remove(&id);
            }
        }
    }

    fn done(&mut self, id: MemberId, driver: &mut Driver, out: &mut Output) {
        if id == driver.id {
            self.left = true;
            driver.changes += 1;
        } else {
            out.send(id, Packet::LeaveAnswer(LeaveAnswer::Done));
        }
    }
}

fn incarnation_of(id: MemberId, driver: &Driver) -> Option<u32> {
    match driver.peers.get(id) {
        _ if id == driver.id => Some(driver.incarnation),
        peer => peer?.identity.as_ref().map(|identity| identity.incarnation),
    }
}

fn remove(driver: &mut Driver, status: &Status, id: MemberId, since_ms: u64, out: &mut Output) {
    let waited_ms = driver.now_ms.saturating_sub(since_ms);
    // A connection may outlive its process for a moment: whoever was heard since the request
    // lives, the others get a while to be heard or to disconnect.
    let heard = |id: MemberId| status.peer(id).is_some_and(|peer| peer.silent_ms < waited_ms);
    let connected = |id: MemberId| driver.peers.is_connected(id);
    let unclear =
        |other: MemberId| other != id && other != driver.id && connected(other) && !heard(other);
    let patient = waited_ms < 2 * driver.options.election_timeout_ms;
    if patient && status.config.voters().any(unclear) {
        return;
    }
    let alive =
        |id: MemberId| id == driver.id || (changes::is_there(driver, status, id) && heard(id));
    if let Some(change) = policy::removal(&status.config, id, alive) {
        changes::propose(driver, change, out);
    }
}
