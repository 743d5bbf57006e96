//! Going on without a lost majority, by an operator's word. What is asked of whom, and why nothing
//! that is left can be lost: `quorate_consensus`, `core/forced.rs`.

use super::target::find;
use super::Context;
use crate::driver::Driver;
use crate::error::OrderError;
use crate::order::{Answer, Done, ForcePlan};
use crate::output::LogLevel;
use quorate_consensus::{Config, Event, MemberId, MemberInfo, MemberRole};
use std::collections::BTreeSet;

pub(super) struct Force {
    keep: Vec<String>,
    reason: String,
    /// What was begun, and what the log is to say of it.
    plan: Option<(ForcePlan, String)>,
}

impl Force {
    pub fn new(keep: Vec<String>, reason: String) -> Self {
        Self { keep, reason, plan: None }
    }

    pub fn look(&mut self, context: &mut Context<'_>) -> Option<Answer> {
        let refused = |node, reason| Some(Err(OrderError::Forced { node, reason }));
        if self.plan.is_none() {
            if let Err(reason) = self.begin(context) {
                return refused(context.node(), reason);
            }
        }
        let (plan, audit) = self.plan.as_ref()?;
        // The leader may have made another change since.
        if context.driver.has_forced(audit, plan.last.index) && context.driver.leader().is_some() {
            return Some(Ok(Done::Forced(plan.clone())));
        }
        if context.is_late() {
            let reason = "not all that are kept agreed in time. Each has to run and be reachable, \
                          and must not be writing a snapshot that a leader sent (try again then), \
                          nor have a database with commits that its log lost (its error log says so), nor have \
                          been started within the last ten election timeouts if it does not know this node (wait, \
                          and try again); one that has more in its log refuses, and has to be told instead";
            return refused(context.node(), reason.into());
        }
        None
    }

    fn begin(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        let driver = &mut *context.driver;
        let plan = plan(driver, &self.keep);
        if let Some(refusal) = plan.refusal {
            return Err(refusal);
        }
        let (node, lost) = (&driver.options.name, plan.lost.join(", "));
        let audit = match plan.lost.is_empty() {
            true => format!("node {node} began the terms anew: {}", self.reason),
            false => format!("node {node} gave up {lost}: {}", self.reason),
        };
        let keep = ids(&everybody(driver), &self.keep)?.into_iter().collect();
        let event = Event::ForceQuorum { keep, audit: audit.clone() };
        driver.step(event, context.out).map_err(|error| error.to_string())?;
        context.out.log(LogLevel::Warn, format!("membership by force: {audit}"));
        self.plan = Some((plan, audit));
        Ok(())
    }
}

/// What would be done, and what may be lost by it.
pub(crate) fn plan(driver: &Driver, keep: &[String]) -> ForcePlan {
    let status = driver.status();
    let config = everybody(driver);
    let (kept, refusal) = match ids(&config, keep) {
        Ok(kept) => {
            let refusal = refusal(driver, &config, &kept);
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
        // The reason is not known yet.
        None => refusal
            .or_else(|| driver.may_force(kept.iter().copied().collect(), "a reason".into()).err()),
    };
    let (kept, lost) = (names(true), names(false));
    ForcePlan { kept, lost, last: status.last, commit: status.commit, refusal }
}

/// Why there is no need, or something seems not to be lost.
fn refusal(driver: &Driver, config: &Config, kept: &BTreeSet<MemberId>) -> Option<String> {
    let name = |id: &MemberId| config.members[id].name.clone();
    let connected = |id: &MemberId| driver.peers.is_connected(*id);
    if !kept.contains(&driver.id) {
        return Some("the node that is told must be among those kept".into());
    }
    if let Some(reason) = driver.cannot_keep() {
        return Some(reason.into());
    }
    if let Some(id) = config.members.keys().find(|id| !kept.contains(id) && connected(id)) {
        return Some(format!("{} is to be given up, but lives", name(id)));
    }
    kept.iter()
        .find(|id| **id != driver.id && !connected(id))
        .map(|id| format!("{} is to be kept, but cannot be reached", name(id)))
}

/// Members, and those whom a change removes that may never come to be.
fn everybody(driver: &Driver) -> Config {
    let unnamed = |id: MemberId| MemberInfo::new(MemberRole::Voter, "", id.to_string());
    let info = |(id, info): (MemberId, Option<&MemberInfo>)| {
        (id, info.cloned().unwrap_or_else(|| unnamed(id)))
    };
    Config { members: driver.who_may_decide().map(info).collect(), ..Config::default() }
}

fn ids(config: &Config, names: &[String]) -> Result<BTreeSet<MemberId>, String> {
    names.iter().map(|name| find(config, name).map(|(id, _)| id)).collect()
}
