//! Going on without a lost majority, by an operator's word. What is asked of whom, and why nothing
//! that is left can be lost: `quorate_consensus`, `core/forced.rs`.

use crate::error::GroupError;
use crate::machine::LogLevel;
use crate::member::Member;
use crate::orders::find;
use quorate_consensus::{Config, Event, Index, LogPosition, MemberId};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What would be done, and what may be lost by it.
#[derive(Clone, Debug, Default)]
pub struct ForcePlan {
    /// Names of the members kept, and of those given up: their logs never come back.
    pub kept: Vec<String>,
    pub lost: Vec<String>,
    /// The end of this member's log: everything up to it is kept. What was committed after it is
    /// lost, unless a member kept has it (which refuses then).
    pub last: LogPosition,
    /// What this member knows to be committed.
    pub commit: Index,
    /// Why it cannot be done, if so.
    pub refusal: Option<String>,
}

pub(crate) fn plan(member: &Member, keep: &[&str]) -> ForcePlan {
    let (status, connected) = {
        let driver = member.core.lock();
        let connected: BTreeSet<MemberId> = driver
            .peers
            .iter()
            .filter(|(_, peer)| peer.known().is_connected())
            .map(|(id, _)| *id)
            .collect();
        (driver.consensus.status(member.now_ms()), connected)
    };
    let config = &status.config;
    let (kept, refusal) = match ids(config, keep) {
        Ok(kept) => {
            let refusal = refusal(member, config, &kept, &connected);
            (kept, refusal)
        }
        Err(unknown) => (BTreeSet::new(), Some(unknown)),
    };
    let names = |keeps: bool| {
        let those = config.members.iter().filter(|(id, _)| kept.contains(id) == keeps);
        those.map(|(_, info)| info.name.clone()).collect()
    };
    let refusal = match status.leader {
        Some(_) => Some("a leader is in office, so a majority lives".into()),
        None => refusal,
    };
    let (kept, lost) = (names(true), names(false));
    ForcePlan { kept, lost, last: status.last, commit: status.commit, refusal }
}

pub(crate) fn force(
    member: &Member,
    keep: &[&str],
    reason: &str,
    timeout: Duration,
) -> Result<ForcePlan, GroupError> {
    let deadline = Instant::now() + timeout;
    let node = &member.options.name;
    let refused = |reason: String| GroupError::Forced { node: node.clone(), reason };
    let plan = plan(member, keep);
    if let Some(refusal) = plan.refusal {
        return Err(refused(refusal));
    }
    let audit = format!("node {node} gave up {}: {reason}", plan.lost.join(", "));
    let config = member.core.lock().config.clone();
    let kept = ids(&config, keep).map_err(refused)?;
    let event = Event::ForceQuorum { keep: kept.iter().copied().collect(), audit: audit.clone() };
    member.step(event).map_err(|error| refused(error.to_string()))?;
    member.log(LogLevel::Warn, format!("membership by force: {audit}"));
    loop {
        let seen = member.membership.changes();
        let status = member.core.lock().consensus.status(member.now_ms());
        let installed = !status.config.audit.is_empty() && !status.config.lost.is_empty();
        if installed && status.commit >= status.config_index && status.leader.is_some() {
            return Ok(plan);
        }
        if Instant::now() >= deadline {
            return Err(refused(
                "not all that are kept agreed in time. Each has to run and be reachable; one that \
                 has more in its log refuses, and has to be told instead"
                    .into(),
            ));
        }
        let patience = Instant::now() + member.options.heartbeat_interval();
        member.membership.wait_change(seen, deadline.min(patience));
    }
}

/// Why there is no need, or something seems not to be lost.
fn refusal(
    member: &Member,
    config: &Config,
    kept: &BTreeSet<MemberId>,
    connected: &BTreeSet<MemberId>,
) -> Option<String> {
    let name = |id: &MemberId| config.members[id].name.clone();
    if !kept.contains(&member.id) {
        return Some("the node that is told must be among those kept".into());
    }
    if let Some(id) = config.members.keys().find(|id| !kept.contains(id) && connected.contains(id))
    {
        return Some(format!("{} is to be given up, but lives", name(id)));
    }
    kept.iter()
        .find(|id| **id != member.id && !connected.contains(id))
        .map(|id| format!("{} is to be kept, but cannot be reached", name(id)))
}

fn ids(config: &Config, names: &[&str]) -> Result<BTreeSet<MemberId>, String> {
    names.iter().map(|name| find(config, name).map(|(id, _)| id)).collect()
}
