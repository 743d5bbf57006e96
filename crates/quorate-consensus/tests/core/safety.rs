//! Random schedules over a small group: delivery in any order, loss, duplicates, partitions, slow
//! disks, crashes that lose what was not synced, membership changes, snapshots. After each step:
//! one leader a term, logs that match, committed entries that never change; at the end, healed, the
//! group must make progress.
//!
//! One seed replays one history: `SAFETY_SEEDS=17..18 cargo test -p quorate-consensus --test core safety`.

use crate::support::{learner, voter, Member, Rng};
use bytes::Bytes;
use quorate_consensus::{
    Config, ConfigChange, Entry, EntryKind, Event, Index, MemberId, MemberInfo, MemberRole,
    Message, Options, Proposal, RoleState, Rules, Term, WeightRule,
};
use std::collections::{BTreeMap, BTreeSet};

const STEPS: u64 = 4000;
const MEMBERS: u128 = 5;

struct World {
    rng: Rng,
    seed: u64,
    now_ms: u64,
    members: BTreeMap<MemberId, Member>,
    flight: Vec<Message>,
    cut: BTreeSet<(MemberId, MemberId)>,
    /// The committed log: what every member's must agree with, and the term of the member that
    /// committed it first.
    committed: BTreeMap<Index, (Entry, Term)>,
    leaders: BTreeMap<Term, MemberId>,
    checked: BTreeMap<MemberId, Index>,
    proposals: u64,
    next_ctx: u64,
    /// Reads under way: the highest index acknowledged anywhere when the question was asked.
    reads: BTreeMap<(MemberId, u64), Index>,
    history: Vec<String>,
    weights: Vec<Weighted>,
}

/// An action and how often it happens.
type Weighted = (u64, fn(&mut World));

/// How often each action happens, of 1000 or so.
const ACTIONS: [Weighted; 18] = [
    (300, World::deliver),
    (200, World::pass_time),
    (150, World::sync),
    (80, World::propose),
    (40, World::read),
    (20, World::change_membership),
    (6, World::change_rules),
    (6, World::hang),
    (10, World::transfer),
    (8, World::crash),
    (33, World::restart),
    (6, World::partition),
    (15, World::heal),
    (6, World::hint),
    (6, World::leader_vanishes),
    (16, World::compact),
    (1, World::fail_disk),
    (80, World::serve),
];

#[test]
fn random_schedules_keep_every_invariant() {
    let seeds = std::env::var("SAFETY_SEEDS").unwrap_or_else(|_| "0..150".into());
    let (from, to) = seeds.split_once("..").expect("SAFETY_SEEDS=FROM..TO");
    let (from, to): (u64, u64) = (from.parse().unwrap(), to.parse().unwrap());
    let mut totals = [0; 4];
    for seed in from..to {
        let figures = run(seed);
        totals.iter_mut().zip(figures).for_each(|(total, figure)| *total += figure);
    }
    let [commits, leaders, reads, configs] = totals;
    println!("{commits} commits, {leaders} leaders, {reads} reads, {configs} configurations");
}

fn run(seed: u64) -> [u64; 4] {
    let mut world = World::new(seed);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for _ in 0..STEPS {
            world.act();
            world.check();
        }
        world.heal_and_converge();
    }));
    if let Err(panic) = outcome {
        let shown = std::env::var("SAFETY_SHOWN").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
        let tail = world.history.len().saturating_sub(shown);
        eprintln!("seed {seed}, last actions:\n{}", world.history[tail..].join("\n"));
        std::panic::resume_unwind(panic);
    }
    let configs = world.committed.values().filter(|(e, _)| e.kind == EntryKind::Config).count();
    [world.committed.len() as u64, world.leaders.len() as u64, world.next_ctx, configs as u64]
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let voters = 1 + rng.below(4) as u128;
        let config = Config {
            members: (1..=voters).map(|id| (MemberId(id << 96), voter("v"))).collect(),
            ..Config::default()
        };
        let lease_reads = rng.percent(30);
        let weights = ACTIONS
            .map(|(weight, action)| (weight * [1, 2, 2, 2, 6][rng.below(5) as usize] / 2, action));
        let members = (1..=MEMBERS).map(|id| {
            let options = Options {
                append_bytes_max: 200,
                inflight_bytes_max: 600,
                inflight_messages_max: 4,
                recent_bytes_max: if seed % 2 == 0 { 1 << 20 } else { 200 },
                lease_reads,
                ..Options::new(MemberId(id << 96), seed * 100 + id as u64)
            };
            let founding = if id <= voters { config.clone() } else { Config::default() };
            let mut member = Member::new(options, founding);
            member.start(0);
            (MemberId(id << 96), member)
        });
        Self {
            seed,
            members: members.collect(),
            rng,
            now_ms: 0,
            flight: Vec::new(),
            cut: BTreeSet::new(),
            committed: BTreeMap::new(),
            leaders: BTreeMap::new(),
            checked: BTreeMap::new(),
            proposals: 0,
            next_ctx: 0,
            reads: BTreeMap::new(),
            history: Vec::new(),
            weights: weights.to_vec(),
        }
    }

    /// One random action. How often each kind happens differs from seed to seed, so that some
    /// histories are calm, some have long partitions, some many elections.
    fn act(&mut self) {
        let total = self.weights.iter().map(|(weight, _)| weight).sum();
        let mut dice = self.rng.below(total);
        for at in 0..self.weights.len() {
            let (weight, action) = self.weights[at];
            if dice < weight {
                return action(self);
            }
            dice -= weight;
        }
    }

    fn any(&mut self) -> MemberId {
        MemberId(u128::from(1 + self.rng.below(MEMBERS as u64)) << 96)
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        self.history.push(format!("{:>7} ms  {}", self.now_ms, text()));
    }

    fn feed(&mut self, id: MemberId, event: Event) {
        self.note(|| format!("{id:?} <- {event:?}"));
        let now_ms = self.now_ms;
        if let Some(member) = self.members.get_mut(&id) {
            let outcome = member.step(now_ms, event);
            let sent = std::mem::take(&mut member.outbox);
            if let Err(error) = outcome {
                self.note(|| format!("    refused: {error}"));
            }
            self.flight.extend(sent);
        }
    }

    fn deliver(&mut self) {
        for _ in 0..1 + self.rng.below(12) {
            if self.flight.is_empty() {
                return;
            }
            // Mostly in order, sometimes not.
            let span = if self.rng.percent(80) { 3 } else { self.flight.len() as u64 };
            let at = self.rng.below(span.min(self.flight.len() as u64)) as usize;
            let message =
                if self.rng.percent(3) { self.flight[at].clone() } else { self.flight.remove(at) };
            let lost = self.rng.percent(4) || self.cut.contains(&(message.from, message.to));
            if !lost {
                self.feed(message.to, Event::Receive(message));
            }
        }
    }

    fn pass_time(&mut self) {
        self.now_ms += self.rng.below(40);
        let ids: Vec<MemberId> = self.members.keys().copied().collect();
        for id in ids {
            if self.rng.percent(90) {
                self.feed(id, Event::Tick);
            }
        }
    }

    fn sync(&mut self) {
        let id = self.any();
        let member = self.members.get_mut(&id).unwrap();
        let count = 1 + self.rng.below(1 + member.disk.unsynced() as u64) as usize;
        member.disk.sync(count);
        if self.rng.percent(80) {
            while let Some(at) = self.members.get_mut(&id).unwrap().disk.next_report() {
                self.feed(id, Event::Persisted(at));
            }
        }
    }

    fn propose(&mut self) {
        let id = self.any();
        let batch = (0..1 + self.rng.below(5)).map(|_| {
            self.proposals += 1;
            let size = 8 + self.rng.below(60) as usize;
            let mut data = vec![0; size];
            data[..8].copy_from_slice(&self.proposals.to_le_bytes());
            Proposal::new(EntryKind::Data, Bytes::from(data))
        });
        let batch = batch.collect();
        self.feed(id, Event::Propose(batch));
    }

    fn read(&mut self) {
        let id = self.any();
        if !self.members[&id].running() {
            return;
        }
        self.next_ctx += 1;
        let known = self.members.values().map(|member| member.commit).max().unwrap_or(0);
        self.reads.insert((id, self.next_ctx), known);
        let ctx = self.next_ctx;
        self.feed(id, Event::ReadIndex { ctx });
    }

    fn change_membership(&mut self) {
        let id = self.any();
        let (mut put, mut remove) = (Vec::new(), Vec::new());
        for other in 1..=MEMBERS {
            let other = MemberId(other << 96);
            match self.rng.below(10) {
                0..=2 => put.push((other, self.some_voter())),
                3 => put.push((other, learner("l"))),
                4 => remove.push(other),
                _ => {}
            }
        }
        self.feed(id, Event::ChangeMembership(ConfigChange::Update { put, remove }));
    }

    fn some_voter(&mut self) -> MemberInfo {
        let role = if self.rng.percent(20) { MemberRole::Logger } else { MemberRole::Voter };
        let weight = [0, 20, 50, 50, 50, 90][self.rng.below(6) as usize];
        let zone = ["x", "y"][self.rng.below(2) as usize].into();
        MemberInfo { role, weight, zone, ..voter("v") }
    }

    fn change_rules(&mut self) {
        let id = self.any();
        let zones_min = self.rng.below(3) as u8;
        let weights =
            if self.rng.percent(30) { WeightRule::Forced } else { WeightRule::Optimistic };
        let rules = Rules { zones_min, weights, ..Rules::default() };
        self.feed(id, Event::ChangeMembership(ConfigChange::Rules(rules)));
    }

    fn hang(&mut self) {
        let (id, hangs) = (self.any(), self.rng.percent(50));
        self.feed(id, Event::HostHangs(hangs));
    }

    fn transfer(&mut self) {
        let (id, to) = (self.any(), self.any());
        self.feed(id, Event::TransferLeadership(to));
    }

    fn crash(&mut self) {
        let id = self.any();
        self.note(|| format!("{id:?} crashes"));
        self.kill(id);
    }

    fn kill(&mut self, id: MemberId) {
        let reached = self.rng.below(3) as usize;
        self.members.get_mut(&id).unwrap().crash(reached);
        self.reads.retain(|(asker, _), _| *asker != id);
        self.checked.remove(&id);
    }

    fn restart(&mut self) {
        let id = self.any();
        let now_ms = self.now_ms;
        let member = self.members.get_mut(&id).unwrap();
        if !member.running() {
            member.start(now_ms);
            self.note(|| format!("{id:?} restarts"));
        }
    }

    fn partition(&mut self) {
        let side = self.rng.next();
        let one_way = self.rng.percent(30);
        for a in 1..=MEMBERS {
            for b in 1..=MEMBERS {
                let (from, to) = (side >> a & 1, side >> b & 1);
                if from < to || (from > to && !one_way) {
                    self.cut.insert((MemberId(a << 96), MemberId(b << 96)));
                }
            }
        }
    }

    fn heal(&mut self) {
        self.cut.clear();
    }

    /// Everybody believes at once that a member is gone, rightly or not: several stand together.
    fn leader_vanishes(&mut self) {
        let peer = self.any();
        match self.rng.below(3) {
            0 => {
                self.note(|| format!("{peer:?} crashes"));
                self.kill(peer);
            }
            1 => {
                self.note(|| format!("{peer:?} is cut off"));
                let others = self.members.keys().flat_map(|other| [(peer, *other), (*other, peer)]);
                self.cut.extend(others.collect::<Vec<_>>());
            }
            _ => {}
        }
        let ids: Vec<MemberId> = self.members.keys().copied().collect();
        for id in ids {
            if self.rng.percent(80) {
                let again = self.rng.percent(20);
                self.feed(
                    id,
                    if again { Event::Connected(peer) } else { Event::Unreachable(peer) },
                );
            }
        }
    }

    /// True or false: a reset connection proves nothing.
    fn hint(&mut self) {
        let (id, peer) = (self.any(), self.any());
        self.feed(id, Event::Unreachable(peer));
        if self.rng.percent(20) {
            self.feed(id, Event::SnapshotWelcome(peer));
        }
    }

    fn compact(&mut self) {
        let id = self.any();
        let member = self.members.get_mut(&id).unwrap();
        let Some(meta) = member.snapshot().filter(|_| member.running()) else {
            return;
        };
        member.disk.compact(meta.last);
        self.feed(id, Event::Compacted(meta.last, meta.config));
    }

    fn fail_disk(&mut self) {
        let id = self.any();
        self.feed(id, Event::StepDown);
    }

    /// Drivers at work: fetches, snapshots.
    fn serve(&mut self) {
        let id = self.any();
        let now_ms = self.now_ms;
        let member = self.members.get_mut(&id).unwrap();
        if let Some(fetch) = member.fetches.pop() {
            member.answer_fetch(now_ms, fetch);
            let sent = std::mem::take(&mut member.outbox);
            self.flight.extend(sent);
        }
        let member = self.members.get_mut(&id).unwrap();
        if let Some(to) = member.snapshots.pop() {
            let meta = member.snapshot();
            let term = member.core.as_ref().unwrap().status(now_ms).term;
            let Some(meta) = meta.filter(|_| self.rng.percent(80)) else {
                return self.feed(id, Event::SnapshotSent { to, last: 0, ok: false });
            };
            let last = meta.last.index;
            if self.members[&to].running() && !self.cut.contains(&(id, to)) {
                self.feed(to, Event::InstallSnapshot { from: id, term, meta });
            }
            self.feed(id, Event::SnapshotSent { to, last, ok: true });
        }
    }

    fn check(&mut self) {
        let now_ms = self.now_ms;
        for (id, member) in &mut self.members {
            let Some(core) = &member.core else { continue };
            let status = core.status(now_ms);
            if let RoleState::Leader { term } = status.role {
                let leader = *self.leaders.entry(term).or_insert(*id);
                assert_eq!(leader, *id, "two leaders in term {term}");
            }
            assert_eq!(status.last, member.disk.written.last(), "core and log disagree");
            // A snapshot is durable before it replaces the log.
            let durable = member.disk.persisted().max(member.disk.written.snapshot.last.index);
            assert!(
                status.persisted <= durable,
                "{id:?} counts {} as persisted, {durable} is",
                status.persisted
            );
            let view = &member.disk.written;
            let from = self.checked.get(id).copied().unwrap_or(0).max(view.snapshot.last.index);
            for index in from + 1..=member.commit {
                let entry = view.get(index).expect("a committed entry is in the log");
                let first = || (entry.clone(), status.term);
                let (committed, _) = self.committed.entry(index).or_insert_with(first);
                assert_eq!(committed, entry, "{id:?} committed something else at {index}");
            }
            self.checked.insert(*id, member.commit);
            for ready in member.reads.drain(..) {
                let known = self.reads.remove(&(*id, ready.ctx)).expect("answered once");
                if let Some(index) = ready.index {
                    assert!(index >= known, "{id:?} read {index}, {known} was acknowledged");
                }
            }
        }
        self.check_leader_completeness();
    }

    /// A leader's log has everything that was committed in its term or before.
    fn check_leader_completeness(&self) {
        for member in self.members.values() {
            let Some(core) = member.core.as_ref().filter(|core| core.is_leader()) else { continue };
            let term = core.status(self.now_ms).term;
            let view = &member.disk.written;
            for (index, (entry, committed_in)) in
                self.committed.range(view.snapshot.last.index + 1..)
            {
                assert!(
                    *committed_in > term || view.get(*index) == Some(entry),
                    "the leader of term {term} lacks entry {index}, committed in {committed_in}"
                );
            }
        }
    }

    /// Liveness: with everything healed the group elects, serves, and brings all members along.
    fn heal_and_converge(&mut self) {
        self.heal();
        let ids: Vec<MemberId> = self.members.keys().copied().collect();
        for id in &ids {
            // Failed disks are replaced by a restart.
            let member = self.members.get_mut(id).unwrap();
            member.crash(0);
            member.start(self.now_ms);
            self.checked.remove(id);
        }
        self.reads.clear();
        self.flight.clear();
        let before = self.committed.len();
        let mut proposed = 0;
        for _ in 0..4000 {
            self.settle(&ids);
            self.check();
            self.now_ms += 10;
            let leader = ids.iter().find(|id| {
                let core = self.members[id].core.as_ref().unwrap();
                core.is_leader() && core.status(self.now_ms).config.may_lead(**id)
            });
            if let (Some(leader), true) = (leader, proposed < 5) {
                proposed += 1;
                self.feed(
                    *leader,
                    Event::Propose(vec![Proposal::new(EntryKind::Data, Bytes::from("last"))]),
                );
            }
            if proposed == 5 && self.converged() {
                assert!(self.committed.len() > before);
                return;
            }
        }
        let statuses: Vec<_> = ids
            .iter()
            .map(|id| self.members[id].core.as_ref().unwrap().status(self.now_ms))
            .collect();
        panic!("seed {}: no progress after healing: {statuses:#?}", self.seed);
    }

    fn settle(&mut self, ids: &[MemberId]) {
        for id in ids {
            self.feed(*id, Event::Tick);
        }
        for _ in 0..20 {
            for message in std::mem::take(&mut self.flight) {
                self.feed(message.to, Event::Receive(message));
            }
            for id in ids {
                let member = self.members.get_mut(id).unwrap();
                member.disk.sync(usize::MAX);
                while let Some(at) = self.members.get_mut(id).unwrap().disk.next_report() {
                    self.feed(*id, Event::Persisted(at));
                }
                let now_ms = self.now_ms;
                let member = self.members.get_mut(id).unwrap();
                for fetch in std::mem::take(&mut member.fetches) {
                    member.answer_fetch(now_ms, fetch);
                }
                self.flight.append(&mut self.members.get_mut(id).unwrap().outbox);
                for to in std::mem::take(&mut self.members.get_mut(id).unwrap().snapshots) {
                    self.send_snapshot(*id, to);
                }
            }
        }
    }

    fn send_snapshot(&mut self, id: MemberId, to: MemberId) {
        let member = &self.members[&id];
        let term = member.core.as_ref().unwrap().status(self.now_ms).term;
        let meta = member.snapshot().expect("a durable committed prefix");
        let last = meta.last.index;
        self.feed(to, Event::InstallSnapshot { from: id, term, meta });
        self.feed(id, Event::SnapshotSent { to, last, ok: true });
    }

    /// All members of the configuration in force have everything committed.
    fn converged(&self) -> bool {
        let Some(last) = self.committed.last_key_value().map(|(index, _)| *index) else {
            return false;
        };
        let now_ms = self.now_ms;
        let leader = self.members.values().find_map(|member| {
            let status = member.core.as_ref()?.status(now_ms);
            matches!(status.role, RoleState::Leader { .. }).then_some(status)
        });
        let Some(leader) = leader else { return false };
        !leader.config.is_joint()
            && leader.config.may_lead(leader.id)
            && leader.commit == leader.last.index
            && leader.commit == last
            && leader.config.members.keys().all(|id| self.members[id].commit == last)
    }
}
