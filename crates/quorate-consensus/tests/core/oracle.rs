//! The same schedule on this core and on the registry's `raft` crate (an etcd descendant): after
//! each action both groups come to rest, and leaders, terms, logs and commit indexes must be equal.
//!
//! Links are cut and healed, members stand, leaders propose, members restart. Compared only where
//! the two mean the same. They do not, and the schedule keeps clear of it, in these points:
//!
//! - *When* a member times out: each draws its own waits. Here nobody but a chosen member stands.
//! - Check-quorum looks back over a sliding election timeout here, over fixed windows of one there.
//!   So links only change between phases longer than two windows.
//! - Two that stand at the same moment: here one yields. So one stands at a time.
//! - Membership: in force when appended here, when applied there. Not exercised.
//! - A read asked before the first commit of a term is dropped there. Not exercised.
//! - A follower whose acknowledgements do not arrive is told commit indexes there, here not. So
//!   with one-way links the commit indexes of followers are not compared.
//! - There the commit index is part of the hard state. So the driver here records it too.

use crate::support::{voter, Member, Rng};
use bytes::Bytes;
use quorate_consensus::{Config, EntryKind, Event, MemberId, Options, Proposal};
use raft::eraftpb::{HardState, Message as OracleMessage};
use raft::storage::MemStorage;
use raft::{RawNode, StateRole, Storage};
use std::collections::{BTreeMap, BTreeSet};

const HEARTBEAT_MS: u64 = 100;
const ELECTION_BEATS: u64 = 5;
/// Beats after which every lease, window and wait of an election timeout is over.
const LONG: u64 = 3 * ELECTION_BEATS;

type Links = BTreeSet<(u64, u64)>;

/// What is compared of one member.
#[derive(PartialEq, Eq)]
struct Summary {
    leads: bool,
    term: u64,
    commit: u64,
    /// Term and payload of each entry.
    log: Vec<(u64, Vec<u8>)>,
}

impl std::fmt::Debug for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let role = if self.leads { "leads" } else { "follows" };
        write!(f, "{role} term {} commit {} log", self.term, self.commit)?;
        let mut entries = self.log.iter();
        entries.try_for_each(|(term, data)| write!(f, " {term}:{}", String::from_utf8_lossy(data)))
    }
}

#[test]
fn both_groups_agree_after_every_action() {
    let seeds = std::env::var("ORACLE_SEEDS").unwrap_or_else(|_| "0..150".into());
    let (from, to) = seeds.split_once("..").expect("ORACLE_SEEDS=FROM..TO");
    let (mut elections, mut commits) = (0, 0);
    for seed in from.parse::<u64>().unwrap()..to.parse().unwrap() {
        let (terms, committed) = compare(seed);
        elections += terms;
        commits += committed;
    }
    println!("{elections} terms, {commits} commits");
    assert!(elections > 100 && commits > 100, "the schedules exercise too little");
}

fn compare(seed: u64) -> (u64, u64) {
    let mut rng = Rng(seed);
    let size = 1 + rng.below(5);
    let one_way = rng.percent(40);
    let (mut ours, mut theirs) = (Ours::new(size, seed), Oracle::new(size));
    let mut story = Vec::new();
    for action in 0..60 {
        let member = 1 + rng.below(size);
        match rng.below(10) {
            0 | 1 => {
                let links = random_links(&mut rng, size, one_way);
                story.push(format!("cut {links:?}"));
                ours.cut = links.clone();
                theirs.cut = links;
                ours.elapse(LONG);
                theirs.elapse(LONG);
            }
            2..=4 => {
                if ours.hears_leader(member) || !ours.nodes[&member].running() {
                    continue;
                }
                story.push(format!("{member} stands"));
                // Its wait is over then, however it was drawn.
                ours.elapse(LONG);
                theirs.elapse(LONG);
                ours.stand(member);
                theirs.stand(member);
            }
            5 => {
                story.push(format!("{member} restarts"));
                ours.restart(member);
                theirs.restart(member);
                // Here a restarted member has no leader until it hears one; there neither.
                ours.elapse(LONG);
                theirs.elapse(LONG);
            }
            _ => {
                let payload = format!("{seed}.{action}").into_bytes();
                story.push(format!("leaders propose {action}"));
                ours.propose(&payload);
                theirs.propose(&payload);
            }
        }
        ours.elapse(2);
        theirs.elapse(2);
        let (mut a, mut b) = (ours.summary(), theirs.summary());
        if one_way {
            let summaries = a.values_mut().chain(b.values_mut());
            summaries.filter(|summary| !summary.leads).for_each(|summary| summary.commit = 0);
        }
        let differ = || a.iter().zip(&b).find(|(x, y)| x != y);
        assert!(a == b, "seed {seed}: {}\n{:#?}", story.join("; "), differ());
    }
    let end = ours.summary();
    let terms = end.values().map(|s| s.term).max();
    let committed = end.values().map(|s| s.commit).max();
    (terms.unwrap_or(0), committed.unwrap_or(0))
}

/// Nothing, a member, or a random set of one-way links.
fn random_links(rng: &mut Rng, size: u64, one_way: bool) -> Links {
    let pairs = |keep: &mut dyn FnMut(u64, u64) -> bool| {
        let all = (1..=size).flat_map(|a| (1..=size).map(move |b| (a, b)));
        all.filter(|(a, b)| a != b && keep(*a, *b)).collect()
    };
    match rng.below(4) {
        0 => Links::new(),
        1 => {
            let alone = 1 + rng.below(size);
            pairs(&mut |a, b| a == alone || b == alone)
        }
        2 => {
            let side = rng.next();
            pairs(&mut |a, b| (side >> a & 1) != (side >> b & 1))
        }
        _ if one_way => pairs(&mut |_, _| rng.percent(25)),
        _ => {
            let dice = rng.next();
            pairs(&mut |a, b| dice >> (8 * a.min(b) + a.max(b)) & 3 == 0)
        }
    }
}

/// A group of this crate's members.
struct Ours {
    nodes: BTreeMap<u64, Member>,
    cut: Links,
    now_ms: u64,
}

impl Ours {
    fn new(size: u64, seed: u64) -> Self {
        let members = (1..=size).map(|id| (MemberId(id.into()), voter("v"))).collect();
        let config = Config { members, ..Config::default() };
        let nodes = (1..=size).map(|id| {
            let options = Options {
                election_timeout_ms: ELECTION_BEATS * HEARTBEAT_MS,
                heartbeat_interval_ms: HEARTBEAT_MS,
                ..Options::new(MemberId(id.into()), seed + id)
            };
            let mut member = Member::new(options, config.clone());
            member.records_commit = true;
            member.start(0);
            (id, member)
        });
        Self { nodes: nodes.collect(), cut: Links::new(), now_ms: 10_000 }
    }

    fn feed(&mut self, id: u64, event: Event) {
        let now_ms = self.now_ms;
        self.nodes.get_mut(&id).expect("a member").step_ok(now_ms, event);
    }

    fn settle(&mut self) {
        loop {
            let mut sent = Vec::new();
            for member in self.nodes.values_mut() {
                member.disk.sync(usize::MAX);
                member.report(self.now_ms);
                for fetch in std::mem::take(&mut member.fetches) {
                    member.answer_fetch(self.now_ms, fetch);
                }
                sent.append(&mut member.outbox);
            }
            if sent.is_empty() {
                return;
            }
            for message in sent {
                let (from, to) = (message.from.0 as u64, message.to.0 as u64);
                if !self.cut.contains(&(from, to)) {
                    self.feed(to, Event::Receive(message));
                }
            }
        }
    }

    fn elapse(&mut self, beats: u64) {
        for _ in 0..beats {
            self.now_ms += HEARTBEAT_MS;
            let leaders = self.nodes.iter().filter(|(_, member)| leads(member));
            for leader in leaders.map(|(id, _)| *id).collect::<Vec<_>>() {
                self.feed(leader, Event::Tick);
            }
            self.settle();
        }
    }

    /// Whether standing would be against its own timer.
    fn hears_leader(&self, id: u64) -> bool {
        let heard = |leader: u64| {
            leads(&self.nodes[&leader]) && (leader == id || !self.cut.contains(&(leader, id)))
        };
        self.nodes.keys().any(|leader| heard(*leader))
    }

    fn stand(&mut self, id: u64) {
        self.feed(id, Event::Tick);
        self.settle();
    }

    fn restart(&mut self, id: u64) {
        let now_ms = self.now_ms;
        let member = self.nodes.get_mut(&id).expect("a member");
        member.crash(usize::MAX);
        member.start(now_ms);
    }

    fn propose(&mut self, payload: &[u8]) {
        let leaders = self.nodes.iter().filter(|(_, member)| leads(member));
        for leader in leaders.map(|(id, _)| *id).collect::<Vec<_>>() {
            let batch = vec![Proposal::new(EntryKind::Data, Bytes::copy_from_slice(payload))];
            self.feed(leader, Event::Propose(batch));
        }
        self.settle();
    }

    fn summary(&self) -> BTreeMap<u64, Summary> {
        let summary = |member: &Member| {
            let status = member.core.as_ref().expect("running").status(self.now_ms);
            let entries = member.disk.written.entries.iter();
            Summary {
                leads: leads(member),
                term: status.term,
                commit: status.commit,
                log: entries.map(|entry| (entry.term, entry.data.to_vec())).collect(),
            }
        };
        self.nodes.iter().map(|(id, member)| (*id, summary(member))).collect()
    }
}

fn leads(member: &Member) -> bool {
    member.core.as_ref().is_some_and(|core| core.is_leader())
}

/// A group of the registry's crate.
struct Oracle {
    nodes: BTreeMap<u64, RawNode<MemStorage>>,
    cut: Links,
}

impl Oracle {
    fn new(size: u64) -> Self {
        let voters: Vec<u64> = (1..=size).collect();
        let node = |id: u64| {
            let storage = MemStorage::new_with_conf_state((voters.clone(), vec![]));
            (id, oracle_node(id, storage))
        };
        Self { nodes: voters.iter().map(|id| node(*id)).collect(), cut: Links::new() }
    }

    fn settle(&mut self) {
        loop {
            let mut sent = Vec::new();
            for node in self.nodes.values_mut() {
                drive(node, &mut sent);
            }
            if sent.is_empty() {
                return;
            }
            for message in sent {
                if !self.cut.contains(&(message.from, message.to)) {
                    let node = self.nodes.get_mut(&message.to).expect("a member");
                    node.step(message).expect("a message of a member is taken");
                }
            }
        }
    }

    fn elapse(&mut self, beats: u64) {
        for _ in 0..beats {
            for node in self.nodes.values_mut() {
                node.tick();
            }
            self.settle();
        }
    }

    fn stand(&mut self, id: u64) {
        self.nodes.get_mut(&id).expect("a member").campaign().expect("it may stand");
        self.settle();
    }

    fn restart(&mut self, id: u64) {
        let storage = self.nodes[&id].store().clone();
        self.nodes.insert(id, oracle_node(id, storage));
    }

    fn propose(&mut self, payload: &[u8]) {
        let leaders = self.nodes.values_mut().filter(|node| node.raft.state == StateRole::Leader);
        for leader in leaders {
            leader.propose(vec![], payload.to_vec()).expect("a leader takes proposals");
        }
        self.settle();
    }

    fn summary(&self) -> BTreeMap<u64, Summary> {
        let summary = |node: &RawNode<MemStorage>| {
            let last = node.store().last_index().expect("in memory");
            let entries = match last {
                0 => Vec::new(), // which the storage cannot be asked for
                _ => {
                    let context = raft::GetEntriesContext::empty(false);
                    node.store().entries(1, last + 1, None, context).expect("in memory")
                }
            };
            Summary {
                leads: node.raft.state == StateRole::Leader,
                term: node.raft.term,
                commit: node.raft.raft_log.committed,
                log: entries.iter().map(|entry| (entry.term, entry.data.to_vec())).collect(),
            }
        };
        self.nodes.iter().map(|(id, node)| (*id, summary(node))).collect()
    }
}

fn oracle_node(id: u64, storage: MemStorage) -> RawNode<MemStorage> {
    let config = raft::Config {
        id,
        election_tick: ELECTION_BEATS as usize,
        heartbeat_tick: 1,
        // Nobody stands by its own timer.
        min_election_tick: 1 << 30,
        max_election_tick: (1 << 30) + 1,
        check_quorum: true,
        pre_vote: true,
        max_inflight_msgs: 256,
        ..raft::Config::default()
    };
    let logger = slog::Logger::root(slog::Discard, slog::o!());
    RawNode::new(&config, storage, &logger).expect("a valid configuration")
}

/// Carries out what the node wants, with a disk that syncs at once.
fn drive(node: &mut RawNode<MemStorage>, sent: &mut Vec<OracleMessage>) {
    while node.has_ready() {
        let mut ready = node.ready();
        sent.append(&mut ready.take_messages());
        node.store().wl().append(ready.entries()).expect("consecutive entries");
        if let Some(state) = ready.hs() {
            node.store().wl().set_hardstate(state.clone());
        }
        sent.append(&mut ready.take_persisted_messages());
        let mut light = node.advance(ready);
        if let Some(commit) = light.commit_index() {
            let state = node.store().wl().hard_state().clone();
            node.store().wl().set_hardstate(HardState { commit, ..state });
        }
        sent.append(&mut light.take_messages());
        node.advance_apply();
    }
}
