//! What the core costs: three members in one thread, disks and links that take no time. Prints
//! nanoseconds of all three cores together for each committed entry.
//!
//! `cargo run --release -p quorate-consensus --example throughput`

use bytes::Bytes;
use quorate_consensus::{
    Config, Consensus, Effects, EntryKind, Event, MemberId, MemberInfo, MemberRole, Options,
    Proposal, Restored, SnapshotMeta,
};
use std::collections::BTreeMap;
use std::time::Instant;

const ENTRIES: usize = 1 << 20;
const PAYLOAD_BYTES: usize = 400;

fn main() {
    for batch in [1, 16, 256] {
        let mut group = Group::new();
        group.feed(0, 5000, Event::Tick);
        let payload = Bytes::from(vec![0; PAYLOAD_BYTES]);
        let start = Instant::now();
        for _ in 0..ENTRIES / batch {
            group.feed(
                0,
                5001,
                Event::Propose(vec![Proposal::new(EntryKind::Data, payload.clone()); batch]),
            );
        }
        let per_entry = start.elapsed().as_nanos() as usize / ENTRIES;
        let commit = group.cores[2].status(5001).commit;
        println!("batches of {batch:>3}: {per_entry:>5} ns an entry ({commit} committed)");
    }
}

struct Group {
    cores: Vec<Consensus>,
    /// Events under way, for each member.
    inbox: Vec<(usize, Event)>,
    effects: Effects,
}

impl Group {
    fn new() -> Self {
        let info = MemberInfo::new(MemberRole::Voter, "", "");
        let members: BTreeMap<_, _> = (0..3).map(|id| (MemberId(id), info.clone())).collect();
        let config = Config { members, ..Config::default() };
        let core = |id: u64| {
            let snapshot = SnapshotMeta { config: config.clone(), ..SnapshotMeta::default() };
            let restored = Restored { snapshot, ..Restored::default() };
            Consensus::new(Options::new(MemberId(id.into()), id), restored, 0)
        };
        let cores = (0..3).map(core).collect();
        Self { cores, inbox: Vec::new(), effects: Effects::default() }
    }

    /// One event and everything that follows from it.
    fn feed(&mut self, member: usize, now_ms: u64, event: Event) {
        self.inbox.push((member, event));
        while !self.inbox.is_empty() {
            for (member, event) in std::mem::take(&mut self.inbox) {
                let effects = &mut self.effects;
                self.cores[member].step(now_ms, event, effects).expect("accepted");
                let sent = effects.messages.drain(..);
                self.inbox.extend(sent.map(|m| (m.to.0 as usize, Event::Receive(m))));
                if let Some(last) = effects.append.last() {
                    self.inbox.push((member, Event::Persisted(last.position())));
                }
                effects.clear();
            }
        }
    }
}
