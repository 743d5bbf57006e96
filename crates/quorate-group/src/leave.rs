//! Taking leave: the way out of the voters that leaves the others able to decide.
//!
//! Invariant: whoever still counts for a decision of the others, in either half of a change of
//! members under way, stays.

use crate::error::GroupError;
use crate::machine::LogLevel;
use crate::member::Member;
use crate::policy;
use crate::switchover::hand_over;
use quorate_consensus::MemberRole;
use quorate_wire::Packet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Between two requests to the leader (which may just be changing).
const ASK_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn leave(member: &Member, timeout: Duration) -> Result<(), GroupError> {
    member.leaving.store(true, Ordering::SeqCst);
    member.survival.leave();
    let left = try_leave(member, timeout);
    if left.is_err() {
        member.leaving.store(false, Ordering::SeqCst);
    }
    left
}

fn try_leave(member: &Member, timeout: Duration) -> Result<(), GroupError> {
    if member.has_failed() {
        return Err(member.failure());
    }
    let deadline = Instant::now() + timeout;
    let mut may_transfer = true;
    loop {
        let status = member.core.lock().consensus.status(member.now_ms());
        let config = &status.config;
        let committed = status.commit >= status.config_index;
        if committed && policy::is_out(config, member.id) {
            return Ok(());
        }
        if policy::is_all(config, member.id) {
            member.log(LogLevel::Info, "the last member just stops".into());
            return Ok(());
        }
        // Loggers alone are no group.
        let others = config.voters().filter(|id| *id != member.id && config.may_lead(*id)).count();
        match status.leader {
            Some(leader) if leader != member.id => {
                member.with_core(|driver| driver.send(leader, Packet::LeaveRequest));
            }
            // A newcomer (if one lives) votes soon.
            Some(_) if others == 0 && has_living_newcomer(member) => {}
            Some(_) if others == 0 => return Ok(()),
            // The others go on sooner with a new leader at hand.
            Some(_) if may_transfer => {
                may_transfer = false;
                hand_over(member, deadline);
            }
            Some(_) => member.desk.ask_removal(member, member.id),
            None => {}
        }
        if member.membership.wait_left(deadline.min(Instant::now() + ASK_INTERVAL)) {
            return Ok(());
        }
        if member.is_stopping() {
            return Err(GroupError::Closed);
        }
        if Instant::now() >= deadline {
            let what = format!(
                "node {} stays a voter of the group though it stops ({})",
                member.options.name,
                member.membership.reason()
            );
            return Err(GroupError::NoLeader { waited: timeout, what });
        }
    }
}

fn has_living_newcomer(member: &Member) -> bool {
    let driver = member.core.lock();
    let mut newcomers = driver
        .config
        .members
        .iter()
        .filter(|(_, info)| info.joining && info.role == MemberRole::Voter);
    newcomers.any(|(id, _)| driver.peers.get(id).is_some_and(|peer| peer.known().is_connected()))
}
