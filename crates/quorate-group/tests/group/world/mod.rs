//! Time, a network that delivers after a millisecond, and a disk that syncs after one, or some: enough of a
//! shell to run the machine, and nothing that goes wrong but what a test wants.

mod links;
mod node;

use node::Node;
use quorate_consensus::{EntryKind, LogPosition, MemberId, Proposal};
use quorate_group::{
    Answer, Ask, AskAnswer, Author, EventKind, GroupStatus, Input, LogFigures, Mandate, Options,
    Order, OrderNote, Output, Received, View,
};
use quorate_wire::{Hello, Packet, PeerIdentity, Refusal, Want, PROTOCOL_MAX, PROTOCOL_MIN};
use std::collections::{BTreeMap, BTreeSet};

const TICK_MS: u64 = 10;
const REDIAL_MS: u64 = 50;

pub struct World {
    pub now_ms: u64,
    pub nodes: Vec<Node>,
    /// What is to happen, in order.
    events: BTreeMap<(u64, u64), Event>,
    next: u64,
    /// Connections that stand: from whom to whom.
    links: BTreeSet<(usize, usize)>,
    /// Links that deliver nothing, and on which nothing can be dialled, without anybody being told.
    pub cut: BTreeSet<(usize, usize)>,
    /// How many messages of the core came, from whom to whom.
    pub messages: BTreeMap<(usize, usize), usize>,
    /// How long a disk takes.
    pub sync_ms: u64,
    /// Whose disks stand still.
    pub stalled: BTreeSet<usize>,
    next_order: u64,
}

enum Event {
    Tick(usize),
    Dial(usize, usize),
    Deliver(usize, usize, Packet),
    /// Up to here, if that is in the log then.
    Synced(usize, LogPosition),
    Asked(usize, Ask),
    TakeIn(usize),
}

impl World {
    /// A group of so many, all in the view.
    pub fn started(count: usize) -> Self {
        Self::with(count, |_, _| {})
    }

    pub fn with(count: usize, change: impl Fn(usize, &mut Options)) -> Self {
        let (nodes, links, cut) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let (events, messages) = (BTreeMap::new(), BTreeMap::new());
        let mut world = World {
            now_ms: 0,
            nodes,
            events,
            next: 0,
            links,
            cut,
            messages,
            sync_ms: 1,
            stalled: BTreeSet::new(),
            next_order: 0,
        };
        for at in 0..count {
            world.add(&change);
            world.order(at, Order::AwaitJoined, 10_000).unwrap();
            world.await_view(&(0..=at).collect::<Vec<_>>());
            world.await_voters(at + 1);
        }
        world
    }

    /// One more node, which asks all there are for admission.
    pub fn add(&mut self, change: impl Fn(usize, &mut Options)) {
        let at = self.nodes.len();
        self.nodes.push(Node::new(at, &change));
        self.start(at);
    }

    pub fn start(&mut self, at: usize) {
        let now_ms = self.now_ms;
        let out = self.nodes[at].start(now_ms);
        self.carry_out(at, out);
        self.later(TICK_MS, Event::Tick(at));
    }

    /// Its process ends, and its host refuses connections.
    pub fn kill(&mut self, at: usize) {
        self.nodes[at].machine = None;
        self.cut_links(at);
    }

    pub fn step(&mut self, at: usize, input: Input) {
        let mut out = Output::default();
        if let Some(machine) = &mut self.nodes[at].machine {
            machine.step(self.now_ms, input, &mut out);
        }
        self.carry_out(at, out);
    }

    /// A leader's snapshot has come in whole: whether it is to be written.
    pub fn snapshot_arrives(&mut self, at: usize, received: &Received) -> bool {
        let mut out = Output::default();
        let machine = self.nodes[at].machine.as_mut().expect("it runs");
        let wanted = machine.arrived(received, &mut out);
        self.carry_out(at, out);
        wanted
    }

    /// It is on disk: whether it stays there.
    pub fn snapshot_stored(&mut self, at: usize, received: &Received) -> bool {
        let mut out = Output::default();
        let machine = self.nodes[at].machine.as_mut().expect("it runs");
        let stays = machine.stored(self.now_ms, received, &mut out);
        self.carry_out(at, out);
        stays
    }

    /// Hands in an order; its answer comes into `Node::answers`.
    pub fn begin(&mut self, at: usize, order: Order, timeout_ms: u64) -> u64 {
        self.next_order += 1;
        let (id, deadline_ms) = (self.next_order, self.now_ms + timeout_ms);
        self.nodes[at].intake.order(id, order, deadline_ms);
        self.take_in(at);
        id
    }

    /// Hands in an operator's order.
    pub fn begin_by(&mut self, at: usize, author: &str, order: Order, timeout_ms: u64) -> u64 {
        self.next_order += 1;
        let (id, deadline_ms) = (self.next_order, self.now_ms + timeout_ms);
        let author = Author { name: author.into(), from: "socket".into() };
        let mandate = Mandate { author, given_ms: 1_000_000 + self.now_ms };
        self.nodes[at].intake.order_by(id, order, deadline_ms, mandate);
        self.take_in(at);
        id
    }

    /// The layer above hands in that this happened.
    pub fn happened(&mut self, at: usize, kind: EventKind, what: &str) {
        self.nodes[at].intake.event(kind, what.to_owned());
        self.take_in(at);
    }

    /// Its server has applied up to here, and says so at once.
    pub fn applies(&mut self, at: usize, applied: i64) {
        let server = self.nodes[at].server.get_or_insert_default();
        (server.applied, server.certified) = (applied, server.certified.max(applied));
        let now = *server;
        self.nodes[at].intake.standing(now);
        self.take_in(at);
    }

    /// Waits until all of these have this many notes of orders, in the same order.
    pub fn await_notes(&mut self, members: &[usize], count: usize) -> Vec<OrderNote> {
        self.until("the notes", |world| {
            members.iter().all(|at| world.nodes[*at].notes().len() == count)
        });
        let notes = self.nodes[members[0]].notes();
        assert!(members.iter().all(|at| self.nodes[*at].notes() == notes));
        notes
    }

    /// Hands in an order, and waits for the answer.
    pub fn order(&mut self, at: usize, order: Order, timeout_ms: u64) -> Answer {
        let id = self.begin(at, order, timeout_ms);
        self.await_answer(at, id, timeout_ms)
    }

    /// Waits for the answer to an order that was handed in.
    pub fn await_answer(&mut self, at: usize, id: u64, timeout_ms: u64) -> Answer {
        let deadline_ms = self.now_ms + timeout_ms + 2 * TICK_MS;
        while !self.nodes[at].answers.contains_key(&id) {
            assert!(self.now_ms <= deadline_ms, "no answer in time");
            self.run_ms(1);
        }
        self.nodes[at].answers.remove(&id).unwrap()
    }

    /// Proposes what its text says.
    pub fn propose(&mut self, at: usize, text: &str) {
        let serial = self.nodes[at].next_serial();
        let proposal = Proposal::new(EntryKind::Data, text.to_owned().into());
        self.nodes[at].intake.push(serial, proposal);
        self.take_in(at);
    }

    pub fn leader(&mut self) -> usize {
        self.until("a leader", |world| world.find_leader().is_some());
        self.find_leader().unwrap()
    }

    pub fn await_view(&mut self, members: &[usize]) {
        let ids: BTreeSet<_> = members.iter().map(|at| self.nodes[*at].id).collect();
        let shown = |view: &View| view.members.iter().map(|m| m.id).collect::<BTreeSet<_>>() == ids;
        self.until("the view", |world| {
            members.iter().all(|at| world.nodes[*at].views.last().is_some_and(&shown))
        });
    }

    /// Waits until the leader has so many voters, for good.
    pub fn await_voters(&mut self, count: usize) {
        let deadline_ms = self.now_ms + 20_000;
        loop {
            let leader = self.leader();
            let status = self.status(leader);
            let settled = !status.config.is_joint() && status.commit_index == status.last_index;
            if settled && status.voters.len() == count {
                return;
            }
            assert!(self.now_ms < deadline_ms, "{status:?}");
            self.run_ms(1);
        }
    }

    pub fn status(&mut self, at: usize) -> GroupStatus {
        let machine = self.nodes[at].machine.as_mut().expect("it runs");
        machine.status(self.now_ms, LogFigures::default())
    }

    /// Somebody dials it, and introduces itself as this peer.
    pub fn introduces_itself(&mut self, at: usize, from: PeerIdentity) -> Result<(), Refusal> {
        let versions = (PROTOCOL_MIN, PROTOCOL_MAX);
        let expects = Some(self.nodes[at].id);
        let hello = Hello { versions, want: Want::Peer, from, expects };
        let mut out = Output::default();
        let machine = self.nodes[at].machine.as_mut().expect("it runs");
        let greeting = machine.greet(self.now_ms, &hello, &mut out);
        self.carry_out(at, out);
        greeting.map(drop)
    }

    pub fn identity(&self, at: usize) -> PeerIdentity {
        self.nodes[at].machine.as_ref().expect("it runs").identity()
    }

    pub fn await_applied(&mut self, members: &[usize], texts: &[&str]) {
        self.until("proposals", |world| {
            let all = |at: &usize| {
                texts.iter().all(|text| world.nodes[*at].applied.iter().any(|a| a == text))
            };
            members.iter().all(all)
        });
    }

    pub fn until(&mut self, what: &str, done: impl Fn(&World) -> bool) {
        let deadline_ms = self.now_ms + 20_000;
        while !done(self) {
            let lines = || self.nodes.iter().map(|node| &node.lines).collect::<Vec<_>>();
            assert!(self.now_ms < deadline_ms, "waited in vain for {what}: {:#?}", lines());
            self.run_ms(1);
        }
    }

    pub fn run_ms(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while let Some(entry) = self.events.first_entry().filter(|e| e.key().0 <= end_ms) {
            self.now_ms = entry.key().0;
            let event = entry.remove();
            self.happen(event);
        }
        self.now_ms = end_ms;
    }

    fn find_leader(&self) -> Option<usize> {
        let leads = |node: &Node| node.leaders.last().is_some_and(|l| *l == Some(node.id));
        self.nodes.iter().position(|node| node.machine.is_some() && leads(node))
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick(at) if self.nodes[at].machine.is_some() => {
                let applied = self.nodes[at].applied();
                let server = self.nodes[at].server;
                self.step(at, Input::Applied(applied));
                self.step(at, Input::Standing(server));
                self.step(at, Input::Tick { unix_ms: self.now_ms });
                self.later(TICK_MS, Event::Tick(at));
            }
            Event::Deliver(from, to, packet) if self.links.contains(&(from, to)) => {
                if matches!(packet, Packet::Consensus(_)) {
                    *self.messages.entry((from, to)).or_default() += 1;
                }
                let from = self.nodes[from].id;
                self.step(to, Input::Packet { from, packet });
            }
            Event::Synced(at, position) if self.stalled.contains(&at) => {
                self.later(self.sync_ms, Event::Synced(at, position));
            }
            Event::Synced(at, position) => {
                let position = position.min(self.nodes[at].log.synced());
                self.step(at, Input::Persisted(position));
            }
            Event::Dial(from, to) => self.dial(from, to),
            Event::TakeIn(at) => self.take_in(at),
            Event::Asked(at, ask) => self.ask(at, ask),
            Event::Tick(_) | Event::Deliver(..) => {}
        }
    }

    fn dial(&mut self, from: usize, to: usize) {
        let wanted = self.nodes[from].machine.is_some() && self.nodes[from].dials.contains(&to);
        if !wanted || self.links.contains(&(from, to)) {
            return;
        }
        let peer = self.nodes[to].id;
        self.later(REDIAL_MS, Event::Dial(from, to));
        if self.cut.contains(&(from, to)) {
            return;
        }
        let not_there = Input::NotThere { peer, dialled_ms: self.now_ms };
        match self.greet(from, to, Want::Peer) {
            None => self.step(from, not_there),
            Some(Ok(welcome)) => {
                self.links.insert((from, to));
                self.step(from, Input::Connected(welcome));
            }
            Some(Err(refusal)) => {
                let key = self.identity(to).key;
                let machine = self.nodes[from].machine.as_ref().expect("it dials");
                match machine.shows_absence(peer, refusal.code, key) {
                    true => self.step(from, not_there),
                    false => self.step(from, Input::Refused { peer, refusal, key }),
                }
            }
        }
    }

    /// `None`: nobody listens.
    fn greet(
        &mut self,
        from: usize,
        to: usize,
        want: Want,
    ) -> Option<Result<quorate_wire::PeerIdentity, Refusal>> {
        let identity = self.nodes[from].machine.as_ref()?.identity();
        let expects = (want == Want::Peer).then_some(self.nodes[to].id);
        let versions = (PROTOCOL_MIN, PROTOCOL_MAX);
        let hello = Hello { versions, want, from: identity, expects };
        let mut out = Output::default();
        let greeting = self.nodes[to].machine.as_mut()?.greet(self.now_ms, &hello, &mut out);
        self.carry_out(to, out);
        Some(greeting.map(|greeting| {
            if let Some(connection) = greeting.connection {
                self.nodes[to].incoming.insert(from, connection);
            }
            greeting.welcome.from
        }))
    }

    fn ask(&mut self, at: usize, Ask { addr, request, .. }: Ask) {
        let to = addr.strip_prefix("node").and_then(|number| number.parse().ok()).unwrap();
        let failed = |reason: &str| AskAnswer::Failed { reason: reason.to_owned() };
        let greeted = match self.cut.contains(&(at, to)) {
            true => None,
            false => self.greet(at, to, Want::Join),
        };
        let answer = match greeted {
            None => failed("nobody answers"),
            Some(Err(refusal)) => AskAnswer::Refused { refusal, key: self.identity(to).key },
            Some(Ok(from)) => {
                let guest = self.nodes[at].machine.as_ref().unwrap().identity();
                let mut out = Output::default();
                let machine = self.nodes[to].machine.as_mut().unwrap();
                let admission = machine.admit(self.now_ms, guest, &request, &mut out);
                self.carry_out(to, out);
                AskAnswer::Admission { from, admission }
            }
        };
        self.step(at, Input::Asked { addr, answer });
    }

    fn take_in(&mut self, at: usize) {
        let mut out = Output::default();
        let Node { machine, intake, .. } = &mut self.nodes[at];
        if let Some(machine) = machine {
            machine.take_in(self.now_ms, intake, &mut out);
        }
        self.carry_out(at, out);
    }

    pub fn carry_out(&mut self, at: usize, mut out: Output) {
        if self.nodes[at].log.write(&mut out) {
            let position = self.nodes[at].log.synced();
            self.later(self.sync_ms, Event::Synced(at, position));
        }
        let messages = out.effects.messages.drain(..).map(|m| (m.to, Packet::Consensus(m)));
        let packets: Vec<_> = messages.chain(out.packets.drain(..)).collect();
        for (to, packet) in packets {
            let Some(to) = self.find(to) else { continue };
            if !self.cut.contains(&(at, to)) {
                self.later(1, Event::Deliver(at, to, packet));
            }
        }
        for fetch in out.effects.fetches.drain(..) {
            let entries = self.nodes[at].log.from(fetch.from);
            self.step(at, Input::Fetched { to: fetch.to, from: fetch.from, entries });
        }
        if let Some(peer) = out.ask_room {
            self.nodes[at].intake.room(peer);
            self.nodes[at].waited_for_room += 1;
            self.later(1, Event::TakeIn(at));
        }
        for link in out.links.drain(..) {
            self.link(at, link);
        }
        if let Some(ask) = out.ask.take() {
            self.later(1, Event::Asked(at, ask));
        }
        self.nodes[at].answers.extend(out.answers.drain(..));
        self.nodes[at].note(out.notices.drain(..));
        for input in self.nodes[at].feed(out.feed) {
            self.step(at, input);
        }
    }

    fn find(&self, id: MemberId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }

    fn later(&mut self, ms: u64, event: Event) {
        self.next += 1;
        self.events.insert((self.now_ms + ms, self.next), event);
    }
}
