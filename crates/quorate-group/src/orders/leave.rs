//! Taking leave: the way out of the voters that leaves the others able to decide.
//!
//! Invariant: whoever still counts for a decision of the others, in either half of a change of
//! members under way, stays.

use super::switchover::{best_target, Transfer};
use super::Context;
use crate::driver::Driver;
use crate::error::OrderError;
use crate::membership::{is_all, is_out};
use crate::order::{Answer, Done};
use crate::output::LogLevel;
use quorate_consensus::MemberRole;
use quorate_wire::Packet;

/// Between two requests to the leader (which may just be changing).
const ASK_INTERVAL_MS: u64 = 200;

#[derive(Default)]
pub(super) struct Leave {
    /// When to ask again.
    next_ms: u64,
    /// The others go on sooner with a new leader at hand: tried once.
    handed_over: bool,
    transfer: Option<Transfer>,
}

impl Leave {
    pub fn look(&mut self, context: &mut Context<'_>) -> Option<Answer> {
        if context.driver.failed {
            let node = context.node();
            let what = format!("node {node} acknowledges nothing any more");
            return Some(Err(OrderError::LogFailed(what)));
        }
        if context.membership.departures.has_left() {
            return Some(Ok(Done::Nothing));
        }
        if let Some(transfer) = &self.transfer {
            transfer.look(context.driver)?;
            self.transfer = None;
            self.next_ms = 0;
        }
        if context.driver.now_ms >= self.next_ms {
            self.next_ms = context.driver.now_ms + ASK_INTERVAL_MS;
            if self.ask(context) {
                return Some(Ok(Done::Nothing));
            }
        }
        if !context.is_late() {
            return None;
        }
        let driver = &*context.driver;
        let what = format!(
            "node {} stays a voter of the group though it stops ({})",
            driver.options.name, driver.reason
        );
        Some(Err(OrderError::NoLeader { waited: context.patience(), what }))
    }

    /// True if there is nothing to wait for.
    fn ask(&mut self, context: &mut Context<'_>) -> bool {
        let driver = &mut *context.driver;
        let status = driver.status();
        let config = &status.config;
        if status.commit >= status.config_index && is_out(config, driver.id) {
            return true;
        }
        if is_all(config, driver.id) {
            context.out.log(LogLevel::Info, "the last member just stops".into());
            return true;
        }
        // Loggers alone are no group.
        let others = config.voters().filter(|id| *id != driver.id && config.may_lead(*id)).count();
        match status.leader {
            Some(leader) if leader != driver.id => context.out.send(leader, Packet::LeaveRequest),
            // A newcomer (if one lives) votes soon.
            Some(_) if others == 0 => return !has_living_newcomer(driver),
            Some(_) if !std::mem::replace(&mut self.handed_over, true) => {
                let target = best_target(driver);
                let begin =
                    |target| Transfer::begin(target, driver, context.deadline_ms, context.out).ok();
                self.transfer = target.and_then(begin);
            }
            Some(_) => {
                context.membership.departures.ask(driver.id, driver);
                driver.due = true;
            }
            None => {}
        }
        false
    }
}

fn has_living_newcomer(driver: &Driver) -> bool {
    let members = driver.config.members.iter();
    let mut newcomers = members.filter(|(_, info)| info.joining && info.role == MemberRole::Voter);
    newcomers.any(|(id, _)| driver.peers.is_connected(*id))
}
