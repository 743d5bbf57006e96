//! Whatever a peer (or a confused driver) sends, a member neither panics nor breaks its own
//! invariants: the commit index never goes back or past the log, committed entries stay.
//!
//! One seed replays one history: `HOSTILE_SEEDS=17..18 cargo test -p quorate-consensus --test core hostile`.

use crate::support::{learner, voter, Member, Rng};
use bytes::Bytes;
use quorate_consensus::{
    Config, ConfigChange, Entry, EntryKind, Event, LogPosition, MemberId, Message, MessageBody,
    Options, Proposal, SnapshotMeta,
};

#[test]
fn absurd_events_neither_panic_nor_undo_commits() {
    let seeds = std::env::var("HOSTILE_SEEDS").unwrap_or_else(|_| "0..400".into());
    let (from, to) = seeds.split_once("..").expect("HOSTILE_SEEDS=FROM..TO");
    for seed in from.parse::<u64>().unwrap()..to.parse().unwrap() {
        let outcome = std::panic::catch_unwind(|| Attack::new(seed).run());
        if let Err(panic) = outcome {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

struct Attack {
    rng: Rng,
    victim: Member,
    now_ms: u64,
    committed: Vec<Entry>,
}

impl Attack {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let config = Config {
            members: (1..=1 + rng.below(3)).map(|id| (member(id), voter("v"))).collect(),
            ..Config::default()
        };
        let options = Options {
            append_bytes_max: rng.below(100) as usize,
            inflight_bytes_max: rng.below(300) as usize,
            inflight_messages_max: rng.below(3) as usize,
            recent_bytes_max: rng.below(300) as usize,
            lease_reads: rng.percent(50),
            heartbeat_interval_ms: rng.below(300),
            election_timeout_ms: rng.below(1500),
            clock_drift_ms: rng.below(2000),
            ..Options::new(member(1), seed)
        };
        let mut victim = Member::new(options, config);
        victim.start(0);
        Self { rng, victim, now_ms: 0, committed: Vec::new() }
    }

    fn run(&mut self) {
        for _ in 0..600 {
            self.now_ms += if self.rng.percent(2) { 5000 } else { self.rng.below(100) };
            let event = self.event();
            // A refusal is as good as anything.
            let _refusal = self.victim.step(self.now_ms, event).err();
            if self.rng.percent(40) {
                self.victim.disk.sync(self.rng.below(4) as usize);
                if self.rng.percent(80) {
                    self.victim.report(self.now_ms);
                }
            }
            self.check();
        }
    }

    fn check(&mut self) {
        let view = &self.victim.disk.written;
        let base = view.snapshot.last.index;
        for entry in self.committed.iter().filter(|entry| entry.index > base) {
            assert_eq!(view.get(entry.index), Some(entry), "a committed entry changed");
        }
        let known = self.committed.last().map_or(0, |entry| entry.index);
        let news = view.entries.iter();
        let news = news.filter(|e| e.index > known && e.index <= self.victim.commit);
        self.committed.extend(news.cloned().collect::<Vec<_>>());
        let status = self.victim.core.as_ref().expect("running").status(self.now_ms);
        assert_eq!(status.last, view.last());
        assert!(status.commit <= status.last.index && status.persisted <= status.last.index);
        self.victim.outbox.clear();
        self.victim.reads.clear();
        if self.rng.percent(1) {
            self.victim.crash(1);
            self.victim.start(self.now_ms);
            // What a forged leader declared committed may have been on no disk.
            self.committed.clear();
        }
    }

    fn event(&mut self) -> Event {
        match self.rng.below(20) {
            0..=9 => Event::Receive(self.message()),
            10 | 11 => Event::Tick,
            12 => {
                let kinds = [EntryKind::Data, EntryKind::Noop, EntryKind::Config, EntryKind::View];
                let count = self.rng.below(3);
                let batch = (0..count).map(|_| {
                    let data = vec![0; self.rng.below(50) as usize];
                    Proposal::new(kinds[self.rng.below(4) as usize], Bytes::from(data))
                });
                Event::Propose(batch.collect())
            }
            13 => Event::Persisted(self.position()),
            14 => {
                let (to, from) = (self.peer(), self.number());
                match self.victim.fetches.pop().filter(|_| self.rng.percent(70)) {
                    Some(fetch) => {
                        let prev = LogPosition { term: 1, index: fetch.from - 1 };
                        let entries = self.entries(prev);
                        Event::Fetched { to: fetch.to, from: fetch.from, entries }
                    }
                    None if self.rng.percent(50) => {
                        let prev = self.position();
                        Event::Fetched { to, from, entries: self.entries(prev) }
                    }
                    None => Event::FetchUnavailable { to },
                }
            }
            15 => {
                let meta = SnapshotMeta { last: self.position(), config: self.config() };
                Event::InstallSnapshot { from: self.peer(), term: self.term(), meta }
            }
            16 => {
                let (to, last) = (self.peer(), self.number());
                Event::SnapshotSent { to, last, ok: self.rng.percent(50) }
            }
            17 => Event::ReadIndex { ctx: self.rng.below(3) },
            18 => {
                let put = vec![(self.peer(), voter("v")), (self.peer(), learner("l"))];
                let remove = vec![self.peer()];
                Event::ChangeMembership(ConfigChange::Update { put, remove })
            }
            _ => match self.rng.below(40) {
                0 => Event::StepDown,
                1 => {
                    let keep = vec![member(1), self.peer()];
                    Event::ForceQuorum { keep, audit: "force".into() }
                }
                2 => Event::HostHangs(self.rng.percent(50)),
                3..=10 => Event::TransferLeadership(self.peer()),
                11..=13 => Event::SnapshotWelcome(self.peer()),
                14 => Event::Heard(self.peer()),
                15..=20 => Event::Compacted(self.harmless_position(), self.config()),
                21..=30 => Event::Connected(self.peer()),
                _ => Event::Unreachable(self.peer()),
            },
        }
    }

    fn message(&mut self) -> Message {
        let body = match self.rng.below(18) {
            0 => MessageBody::PreVote { last: self.position() },
            1 => MessageBody::PreVoteReply { granted: self.rng.percent(80) },
            2 => MessageBody::Vote { last: self.position(), transfer: self.rng.percent(50) },
            3 => MessageBody::VoteReply { granted: self.rng.percent(80) },
            4..=6 => {
                let prev = self.position();
                let entries = self.entries(prev);
                MessageBody::Append { prev, entries, commit: self.number() }
            }
            7 => MessageBody::AppendReply { matched: self.number() },
            8 => MessageBody::AppendReject { rejected: self.number(), hint: self.position() },
            9 => MessageBody::Heartbeat { commit: self.number(), round: self.number() },
            10 | 11 => {
                let round = self.number();
                MessageBody::HeartbeatReply { round, persisted_last: self.number() }
            }
            12 => MessageBody::ReadIndex { ctx: self.number() },
            13 => MessageBody::ReadIndexReply { ctx: self.number(), index: self.number() },
            14 => MessageBody::TimeoutNow,
            15 => MessageBody::ForcedVote { last: self.position() },
            16 => MessageBody::ForcedVoteReply {
                granted: self.rng.percent(80),
                commit: self.position(),
            },
            _ => MessageBody::SnapshotReply { matched: self.number() },
        };
        let to = if self.rng.percent(98) { member(1) } else { self.peer() };
        Message { from: self.peer(), to, term: self.term(), body }
    }

    fn entries(&mut self, prev: LogPosition) -> Vec<Entry> {
        let (mut index, mut term) = (prev.index, prev.term);
        (0..self.rng.below(5))
            .map(|_| {
                index = if self.rng.percent(97) { index.wrapping_add(1) } else { self.number() };
                term = if self.rng.percent(90) { term } else { self.term() };
                let kind = match self.rng.below(10) {
                    0 => EntryKind::Config,
                    1 => EntryKind::Noop,
                    _ => EntryKind::Data,
                };
                let data = match kind {
                    EntryKind::Config if self.rng.percent(80) => self.config().encode(),
                    _ => Bytes::from(vec![1; self.rng.below(40) as usize]),
                };
                Entry::new(index, term, kind, data)
            })
            .collect()
    }

    fn config(&mut self) -> Config {
        let members = (1..=self.rng.below(5)).filter_map(|id| {
            let info = if self.rng.percent(70) { voter("v") } else { learner("l") };
            self.rng.percent(80).then_some((member(id), info))
        });
        let members = members.collect();
        let outgoing = (1..=self.rng.below(4)).filter(|_| self.rng.percent(20)).map(member);
        Config { members, outgoing: outgoing.collect(), ..Config::default() }
    }

    fn peer(&mut self) -> MemberId {
        member(self.rng.below(6))
    }

    /// Mostly near what the victim has, sometimes absurd.
    fn number(&mut self) -> u64 {
        let last = self.victim.disk.written.last().index;
        match self.rng.below(20) {
            0 => u64::MAX - self.rng.below(3),
            1 => (1 << 62) + self.rng.below(3) - 1,
            2 => self.rng.next(),
            _ => (last + self.rng.below(4)).saturating_sub(2),
        }
    }

    fn term(&mut self) -> u64 {
        let core = self.victim.core.as_ref().expect("running");
        let term = core.status(self.now_ms).term;
        match self.rng.below(400) {
            0 => u64::MAX - self.rng.below(2),
            1 => (1 << 62) - self.rng.below(2),
            2..=30 => term.saturating_add(1),
            31..=60 => term.saturating_sub(1),
            _ => term,
        }
    }

    fn position(&mut self) -> LogPosition {
        let index = self.number();
        match self.victim.disk.written.get(index) {
            Some(entry) if self.rng.percent(70) => entry.position(),
            _ => LogPosition { term: self.term(), index },
        }
    }

    /// Reports of the own disk are true, but may be old: what is compacted here is not in use.
    fn harmless_position(&mut self) -> LogPosition {
        LogPosition { term: self.term(), index: self.victim.commit + 1 + self.rng.below(9) }
    }
}

fn member(id: u64) -> MemberId {
    MemberId(u128::from(id) << 96)
}
