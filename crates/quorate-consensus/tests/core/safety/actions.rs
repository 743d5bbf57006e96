//! What happens to the group: each takes its details from the seed.

use super::{World, MEMBERS};
use crate::support::{learner, voter};
use bytes::Bytes;
use quorate_consensus::{
    ConfigChange, EntryKind, Event, MemberId, MemberInfo, MemberRole, PriorityRule, Proposal, Rules,
};

/// An action and how often it happens.
pub(super) type Weighted = (u64, fn(&mut World));

/// How often each action happens, of 1000 or so.
pub(super) const ACTIONS: [Weighted; 18] = [
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

impl World {
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
        let event = match self.rng.percent(20) {
            true => Event::ProposeFor(self.any(), batch),
            false => Event::Propose(batch),
        };
        self.feed(id, event);
        if self.rng.percent(2) {
            let awaited = self.rng.percent(50);
            self.feed(id, Event::Awaited(awaited));
        }
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
        let priority = [0, 20, 50, 50, 50, 90][self.rng.below(6) as usize];
        let zone = ["x", "y"][self.rng.below(2) as usize].into();
        MemberInfo { role, priority, zone, ..voter("v") }
    }

    fn change_rules(&mut self) {
        let id = self.any();
        let zones_min = self.rng.below(3) as u8;
        let priorities =
            if self.rng.percent(30) { PriorityRule::Forced } else { PriorityRule::Optimistic };
        let rules = Rules { zones_min, priorities, ..Rules::default() };
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
        self.check_what_is_left(id);
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

    pub(super) fn heal(&mut self) {
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
}
