//! What operators may order. Each order has an author: who gave it, and what came of it, is in the error
//! log of this node, and in the group's log for all others.

use crate::error::GroupError;
use crate::live::Live;
use quorate_consensus::Rules;
use quorate_group::{Alteration, Author, Done, ForcePlan, Order};
use std::time::Duration;

/// How long an order may take that is carried out at once: only the machine's own thread of events is
/// waited for.
pub(crate) const AT_ONCE: Duration = Duration::ZERO;

/// Somebody who gives orders to one member: see [`crate::Group::operator`].
pub struct Operator<'a> {
    pub(crate) live: &'a Live,
    pub(crate) author: Author,
}

impl Operator<'_> {
    /// Hands leadership to the member of that name (`None`: to whoever is furthest), waits until it
    /// leads and gives back its name. Proposals wait meanwhile; none is lost or refused. Only the
    /// leader can: `OrderError::Switchover` says who that is.
    pub fn switchover(&self, to: Option<&str>, timeout: Duration) -> Result<String, GroupError> {
        match self.order(Order::Switchover { to: to.map(str::to_owned) }, timeout)? {
            Done::Leader(name) => Ok(name),
            other => unreachable!("{other:?} is no leader"),
        }
    }

    /// Gives the member of this name another role, priority or zone. A learner that is to vote does so
    /// when it has caught up. Returns when that is committed. Only the leader can.
    pub fn alter_member(
        &self,
        name: &str,
        alteration: &Alteration,
        timeout: Duration,
    ) -> Result<(), GroupError> {
        let (name, alteration) = (name.to_owned(), alteration.clone());
        self.order(Order::Alter { name, alteration }, timeout).map(drop)
    }

    /// Removes the member of this name, running or not. Only the leader can.
    pub fn remove_member(&self, name: &str, timeout: Duration) -> Result<(), GroupError> {
        self.order(Order::Remove { name: name.to_owned() }, timeout).map(drop)
    }

    /// Sets the rules of the group: zones a commit needs, how priorities count. Only the leader can.
    pub fn set_rules(&self, rules: Rules, timeout: Duration) -> Result<(), GroupError> {
        self.order(Order::SetRules(rules), timeout).map(drop)
    }

    /// A majority is lost for good: makes the members of these names (this one among them) the
    /// group. Each must run and agree; if one has more in its log, it is the one to be told. The
    /// others never come back with their logs. `reason` stands in the log with the change.
    pub fn force_quorum(
        &self,
        keep: &[&str],
        reason: &str,
        timeout: Duration,
    ) -> Result<ForcePlan, GroupError> {
        let keep = keep.iter().map(|name| (*name).to_owned()).collect();
        let order = Order::ForceQuorum { keep, reason: reason.to_owned() };
        match self.order(order, timeout)? {
            Done::Forced(plan) => Ok(plan),
            other => unreachable!("{other:?} is no plan"),
        }
    }

    /// Goes on alone now (`pc.bootstrap`), or says why that could lose acknowledged commits.
    /// Fine if there is a quorum.
    pub fn bootstrap(&self) -> Result<(), GroupError> {
        self.order(Order::GoOnAlone, AT_ONCE).map(drop)
    }

    /// Cuts this member off from the others (`gmcast.isolate`), or lets it go on.
    pub fn isolate(&self, isolated: bool) -> Result<(), GroupError> {
        self.order(Order::Isolate(isolated), AT_ONCE).map(drop)
    }

    fn order(&self, order: Order, timeout: Duration) -> Result<Done, GroupError> {
        self.live.order_by(self.author.clone(), order, timeout)
    }
}
