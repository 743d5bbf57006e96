//! Random schedules over a small group: delivery in any order, loss, duplicates, partitions, slow
//! disks, crashes that lose what was not synced, membership changes, snapshots. After each step:
//! one leader a term, logs that match, committed entries that never change; at the end, healed, the
//! group must make progress.
//!
//! One seed replays one history: `SAFETY_SEEDS=17..18 cargo test -p quorate-consensus --test core safety`.

mod actions;
mod checks;

use crate::support::{voter, Member, Rng};
use actions::{Weighted, ACTIONS};
use quorate_consensus::{Config, Entry, EntryKind, Event, Index, MemberId, Message, Options, Term};
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
            // Followers count commits themselves, or wait for the leader's word.
            level: if seed % 3 == 0 { 1 } else { quorate_consensus::LEVEL },
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
}
