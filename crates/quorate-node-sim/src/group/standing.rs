//! How servers stand, as their members tell each other: in contact at once, else not at all.

use super::id_of;
use super::log::State;
use super::member::Member;
use super::network::TICK;
use crate::oracle::Mark;
use crate::plant::Plant;
use quorate_live::{GroupError, Observer, OrderError, ServerStanding, Standing};
use simulated_node::blocking::now;
use std::time::{Duration, Instant};

/// Between two looks at all standings that a node is given.
const PERIOD: Duration = Duration::from_millis(50);
/// Between two looks of those who wait whether they still should.
const LOOK: Duration = Duration::from_millis(100);

/// Who waits until others have applied something waits for these.
struct Count {
    /// They have applied it.
    have: Vec<usize>,
    /// They have not, or have not said so.
    lack: Vec<usize>,
}

impl State {
    /// The others of the view, as `node` knows them.
    fn count(&self, node: usize, seqno: i64) -> Count {
        let mut count = Count { have: Vec::new(), lack: Vec::new() };
        let others = (0..self.places.len()).filter(|other| *other != node);
        for other in others.filter(|other| self.view.members.iter().any(|m| m.id == id_of(*other)))
        {
            match self.places[other].standing.filter(|_| self.in_contact(other)) {
                Some(standing) if !standing.synced => {}
                Some(standing) if standing.applied >= seqno => count.have.push(other),
                _ => count.lack.push(other),
            }
        }
        count
    }

    fn standings(&self, node: usize) -> Vec<ServerStanding> {
        let known = |place: usize| {
            let standing = self.places[place].standing?;
            let uncertified = (self.log.len() as u64).saturating_sub(standing.index);
            Some(ServerStanding { member: id_of(place), standing, uncertified })
        };
        let others =
            (0..self.places.len()).filter(|other| *other != node && self.in_contact(*other));
        std::iter::once(node).chain(others).filter_map(known).collect()
    }
}

/// What a member has told its node of it.
pub(super) struct Shown {
    awaited: bool,
    at: Instant,
    asked: Option<Instant>,
}

impl Shown {
    pub fn new() -> Self {
        Self { awaited: false, at: now(), asked: None }
    }
}

impl Member {
    pub(super) fn set_standing(&self, mut standing: Standing) {
        if self.network.plant == Some(Plant::ToldTooEarly) {
            standing.applied += 1;
        }
        let mut state = self.network.state.lock();
        let before = state.places[self.node].standing.replace(standing);
        let matters = |standing: Standing| (standing.synced, standing.applied);
        if before.map(matters) != Some(matters(standing)) {
            self.network.changed.notify_all();
        }
    }

    /// Once in a while: asks the node how it stands, and tells it how the others do.
    pub(super) fn exchange_standings(&self, observer: &dyn Observer, shown: &mut Shown) {
        if shown.asked.is_some_and(|asked| now() - asked < TICK) {
            return;
        }
        shown.asked = Some(now());
        if let Some(standing) = observer.standing() {
            self.set_standing(standing);
        }
        let state = self.network.state.lock();
        let all = state.standings(self.node);
        drop(state);
        let awaited = all.iter().skip(1).any(|other| other.standing.prompt);
        if std::mem::replace(&mut shown.awaited, awaited) != awaited {
            observer.is_awaited(awaited);
        }
        if now() - shown.at >= PERIOD {
            shown.at = now();
            observer.standings(&all);
        }
    }

    pub(super) fn wait_applied(
        &self,
        seqno: i64,
        at_least: Option<u8>,
        timeout: Duration,
    ) -> Result<(), GroupError> {
        let (began, oracle) = (now(), &self.network.oracle);
        let mut state = self.network.state.lock();
        loop {
            if self.is_closed() {
                return Err(GroupError::Closed);
            }
            let Count { have, lack } = state.count(self.node, seqno);
            let all = have.len() + lack.len() + 1;
            if have.len() + 1 >= at_least.map_or(all, |enough| all.min(enough.into())) {
                oracle.mark(Mark::AppliedElsewhere);
                oracle.check_applied(seqno, &have);
                return Ok(());
            }
            let until = began + timeout;
            if now() >= until {
                oracle.mark(Mark::AppliedTooLate);
                let (node, reason) = (format!("n{}", self.node), format!("not on {lack:?}"));
                return Err(OrderError::NotApplied { node, waited: timeout, reason }.into());
            }
            // Whether it was closed is looked at now and then.
            let look = until.min(now() + LOOK);
            self.network.changed.wait_until(&mut state, look);
        }
    }
}
