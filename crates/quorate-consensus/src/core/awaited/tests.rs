use super::super::tests::{id, member, step, voters};
use crate::config::Config;
use crate::effects::Effects;
use crate::event::Event;
use crate::level::EVERYBODY_COUNTS;
use crate::message::{Message, MessageBody};
use crate::rng::Rng;
use crate::types::{EntryKind, Index, LogPosition, MemberId, Proposal};
use crate::Consensus;
use bytes::Bytes;
use std::collections::BTreeMap;

const NOW_MS: u64 = 5000;

/// Member 1, leading 2 and 3; its first entry is committed, and they know it.
fn leader() -> Consensus {
    let mut leader = member(Config { level: EVERYBODY_COUNTS, ..voters(&[1, 2, 3]) });
    step(&mut leader, NOW_MS, Event::Tick);
    for granted in [
        MessageBody::PreVoteReply { granted: true },
        MessageBody::VoteReply { granted: true },
        MessageBody::AppendReply { matched: 1 },
    ] {
        step(&mut leader, NOW_MS, says(2, granted));
    }
    step(&mut leader, NOW_MS, acknowledged(3, 1));
    persisted(&mut leader, 1);
    assert!(leader.is_leader() && leader.commit == 1);
    leader
}

fn says(from: u128, body: MessageBody) -> Event {
    Event::Receive(Message { from: id(from), to: id(1), term: 1, body })
}

fn acknowledged(from: u128, matched: Index) -> Event {
    says(from, MessageBody::AppendReply { matched })
}

fn persisted(leader: &mut Consensus, index: Index) -> Effects {
    step(leader, NOW_MS, Event::Persisted(LogPosition { term: 1, index }))
}

fn one(kind: EntryKind) -> Vec<Proposal> {
    vec![Proposal::new(kind, Bytes::from_static(b"data"))]
}

/// A hundred batches, each proposed before the one before is on disk and acknowledged, by the followers in this order:
/// how many messages each of the two got.
fn messages_to_each(order: [u128; 2], propose: impl Fn(Vec<Proposal>) -> Event) -> [usize; 2] {
    let mut leader = leader();
    let mut messages = Vec::new();
    for batch in 2..102 {
        let mut steps = vec![propose(one(EntryKind::Data))];
        if batch > 2 {
            let before = batch - 1;
            steps.push(Event::Persisted(LogPosition { term: 1, index: before }));
            steps.extend(order.map(|from| acknowledged(from, before)));
        }
        for event in steps {
            messages.append(&mut step(&mut leader, NOW_MS, event).messages);
        }
    }
    [2, 3].map(|to| messages.iter().filter(|message| message.to == id(to)).count())
}

#[test]
fn who_waits_for_nothing_gets_one_message_a_batch() {
    assert_eq!(messages_to_each([2, 3], Event::Propose), [100, 100]);
}

#[test]
fn whose_clients_wait_is_told_at_once_what_the_leader_has_on_disk() {
    let of_third = |batch| Event::ProposeFor(id(3), batch);
    assert_eq!(messages_to_each([3, 2], of_third), [100, 199], "the last batch is on no disk yet");
    let guest = |batch| Event::ProposeFor(id(9), batch);
    assert_eq!(messages_to_each([2, 3], guest), [100, 100]);
}

#[test]
fn whose_clients_wait_and_whose_disk_is_the_last_one_is_also_told_of_the_commit() {
    let of_third = |batch| Event::ProposeFor(id(3), batch);
    assert_eq!(messages_to_each([2, 3], of_third), [100, 298]);
}

#[test]
fn the_last_batch_is_told_at_once() {
    let mut leader = leader();
    step(&mut leader, NOW_MS, Event::Propose(one(EntryKind::Data)));
    let shown = persisted(&mut leader, 2).messages;
    assert!(shown.iter().all(|message| message.body == MessageBody::AppendReply { matched: 2 }));
    assert_eq!(shown.len(), 2);
    // Where the others are faster than the leader's own disk, it is the commit.
    step(&mut leader, NOW_MS, Event::Propose(one(EntryKind::Data)));
    step(&mut leader, NOW_MS, acknowledged(2, 3));
    let told = step(&mut leader, NOW_MS, acknowledged(3, 3)).messages;
    let heartbeat = MessageBody::Heartbeat { commit: 3, round: 0 };
    assert_eq!(told.iter().filter(|message| message.body == heartbeat).count(), 2);
}

#[test]
fn all_are_told_at_once_of_what_is_no_data() {
    let mut leader = leader();
    for kind in [EntryKind::View, EntryKind::Data] {
        step(&mut leader, NOW_MS, Event::Propose(one(kind)));
    }
    assert_eq!(persisted(&mut leader, 2).messages.len(), 2);
}

/// What a follower was told: committed, or on the leader's disk.
#[derive(Default)]
struct Told(BTreeMap<MemberId, Index>);

impl Told {
    fn read(&mut self, messages: Vec<Message>) {
        for message in messages {
            let index = match message.body {
                MessageBody::Append { prev, entries, commit } => {
                    commit.min(prev.index + entries.len() as Index)
                }
                MessageBody::Heartbeat { commit, .. } => commit,
                MessageBody::AppendReply { matched } => matched,
                _ => continue,
            };
            let known = self.0.entry(message.to).or_default();
            *known = index.max(*known);
        }
    }
}

/// Whatever comes first: syncs, acknowledgements of either, full windows, more entries.
#[test]
fn nobody_misses_more_than_the_last_step_of_the_commit() {
    let mut withheld = 0;
    for seed in 0..300 {
        let (mut rng, mut leader, mut told) = (Rng::new(seed), leader(), Told::default());
        leader.options.inflight_messages_max = rng.between(1, 7) as usize;
        let (mut before, mut commit) = (1, 1);
        for _ in 0..400 {
            let event = something_happens(&mut leader, &mut rng, seed % 2 == 0);
            told.read(step(&mut leader, NOW_MS, event).messages);
            if leader.commit > commit {
                (before, commit) = (commit, leader.commit);
            }
            for to in [2, 3].map(id) {
                let peer = leader.peer_mut(to).expect("a follower");
                let (sent, waits) = (peer.end_sent(), peer.awaited > peer.commit_sent);
                let known = told.0.get(&to).copied().unwrap_or(1);
                withheld += usize::from(known < commit.min(sent));
                let due = if sent <= commit || waits { commit } else { before };
                assert!(known >= due.min(sent), "seed {seed}: {known} of {before}, {commit}");
            }
        }
    }
    assert!(withheld > 0);
}

fn something_happens(leader: &mut Consensus, rng: &mut Rng, forwards: bool) -> Event {
    let (persisted, last) = (leader.persisted(), leader.log.last().index);
    let follower = rng.between(2, 4).into();
    let peer = leader.peer_mut(id(follower)).expect("a follower");
    let (matched, sent) = (peer.matched, peer.end_sent());
    match rng.between(0, 8) {
        0..=2 => Event::Propose(one(EntryKind::Data)),
        3 if forwards => Event::ProposeFor(id(follower), one(EntryKind::Data)),
        3 | 4 => {
            let index = rng.between(persisted, last + 1);
            Event::Persisted(LogPosition { term: 1, index })
        }
        _ => acknowledged(follower, rng.between(matched, sent + 1)),
    }
}
