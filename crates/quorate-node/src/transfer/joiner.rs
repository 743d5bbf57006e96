//! The joiner: has its server receive the state of another node.

use super::signals::{Signals, Waited};
use super::DONOR_GONE;
use crate::blocking;
use crate::link::{node_uuid, Link};
use crate::local::Local;
use crate::primary::Primary;
use crate::proposals::Proposals;
use crate::records::Records;
use crate::settings::Words;
use crate::start::durable::sync_tree;
use crate::withdraw::Stop;
use bytes::Bytes;
use quorate_certify::{Kind, StateRequest};
use quorate_consensus::MemberId;
use quorate_live::{EventKind, ViewMember};
use std::sync::Arc;
use std::time::Duration;

/// A session may take as long as it likes over its transaction.
const WHOLE_PATIENCE: Duration = Duration::from_secs(30);

pub struct Joiner {
    pub local: Arc<Local>,
    pub records: Arc<Records>,
    pub proposals: Arc<Proposals>,
    pub primary: Arc<Primary>,
    pub signals: Arc<Signals>,
}

impl Joiner {
    /// Has the server fetch the state. `None` if the connection is being closed.
    pub fn receive(&self, link: &Link) -> Result<Option<i64>, Stop> {
        self.local.info("This node's position is not covered by the group's log (or unknown): requesting a state transfer");
        self.await_orphans(link);
        self.await_whole(link);
        if link.closing() {
            return Ok(None);
        }
        let message = self.local.host.state_request().map_err(|()| {
            format!("Requesting state transfer failed: it could not be prepared (see the lines above; check {} and its address). The node cannot join", self.local.config.words.transfer_method)
        })?;
        if message.is_empty() {
            let Words { transfer_method, transfer_methods, .. } = self.local.config.words;
            return Err(format!("this node needs a state transfer, but {transfer_method} allows none: set it to {transfer_methods} and restart").into());
        }
        let mut donors = self.donors(link)?;
        loop {
            for donor in &donors {
                self.local.info(&format!("Requesting state transfer from {}", donor.name));
                crate::sync::point("before_send_state_request");
                self.ask(link, node_uuid(donor.id, donor.incarnation), &message)?;
                crate::sync::point("after_shift_to_joining");
                match self.signals.wait(|| link.closing()) {
                    Waited::Received(result) => {
                        self.tell(link, &donor.name, result);
                        return result_of(result).map(Some);
                    }
                    Waited::Closing => return Ok(None),
                    Waited::Failed(code) => {
                        self.tell(link, &donor.name, Err(code));
                        return Err(failed_at_donor(&donor.name, code));
                    }
                    Waited::Refused => {
                        link.fetched(-1);
                        self.local.info(&format!("{} cannot donate now", donor.name))
                    }
                }
            }
            match self.signals.wait_before_asking_again(|| link.closing()) {
                Some(Waited::Received(result)) => return result_of(result).map(Some),
                Some(_) => return Ok(None),
                None => {}
            }
            // Others may have come, or come back as other processes. If nobody is left, those who
            // were there last are asked until somebody is.
            donors = self.donors(link).unwrap_or(donors);
        }
    }

    /// The group's history says how the transfer ended.
    fn tell(&self, link: &Link, donor: &str, result: Result<i64, i32>) {
        let what = match result {
            Ok(seqno) => format!("received the state of {donor}, up to seqno {seqno}"),
            Err(code) => format!("could not receive the state of {donor} (error {})", -code),
        };
        link.group.happened(EventKind::Transfer, what);
    }

    /// Blocks while a donor may still send to a joiner that is gone.
    fn await_orphans(&self, link: &Link) {
        let Some(names) = self.signals.orphans().filter(|_| !link.closing()) else { return };
        self.local.info(&format!(
            "{names} may still be sending the state to a node that has gone (this one, before its restart?): waiting for the end of that"
        ));
        if let Err(names) = self.signals.wait_for_orphans(|| link.closing()) {
            self.local.warn(&format!(
                "{names} did not say that a state transfer to a node that has gone is over. This node asks for the state now; if it receives a stream that was not meant for it, it stops, and is to be started again"
            ));
        }
    }

    /// A state from before the end of a transaction that the log here has not from its beginning on is of no use:
    /// the node would have to fetch another.
    fn await_whole(&self, link: &Link) {
        let until = blocking::now() + WHOLE_PATIENCE;
        if !link.progress.wait_whole(blocking::now(), || link.closing()) {
            self.local.info("Large transactions are under way of which this node has not all parts: waiting for their end before asking for the state");
            link.progress.wait_whole(until, || link.closing());
        }
    }

    fn ask(&self, link: &Link, donor: u128, message: &[u8]) -> Result<(), String> {
        self.signals.ask(donor);
        // Before the request is in the log: until what comes is known to be in it, no majority is given up with
        // this node.
        link.fetches();
        let request =
            StateRequest { donor, joiner: link.node, message: Bytes::copy_from_slice(message) };
        self.proposals.message(link, Kind::STATE_REQUEST, &request.encode()).map_err(|e| {
            format!(
                "this node needs the state of another one, and its request could not be sent to the group: {e}. The \
                 others and their data are not affected. Start it again when a majority of the group runs"
            )
        })
    }

    /// Whom to ask, best first.
    fn donors(&self, link: &Link) -> Result<Vec<ViewMember>, String> {
        let leader = link.group.status().leader;
        let (preferred, view) = self.signals.candidates();
        let others = view.members.iter().filter(|m| m.id != link.member).cloned().collect();
        let chosen = best_first(others, &preferred, leader, link.incarnation);
        if chosen.is_empty() {
            let Words { recover, start_position, .. } = self.local.config.words;
            return Err(format!(
                "this node needs a state transfer, but it is alone in the group: its position is unknown \
                 and nobody can send it the state. If its data is the one to go on with, restart it with \
                 the position that {recover} prints ({start_position})"
            ));
        }
        Ok(chosen)
    }

    /// The server has received a state (or failed to): called on a thread of its own.
    pub fn received(&self, uuid: u128, seqno: i64, code: i32) -> bool {
        let Some(link) = self.local.link() else { return false };
        let result = if code != 0 {
            Err(code)
        } else if uuid != link.history || seqno < 0 {
            self.local.error(
                "The state transfer brought a state of another group, or without a position",
            );
            Err(-libc::EINVAL)
        } else if let Err(error) = sync_tree(&self.local.config.data_dir) {
            self.local.error(&format!(
                "The state transfer brought data that cannot be made durable ({error}): this node does not go on with it. See to its disk, then start it again; it will ask for the state anew"
            ));
            Err(-libc::EIO)
        } else {
            link.fetched(seqno);
            self.local.commit.set_position(seqno);
            self.local.apply.set_position(seqno);
            self.local.queue.discard_upto(seqno);
            self.local.part_places.discard_upto(seqno);
            self.records.errors_replaced(link.history, seqno);
            self.local.info(&format!("State transfer complete: position {seqno}"));
            self.primary.ask_for_view();
            Ok(seqno)
        };
        let good = result.is_ok();
        self.signals.received(result);
        good
    }
}

/// The configured ones, then followers, then the leader. At each start of this node (its incarnation) the
/// turn is another follower's: one whose script fails every time, because a page of its data is damaged,
/// say, is not asked for ever.
fn best_first(
    mut others: Vec<ViewMember>,
    preferred: &str,
    leader: Option<MemberId>,
    incarnation: u32,
) -> Vec<ViewMember> {
    others.sort_by_key(|m| Some(m.id) == leader);
    let followers = others.iter().take_while(|m| Some(m.id) != leader).count();
    if followers > 0 {
        others[..followers].rotate_left(incarnation as usize % followers);
    }
    let names: Vec<&str> = preferred.split(',').map(str::trim).collect();
    let mut chosen: Vec<_> = names
        .iter()
        .filter_map(|n| others.iter().find(|m| !n.is_empty() && m.name == *n).cloned())
        .collect();
    let any_other = names.last().is_none_or(|n| n.is_empty()) || chosen.is_empty();
    if any_other {
        chosen.extend(others.into_iter().filter(|m| !names.contains(&m.name.as_str())));
    }
    chosen
}

fn result_of(result: Result<i64, i32>) -> Result<i64, Stop> {
    result.map_err(|code| Stop {
        why: format!(
            "Will never receive state. Need to abort. The state transfer failed (code {code}); the lines of the transfer script above say why. \
             No other node is affected. Restart this node to try again"
        ),
        for_now: true,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(preferred: &str, leader: u128, incarnation: u32) -> Vec<String> {
        let member = |id: u128| ViewMember {
            id: MemberId(id),
            name: format!("node{id}"),
            ..ViewMember::default()
        };
        let others = (1..=4).map(member).collect();
        let chosen = best_first(others, preferred, Some(MemberId(leader)), incarnation);
        chosen.into_iter().map(|m| m.name).collect()
    }

    #[test]
    fn each_start_asks_another_follower_first_and_the_leader_last() {
        assert_eq!(asked("", 2, 6), ["node1", "node3", "node4", "node2"]);
        assert_eq!(asked("", 2, 7), ["node3", "node4", "node1", "node2"]);
        assert_eq!(asked("", 2, 8), ["node4", "node1", "node3", "node2"]);
    }

    #[test]
    fn configured_donors_come_first_in_their_order_and_alone_unless_a_comma_ends_them() {
        assert_eq!(asked("node4,node2", 2, 7), ["node4", "node2"]);
        assert_eq!(asked("node4, ", 2, 7), ["node4", "node3", "node1", "node2"]);
        assert_eq!(asked("nobody", 2, 7), ["node3", "node4", "node1", "node2"]);
    }
}
