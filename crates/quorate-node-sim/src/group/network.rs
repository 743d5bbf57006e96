//! The group as a whole: what carries proposals into the log, and what happens to members.

use super::id_of;
use super::leader::Mode;
use super::log::{Entry, Flight, OwnLog, Place, State};
use crate::baton::{installed, WORLD};
use crate::oracle::{Mark, Oracle};
use crate::plant::Plant;
use quorate_certify::{process_uuid, Constants, Rules, Sequenced};
use quorate_live::View;
use simulated_node::blocking::{now, Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) const TICK: Duration = Duration::from_millis(25);

/// The group as a whole.
pub struct Network {
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
    pub(super) oracle: Arc<Oracle>,
    pub(super) plant: Option<Plant>,
}

impl Network {
    pub fn new(nodes: usize, oracle: Arc<Oracle>, plant: Option<Plant>) -> Arc<Self> {
        let loss = installed().random(|rng| [0, 20, 200][rng.index(3)]);
        let state = State {
            log: Vec::new(),
            floor: 0,
            places: (0..nodes).map(|_| Place::default()).collect(),
            view: View::default(),
            fresh_view: false,
            flights: BTreeMap::new(),
            flown: 0,
            snapshots: BTreeMap::new(),
            loss,
            mode: Mode::choose(),
            ended: false,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let network = Arc::new(Self { state, changed, oracle, plant });
        let post = network.clone();
        installed().start(WORLD, "post", move || post.deliver());
        network
    }

    /// Carries proposals into the log, sends them again, and changes the view.
    fn deliver(&self) {
        let mut tick = now();
        let mut state = self.state.lock();
        while !state.ended {
            let at = now();
            if at >= tick {
                tick = at + TICK;
                self.send_again(&mut state);
                if state.settle_leader() {
                    self.oracle.mark(Mark::PrimaryMoves);
                }
                state.settle_view();
                self.changed.notify_all();
            }
            while let Some(first) = state.flights.first_entry() {
                if first.key().0 > at {
                    break;
                }
                let flight = first.remove();
                self.land(&mut state, flight);
            }
            let next = state.flights.first_key_value().map_or(tick, |((time, _), _)| *time);
            self.changed.wait_until(&mut state, next.min(tick));
        }
    }

    fn land(&self, state: &mut State, flight: Flight) {
        if state.has_quorum() {
            if let Some(why) = state.mode.impostor(&flight.data) {
                self.oracle.fail(why);
            }
            state.append(Entry::Data(flight.data));
            self.changed.notify_all();
        } else if installed().random(|rng| rng.chance(700)) {
            // It is in the log of one that will lead when the majority is back.
            self.oracle.mark(Mark::SurvivesInALog);
            state.flown += 1;
            let number = state.flown;
            state.flights.insert((now() + TICK, number), flight);
        }
    }

    fn send_again(&self, state: &mut State) {
        let mut again = Vec::new();
        for node in 0..state.places.len() {
            if !state.reaches(node) {
                continue;
            }
            for (data, sent) in state.places[node].pending.values_mut() {
                if now() - *sent > Duration::from_millis(100) {
                    *sent = now();
                    again.push(data.clone());
                }
            }
        }
        again.into_iter().for_each(|data| state.fly(data));
    }

    /// No more changes of the leader without need.
    pub fn steady(&self) {
        self.state.lock().mode.steady = true;
    }

    /// Whether nobody is to write at this one: another is the primary.
    pub fn is_secondary(&self, node: usize) -> bool {
        let mode = &self.state.lock().mode;
        mode.is_single() && mode.lead != Some(node)
    }

    /// Whether this process was told, at any time, that it is without a majority.
    pub fn has_lost(&self, node: usize) -> bool {
        self.state.lock().places[node].has_lost
    }

    /// Whether this process was told that it is without a majority, and of none since.
    pub fn knows_of_loss(&self, node: usize) -> bool {
        self.state.lock().places[node].knows_of_loss
    }

    pub fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_all();
    }

    pub fn cut(&self, node: usize, cut: bool) {
        let mut state = self.state.lock();
        let place = &mut state.places[node];
        if place.cut != cut {
            place.cut = cut;
            place.since = Some(now());
        }
        self.changed.notify_all();
    }

    pub fn fill_disk(&self, node: usize, full: bool) {
        self.state.lock().places[node].full = full;
    }

    /// Nobody is cut off any more.
    pub fn reconnect(&self) {
        let nodes = self.state.lock().places.len();
        (0..nodes).for_each(|node| self.cut(node, false));
    }

    pub fn set_lag(&self, node: usize, lag: Duration) {
        self.state.lock().places[node].lag = lag;
    }

    pub fn process_died(&self, node: usize) {
        let mut state = self.state.lock();
        let place = &mut state.places[node];
        place.incarnation = None;
        place.pending.clear();
        place.told_lost = false;
        self.changed.notify_all();
    }

    /// This process has left, taking leave or not.
    pub(super) fn process_closed(&self, node: usize, process: u128) {
        let mut state = self.state.lock();
        let place = &mut state.places[node];
        let own = |incarnation| process_uuid(id_of(node).0, incarnation) == process;
        if place.incarnation.is_some_and(own) {
            place.incarnation = None;
            place.pending.clear();
        }
        self.changed.notify_all();
    }

    /// A crash came before the member's own disk had all that a majority has, and that its server has seen. What a
    /// snapshot of its own stands for was on its disk, and so is what the leader's log begins after.
    pub fn lose_tail(&self, node: usize) {
        let mut state = self.state.lock();
        let floor = state.floor;
        let own = &mut state.places[node].own;
        let newest = own.snapshots.last_key_value().map_or(0, |(index, _)| *index);
        let least = own.base.max(newest).max(floor).max(1);
        let tail = own.end.saturating_sub(least).min(8);
        let lost = installed().random(|rng| if rng.chance(500) { rng.index(tail + 1) } else { 0 });
        own.end -= lost;
        if lost > 0 {
            self.oracle.mark(Mark::CrashLostLog);
        }
    }

    /// The entries of the log so far.
    pub fn len(&self) -> usize {
        self.state.lock().log.len()
    }

    /// The leader's log has grown past what it may keep. Among these, who have the data, one has what
    /// follows: as long as the log is kept, they do not all fall behind.
    pub fn purge(&self, mut dependable: impl Iterator<Item = usize>) {
        let mut state = self.state.lock();
        let newest = state.newest_snapshot().map_or(0, |(index, _)| index);
        let is_kept = dependable.any(|node| state.places[node].own.end >= newest);
        if newest > state.floor && is_kept {
            self.oracle.mark(Mark::LeaderPurges);
            self.oracle.tell(|| format!("the leader's log begins after {newest}"));
            state.floor = newest;
        }
    }

    /// Its own log goes on to where the leader's begins.
    pub fn is_in_reach(&self, node: usize) -> bool {
        let state = self.state.lock();
        state.places[node].own.end >= state.floor
    }

    /// Its log was replaced while it ran.
    pub fn was_left_behind(&self, node: usize) -> bool {
        self.state.lock().places[node].left_behind
    }

    /// Whether the log holds parts of a transaction that has not ended by it.
    pub fn has_open_parts(&self, constants: &Constants) -> bool {
        let state = self.state.lock();
        let mut all = Sequenced::beginning(constants.limits(), constants.seqno);
        for (at, logged) in state.log.iter().enumerate() {
            match &logged.entry {
                Entry::Data(data) => {
                    let primary_term = logged.primary_term;
                    let rules = Rules { primary_term, ..Rules::default() };
                    // What cannot be read is passed over by all.
                    let _passed = all.entry(at as u64 + 1, data.clone(), rules);
                }
                Entry::View(view) => {
                    let members = view.members.iter();
                    let members = members.map(|m| process_uuid(m.id.0, m.incarnation));
                    all.view(&members.collect::<Vec<_>>());
                }
            }
        }
        !all.parts.is_empty()
    }

    /// The log directory is lost with the database: the next start is a new member's.
    pub fn forget_log(&self, node: usize) {
        self.state.lock().places[node].own = OwnLog::default();
    }
}
