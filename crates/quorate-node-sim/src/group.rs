//! A model of the group: one log, which every member hears at its own pace.
//!
//! It promises what `quorate-group` promises (one order, nothing committed is lost, a proposal is
//! sent again until its member says that it is decided), and breaks everything that is not promised:
//! proposals are late, are lost, come twice, and turn up after whoever made them has given up or has
//! died; members lose the majority, are dropped from the view alive, and come back.

use crate::baton::{installed, Process, WORLD};
use crate::oracle::{Mark, Oracle};
use crate::plant::Plant;
use bytes::Bytes;
use quorate_certify::process_uuid;
use quorate_consensus::{Index, MemberId};
use quorate_live::{
    Committed, GroupError, GroupStatus, LogLevel, Observer, OrderError, StateMachine, View,
    ViewMember,
};
use simulated_node::blocking::{now, Condvar, Mutex};
use simulated_node::group::Group;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a member is without a majority before its node hears of it.
const PRIMARY_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a member is silent before the view goes on without it.
const SUSPECT_TIMEOUT: Duration = Duration::from_millis(400);
const TICK: Duration = Duration::from_millis(25);

#[derive(Clone)]
pub enum Entry {
    Data(Bytes),
    View(View),
}

struct Logged {
    entry: Entry,
    at: Instant,
}

/// A proposal on its way, or in the log of a member that may lead next.
struct Flight {
    data: Bytes,
}

#[derive(Default)]
struct Place {
    /// The process that runs, if one does.
    incarnation: Option<u32>,
    /// Cut off from the others.
    cut: bool,
    /// Since when it is as it is with this.
    since: Option<Instant>,
    told_lost: bool,
    leaving: bool,
    lag: Duration,
    /// Sent again until decided.
    pending: BTreeMap<u64, (Bytes, Instant)>,
}

struct State {
    log: Vec<Logged>,
    places: Vec<Place>,
    view: View,
    fresh_view: bool,
    flights: BTreeMap<(Instant, u64), Flight>,
    flown: u64,
    /// States of the certifier after so many entries, and the seqno there.
    snapshots: BTreeMap<usize, (i64, Bytes)>,
    /// How many of a thousand proposals get lost.
    loss: u32,
    ended: bool,
}

impl State {
    fn reaches(&self, node: usize) -> bool {
        let place = &self.places[node];
        place.incarnation.is_some() && !place.cut
    }

    fn has_quorum(&self) -> bool {
        let up = (0..self.places.len()).filter(|node| self.reaches(*node)).count();
        up * 2 > self.places.len()
    }

    fn in_contact(&self, node: usize) -> bool {
        self.reaches(node) && self.has_quorum()
    }

    fn fly(&mut self, data: Bytes) {
        let (lost, delay) = installed().random(|rng| {
            let delay = if rng.chance(50) { rng.millis(20, 900) } else { rng.millis(0, 6) };
            (rng.chance(self.loss), delay)
        });
        if !lost {
            self.flown += 1;
            self.flights.insert((now() + delay, self.flown), Flight { data });
        }
    }

    fn append(&mut self, entry: Entry) {
        self.log.push(Logged { entry, at: now() });
    }

    /// Who belongs to the next view.
    fn present(&self) -> Vec<ViewMember> {
        let present = |node: &usize| {
            let place = &self.places[*node];
            let silent =
                place.cut && place.since.is_some_and(|since| now() - since > SUSPECT_TIMEOUT);
            let joins = place.cut && !self.view.members.iter().any(|m| m.id == id_of(*node));
            place.incarnation.is_some() && !silent && !joins && !place.leaving
        };
        let member = |node: usize| ViewMember {
            id: id_of(node),
            incarnation: self.places[node].incarnation.unwrap_or(0),
            name: format!("n{node}"),
            incoming: format!("n{node}:3306"),
            addr: format!("n{node}:4567"),
        };
        (0..self.places.len()).filter(present).map(member).collect()
    }

    fn settle_view(&mut self) {
        if !self.has_quorum() {
            return;
        }
        let members = self.present();
        if members != self.view.members || std::mem::take(&mut self.fresh_view) {
            self.view = View { number: self.view.number + 1, members, primary: None };
            self.append(Entry::View(self.view.clone()));
        }
    }
}

pub fn id_of(node: usize) -> MemberId {
    MemberId(node as u128 + 1)
}

/// The group as a whole.
pub struct Network {
    state: Mutex<State>,
    changed: Condvar,
    oracle: Arc<Oracle>,
    plant: Option<Plant>,
}

impl Network {
    pub fn new(nodes: usize, oracle: Arc<Oracle>, plant: Option<Plant>) -> Arc<Self> {
        let loss = installed().random(|rng| [0, 20, 200][rng.index(3)]);
        let state = State {
            log: Vec::new(),
            places: (0..nodes).map(|_| Place::default()).collect(),
            view: View::default(),
            fresh_view: false,
            flights: BTreeMap::new(),
            flown: 0,
            snapshots: BTreeMap::new(),
            loss,
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

    /// The entries of the log so far.
    pub fn len(&self) -> usize {
        self.state.lock().log.len()
    }

    /// The newest snapshot that stands at or before this seqno (any, if `None`), and its index.
    pub fn snapshot(&self, upto: Option<i64>) -> (usize, Bytes) {
        let state = self.state.lock();
        let fits = |(_, (seqno, _)): &(&usize, &(i64, Bytes))| upto.is_none_or(|at| *seqno <= at);
        let found = state.snapshots.iter().rev().find(fits);
        found.map_or((0, Bytes::new()), |(index, (_, bytes))| (*index, bytes.clone()))
    }
}

/// One start of one member.
pub struct Member {
    network: Arc<Network>,
    node: usize,
    incarnation: u32,
    process: Process,
    running: Mutex<Running>,
    stopped: Condvar,
}

struct Running {
    closed: bool,
    feeding: bool,
}

impl Member {
    pub fn open(
        network: Arc<Network>,
        node: usize,
        incarnation: u32,
        process: Process,
    ) -> Arc<Self> {
        let mut state = network.state.lock();
        let place = &mut state.places[node];
        place.incarnation = Some(incarnation);
        place.leaving = false;
        place.told_lost = false;
        place.since = Some(now());
        drop(state);
        network.changed.notify_all();
        let running = Mutex::new(Running { closed: false, feeding: false });
        Arc::new(Self { network, node, incarnation, process, running, stopped: Condvar::new() })
    }

    pub fn uuid(&self) -> u128 {
        process_uuid(id_of(self.node).0, self.incarnation)
    }

    /// Begins to feed the log to this machine, from a snapshot after `from` entries.
    pub fn start(
        self: &Arc<Self>,
        mut machine: Box<dyn StateMachine>,
        (from, snapshot): (usize, Bytes),
        observer: Arc<dyn Observer>,
    ) -> Result<(), String> {
        machine.restore(from as Index, snapshot)?;
        let member = self.clone();
        let name = format!("n{}.sequencer", self.node);
        installed().start(self.process, &name, move || member.feed(&mut *machine, from));
        let member = self.clone();
        let name = format!("n{}.watch", self.node);
        installed().start(self.process, &name, move || member.watch(&*observer));
        Ok(())
    }

    fn feed(&self, machine: &mut dyn StateMachine, mut fed: usize) {
        while let Some(entry) = self.next_entry(fed) {
            {
                let mut running = self.running.lock();
                if running.closed {
                    return;
                }
                running.feeding = true;
            }
            fed += 1;
            let index = fed as Index;
            let applied = machine.apply(match entry {
                Entry::Data(data) => Committed::Data { index, data, primary_term: None },
                Entry::View(view) => Committed::View { index, view },
            });
            if let Err(why) = applied {
                self.network.oracle.fail(why);
            }
            machine.passed(index);
            if installed().random(|rng| rng.chance(20)) {
                self.keep_snapshot(fed, machine.snapshot());
            }
            self.running.lock().feeding = false;
            self.stopped.notify_all();
        }
    }

    /// All members must have the same at the same place of the log.
    fn keep_snapshot(&self, index: usize, bytes: Bytes) {
        let Ok(sequenced) = quorate_certify::Sequenced::restore(&bytes) else {
            return self.network.oracle.fail("a snapshot cannot be read again");
        };
        let seqno = sequenced.certifier.seqno();
        let mut state = self.network.state.lock();
        let former = state.snapshots.insert(index, (seqno, bytes.clone()));
        if former.is_some_and(|(_, other)| other != bytes) {
            self.network.oracle.fail("two members have different states at one place of the log");
        }
    }

    /// Blocks until there is an entry after `fed` that this member has heard of; `None`: closed.
    fn next_entry(&self, fed: usize) -> Option<Entry> {
        let mut state = self.network.state.lock();
        loop {
            if state.ended || self.running.lock().closed {
                return None;
            }
            let mut until = None;
            if state.in_contact(self.node) && state.log.len() > fed {
                let logged = &state.log[fed];
                let due = logged.at + state.places[self.node].lag;
                if due <= now() {
                    return Some(logged.entry.clone());
                }
                until = Some(due);
            }
            match until {
                Some(due) => {
                    self.network.changed.wait_until(&mut state, due);
                }
                None => self.network.changed.wait(&mut state),
            }
        }
    }

    /// Tells the node when it loses the majority, and when it has it again.
    fn watch(&self, observer: &dyn Observer) {
        let mut lost_since = None;
        loop {
            let mut state = self.network.state.lock();
            if state.ended || self.running.lock().closed {
                return;
            }
            let contact = state.in_contact(self.node);
            let told = state.places[self.node].told_lost;
            if contact {
                lost_since = None;
            } else {
                lost_since.get_or_insert_with(now);
            }
            let late = lost_since.is_some_and(|since| now() - since > PRIMARY_TIMEOUT);
            if contact && told {
                state.places[self.node].told_lost = false;
                state.fresh_view = true;
                drop(state);
                observer.primary(true);
            } else if late && !told {
                state.places[self.node].told_lost = true;
                drop(state);
                self.network.oracle.mark(Mark::LosesMajority);
                observer.primary(false);
                observer.log(LogLevel::Debug, String::new());
            } else {
                let until = now() + TICK;
                self.network.changed.wait_until(&mut state, until);
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.running.lock().closed
    }
}

impl Group for Member {
    fn group_id(&self) -> u128 {
        HISTORY
    }

    fn propose(&self, serial: u64, data: Bytes) -> Result<(), GroupError> {
        if self.is_closed() {
            return Err(GroupError::Closed);
        }
        let data = match self.network.plant {
            Some(Plant::KinOverwrites) => without_epoch(&data),
            _ => data,
        };
        let mut state = self.network.state.lock();
        if state.reaches(self.node) {
            state.fly(data.clone());
        }
        state.places[self.node].pending.insert(serial, (data, now()));
        self.network.changed.notify_all();
        Ok(())
    }

    fn decided(&self, serial: u64) {
        self.network.state.lock().places[self.node].pending.remove(&serial);
    }

    fn barrier(&self, timeout: Duration) -> Result<Index, GroupError> {
        let deadline = now() + timeout;
        let mut state = self.network.state.lock();
        while !state.in_contact(self.node) {
            if self.network.changed.wait_until(&mut state, deadline).timed_out() {
                return Err(no_leader(timeout));
            }
        }
        Ok(state.log.len() as Index)
    }

    fn read(&self, index: Index) -> Result<Bytes, GroupError> {
        self.network.oracle.mark(Mark::ReadBack);
        match self.network.state.lock().log.get(index as usize - 1).map(|logged| &logged.entry) {
            Some(Entry::Data(data)) => Ok(data.clone()),
            _ => Err(GroupError::NotWritten { index }),
        }
    }

    fn reachable(&self) -> Vec<ViewMember> {
        let state = self.network.state.lock();
        let own = |m: &ViewMember| m.id == id_of(self.node);
        state.view.members.iter().filter(|m| own(m)).cloned().collect()
    }

    fn refresh_view(&self) {
        self.network.state.lock().fresh_view = true;
    }

    fn status(&self) -> GroupStatus {
        GroupStatus { member: id_of(self.node), leader: Some(id_of(0)), ..GroupStatus::default() }
    }

    fn leave(&self, timeout: Duration) -> Result<(), GroupError> {
        let deadline = now() + timeout;
        let mut state = self.network.state.lock();
        state.places[self.node].leaving = true;
        while state.view.members.iter().any(|m| m.id == id_of(self.node)) {
            if self.network.changed.wait_until(&mut state, deadline).timed_out() {
                return Err(no_leader(timeout));
            }
        }
        Ok(())
    }

    fn close(&self) {
        self.running.lock().closed = true;
        self.network.changed.notify_all();
        let mut running = self.running.lock();
        while running.feeding {
            self.stopped.wait(&mut running);
        }
    }
}

fn no_leader(waited: Duration) -> GroupError {
    OrderError::NoLeader { waited, what: "nobody leads this group".into() }.into()
}

/// A write set as it was before there were epochs (`Header::kin_epoch`).
fn without_epoch(data: &Bytes) -> Bytes {
    let mut bytes = data.to_vec();
    bytes[2..4].fill(0);
    Bytes::from(bytes)
}

/// The group's id, and the uuid of its history.
pub const HISTORY: u128 = 0x51;
