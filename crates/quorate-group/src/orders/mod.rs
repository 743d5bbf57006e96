//! Orders that are not done at once: each is looked at whenever leader, term or membership changed,
//! and with each tick, until it is answered.

mod change;
mod force;
mod leave;
mod switchover;
mod target;

pub(crate) use force::plan;

use crate::alone::Alone;
use crate::driver::Driver;
use crate::error::OrderError;
use crate::membership::Membership;
use crate::order::{Answer, Done, Order};
use crate::output::Output;
use change::Change;
use force::Force;
use leave::Leave;
use std::time::Duration;
use switchover::Switchover;

#[derive(Default)]
pub(crate) struct Orders {
    open: Vec<Open>,
    /// The change of leader, term or membership they were last looked at after.
    seen: u64,
}

struct Open {
    id: u64,
    began_ms: u64,
    deadline_ms: u64,
    kind: Kind,
}

enum Kind {
    AwaitJoined,
    WantVotes,
    Switchover(Switchover),
    Change(Change),
    Force(Force),
    Leave(Leave),
}

/// What an order is carried out with.
pub(crate) struct Context<'a> {
    pub driver: &'a mut Driver,
    pub membership: &'a mut Membership,
    pub out: &'a mut Output,
    pub began_ms: u64,
    pub deadline_ms: u64,
}

impl Context<'_> {
    fn is_late(&self) -> bool {
        self.driver.now_ms >= self.deadline_ms
    }

    fn node(&self) -> String {
        self.driver.options.name.clone()
    }

    /// How long the caller was ready to wait.
    fn patience(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.saturating_sub(self.began_ms))
    }
}

impl Orders {
    /// Takes an order that may take a while, and begins with it.
    pub fn begin(
        &mut self,
        (id, order, deadline_ms): (u64, Order, u64),
        driver: &mut Driver,
        membership: &mut Membership,
        alone: &mut Alone,
        out: &mut Output,
    ) {
        let kind = match order {
            Order::AwaitJoined => Kind::AwaitJoined,
            Order::WantVotes(votes) => {
                membership.votes.want(votes);
                driver.due = true;
                Kind::WantVotes
            }
            Order::Switchover { to } => Kind::Switchover(Switchover::new(to)),
            Order::Alter { name, alteration } => Kind::Change(Change::alter(name, alteration)),
            Order::Remove { name } => Kind::Change(Change::remove(name)),
            Order::SetRules(rules) => Kind::Change(Change::rules(rules)),
            Order::ForceQuorum { keep, reason } => Kind::Force(Force::new(keep, reason)),
            Order::Leave => {
                driver.leaving = true;
                alone.leave();
                Kind::Leave(Leave::default())
            }
            other => unreachable!("{other:?} is carried out at once"),
        };
        let began_ms = driver.now_ms;
        let mut open = Open { id, began_ms, deadline_ms, kind };
        match open.look(driver, membership, out) {
            Some(answer) => out.answers.push((id, answer)),
            None => self.open.push(open),
        }
    }

    /// Whether leader, term or membership changed since the last look.
    pub fn is_due(&self, driver: &Driver) -> bool {
        self.seen != driver.changes && !self.open.is_empty()
    }

    pub fn look(&mut self, driver: &mut Driver, membership: &mut Membership, out: &mut Output) {
        self.seen = driver.changes;
        self.open.retain_mut(|open| match open.look(driver, membership, out) {
            Some(answer) => {
                out.answers.push((open.id, answer));
                false
            }
            None => true,
        });
    }
}

impl Open {
    fn look(
        &mut self,
        driver: &mut Driver,
        membership: &mut Membership,
        out: &mut Output,
    ) -> Option<Answer> {
        if driver.closed {
            return Some(Err(OrderError::Closed));
        }
        let Open { began_ms, deadline_ms, .. } = *self;
        let mut context = Context { driver, membership, out, began_ms, deadline_ms };
        match &mut self.kind {
            Kind::AwaitJoined => await_joined(&context),
            Kind::WantVotes => want_votes(&context),
            Kind::Switchover(order) => order.look(&mut context),
            Kind::Change(order) => order.look(&mut context),
            Kind::Force(order) => order.look(&mut context),
            Kind::Leave(order) => {
                let answer = order.look(&mut context);
                if matches!(answer, Some(Err(_))) {
                    context.driver.leaving = false;
                }
                answer
            }
        }
    }
}

/// Fails at once when everybody asked refuses for good, as another group does.
fn await_joined(context: &Context<'_>) -> Option<Answer> {
    let driver = &*context.driver;
    if driver.config.members.contains_key(&driver.id) {
        return Some(Ok(Done::Nothing));
    }
    let node = context.node();
    if let Some((addr, reason)) = context.membership.joining.refused().cloned() {
        return Some(Err(OrderError::Refused { node, addr, reason }));
    }
    let reason = driver.reason.clone();
    let waited = context.patience();
    context.is_late().then_some(Err(OrderError::NotJoined { node, waited, reason }))
}

fn want_votes(context: &Context<'_>) -> Option<Answer> {
    let driver = &*context.driver;
    let missing = context.membership.votes.missing(&driver.config, driver.id);
    let settled = !driver.config.is_joint() && missing.is_none();
    let done = settled || driver.leadership.leader.is_none() || context.is_late();
    done.then_some(Ok(Done::Nothing))
}
