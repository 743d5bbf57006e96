//! Handing leadership over: planned by an operator, or on the way out.
//!
//! The core holds proposals back from the moment the transfer begins until somebody leads; they
//! stay queued here and go to the new leader, so that no client sees an error. A successor that
//! does not answer within an election timeout is given up: the old leader goes on.

use crate::error::GroupError;
use crate::member::Member;
use crate::orders::{find, not_leading};
use quorate_consensus::{Event, MemberId};
use std::time::{Duration, Instant};

/// Hands leadership to the member of this name (default: the connected voter that is furthest)
/// and waits until it leads. Only the leader can.
pub(crate) fn switchover(
    member: &Member,
    to: Option<&str>,
    timeout: Duration,
) -> Result<String, GroupError> {
    let deadline = Instant::now() + timeout;
    let seen = member.membership.changes();
    let status = member.core.lock().consensus.status(member.now_ms());
    let refused = |reason: String| {
        let (node, to) = (member.options.name.clone(), to.unwrap_or("another member").to_owned());
        GroupError::Switchover { node, to, reason }
    };
    if status.leader != Some(member.id) {
        return Err(refused(not_leading(&status.config, status.leader)));
    }
    let successor = match to {
        Some(name) if name == member.options.name => return Ok(name.to_owned()),
        Some(name) => find(&status.config, name).map_err(refused)?.0,
        None => best_successor(member)
            .ok_or_else(|| refused("no other member with a vote is connected".into()))?,
    };
    member
        .with_core(|driver| driver.step(member, Event::TransferLeadership(successor)))
        .map_err(|error| refused(error.to_string()))?;
    wait_for_successor(member, seen, deadline)
        .map(|id| status.config.members.get(&id).map_or_else(|| id.to_string(), |m| m.name.clone()))
        .ok_or_else(|| refused("it did not take over in time, this node leads on".into()))
}

/// The way out: to whoever is furthest, with a moment's patience.
pub(crate) fn hand_over(member: &Member, deadline: Instant) {
    let seen = member.membership.changes();
    let Some(successor) = best_successor(member) else { return };
    let asked = member
        .with_core(|driver| driver.step(member, Event::TransferLeadership(successor)).is_ok());
    if asked {
        wait_for_successor(member, seen, deadline);
    }
}

/// `None` if this member leads on when the transfer has expired.
fn wait_for_successor(member: &Member, mut seen: u64, deadline: Instant) -> Option<MemberId> {
    let deadline = deadline.min(Instant::now() + 2 * member.options.election_timeout);
    loop {
        let leader = member.core.lock().leadership.leader;
        match leader {
            Some(leader) if leader != member.id => return Some(leader),
            _ if Instant::now() >= deadline || member.is_stopping() => return None,
            _ => seen = member.membership.wait_change(seen, deadline),
        }
    }
}

fn best_successor(member: &Member) -> Option<MemberId> {
    member.with_core(|driver| {
        let status = driver.consensus.status(member.now_ms());
        let connected =
            |id: &MemberId| driver.peers.get(id).is_some_and(|peer| peer.known().is_connected());
        let voters = status.peers.iter().filter(|peer| status.config.may_lead(peer.id));
        voters
            .filter(|peer| connected(&peer.id))
            .max_by_key(|peer| peer.matched)
            .map(|peer| peer.id)
    })
}
