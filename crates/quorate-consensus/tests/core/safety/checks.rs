//! What must hold after each step, and once everything is healed.

use super::World;
use bytes::Bytes;
use quorate_consensus::{EntryKind, Event, MemberId, Proposal, RoleState};

impl World {
    pub(super) fn check(&mut self) {
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

    /// After a crash: the disk has what was shown, or the beginning of it, and nothing in its place.
    pub(super) fn check_what_is_left(&self, id: MemberId) {
        let member = &self.members[&id];
        let (left, shown) = (&member.disk.durable, member.shown);
        let from = left.snapshot.last.index;
        let all = self.committed.range(from + 1..).take_while(|(index, _)| **index <= shown);
        for (index, (entry, _)) in all {
            let found = left.get(*index);
            assert!(
                found.is_none_or(|found| found == entry),
                "{id:?} was shown {index}, and has another entry there"
            );
        }
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
    pub(super) fn heal_and_converge(&mut self) {
        self.heal();
        let ids: Vec<MemberId> = self.members.keys().copied().collect();
        for id in &ids {
            // Failed disks are replaced by a restart.
            let member = self.members.get_mut(id).unwrap();
            member.crash(0);
            self.check_what_is_left(*id);
            let member = self.members.get_mut(id).unwrap();
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
