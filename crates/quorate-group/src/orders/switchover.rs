//! Handing leadership over: planned by an operator, or on the way out.
//!
//! The core holds proposals back from the moment the transfer begins until somebody leads; they
//! stay queued here and go to the new leader, so that no client sees an error. A target that
//! does not answer within an election timeout is given up: the old leader goes on.

use super::target::{find, not_leading};
use super::Context;
use crate::driver::Driver;
use crate::error::OrderError;
use crate::order::{Answer, Done};
use crate::output::Output;
use quorate_consensus::{Event, MemberId};

/// To the member of this name (default: the connected voter that is furthest). Only the leader can.
pub(super) struct Switchover {
    to: Option<String>,
    transfer: Option<Transfer>,
}

/// A transfer of leadership that was begun.
pub(super) struct Transfer {
    until_ms: u64,
}

/// What became of it.
pub(super) enum Handed {
    To(MemberId),
    /// This member leads on.
    Not,
}

impl Switchover {
    pub fn new(to: Option<String>) -> Self {
        Self { to, transfer: None }
    }

    pub fn look(&mut self, context: &mut Context<'_>) -> Option<Answer> {
        let begun = match &self.transfer {
            Some(_) => Ok(None),
            None => self.begin(context),
        };
        let answer = match (begun, &self.transfer) {
            (Err(reason), _) => Err(reason),
            (Ok(Some(name)), _) => Ok(Done::Leader(name)),
            (Ok(None), Some(transfer)) => match transfer.look(context.driver)? {
                Handed::To(id) => Ok(Done::Leader(name_of(context.driver, id))),
                Handed::Not => Err("it did not take over in time, this node leads on".into()),
            },
            (Ok(None), None) => return None,
        };
        let to = || self.to.clone().unwrap_or_else(|| "another member".to_owned());
        Some(answer.map_err(|reason| OrderError::Switchover {
            node: context.node(),
            to: to(),
            reason,
        }))
    }

    /// The name of this member, if it is the one to lead.
    fn begin(&mut self, context: &mut Context<'_>) -> Result<Option<String>, String> {
        let driver = &mut *context.driver;
        let leader = driver.leadership.leader;
        if leader != Some(driver.id) {
            return Err(not_leading(&driver.config, leader));
        }
        let target = match &self.to {
            Some(name) if *name == driver.options.name => return Ok(Some(name.clone())),
            Some(name) => find(&driver.config, name)?.0,
            None => best_target(driver)
                .ok_or_else(|| "no other member with a vote is connected".to_owned())?,
        };
        let deadline_ms = context.deadline_ms;
        self.transfer = Some(Transfer::begin(target, driver, deadline_ms, context.out)?);
        Ok(None)
    }
}

impl Transfer {
    pub fn begin(
        target: MemberId,
        driver: &mut Driver,
        deadline_ms: u64,
        out: &mut Output,
    ) -> Result<Self, String> {
        let event = Event::TransferLeadership(target);
        driver.step(event, out).map_err(|error| error.to_string())?;
        let patience_ms = 2 * driver.options.election_timeout_ms;
        Ok(Self { until_ms: deadline_ms.min(driver.now_ms + patience_ms) })
    }

    /// `None`: it is not known yet.
    pub fn look(&self, driver: &Driver) -> Option<Handed> {
        match driver.leadership.leader {
            Some(leader) if leader != driver.id => Some(Handed::To(leader)),
            _ if driver.now_ms >= self.until_ms => Some(Handed::Not),
            _ => None,
        }
    }
}

/// The connected voter that is furthest.
pub(super) fn best_target(driver: &Driver) -> Option<MemberId> {
    let status = driver.status();
    let voters = status.peers.iter().filter(|peer| status.config.may_lead(peer.id));
    voters
        .filter(|peer| driver.peers.is_connected(peer.id))
        .max_by_key(|peer| peer.matched)
        .map(|peer| peer.id)
}

fn name_of(driver: &Driver, id: MemberId) -> String {
    driver.config.members.get(&id).map_or_else(|| id.to_string(), |info| info.name.clone())
}
