//! What needs a look inside. Stories with several members are in `tests/scenarios/`.

use super::*;
use crate::config::{ConfigChange, MemberInfo, MemberRole};
use crate::effects::Fault;
use crate::level::LEVEL;
use crate::types::{Entry, EntryKind, Proposal, SnapshotMeta};
use bytes::Bytes;

pub(super) fn id(number: u128) -> MemberId {
    MemberId(number)
}

pub(super) fn voters(numbers: &[u128]) -> Config {
    let info = MemberInfo::new(MemberRole::Voter, "h:1", "n");
    let members = numbers.iter().map(|number| (id(*number), info.clone())).collect();
    Config { members, ..Config::default() }
}

pub(super) fn member(config: Config) -> Consensus {
    let snapshot = SnapshotMeta { last: LogPosition::default(), config };
    Consensus::new(Options::new(id(1), 7), Restored { snapshot, ..Restored::default() }, 0)
}

pub(super) fn step(member: &mut Consensus, now_ms: u64, event: Event) -> Effects {
    let mut effects = Effects::default();
    member.step(now_ms, event, &mut effects).expect("accepted");
    effects
}

pub(super) fn from_peer(term: Term, body: MessageBody) -> Event {
    Event::Receive(Message { from: id(2), to: id(1), term, body })
}

/// By the second member, in its first election, to this term.
pub(super) fn elected(mut member: Consensus, term: Term) -> Consensus {
    step(&mut member, 5000, Event::Tick);
    step(&mut member, 5000, from_peer(term, MessageBody::PreVoteReply { granted: true }));
    step(&mut member, 5000, from_peer(term, MessageBody::VoteReply { granted: true }));
    assert!(member.is_leader());
    member
}

pub(super) fn leader_of_three() -> Consensus {
    let mut member = elected(member(voters(&[1, 2, 3])), 1);
    step(&mut member, 5000, from_peer(1, MessageBody::AppendReply { matched: 1 }));
    let third =
        Message { from: id(3), to: id(1), term: 1, body: MessageBody::AppendReply { matched: 1 } };
    step(&mut member, 5000, Event::Receive(third));
    member
}

#[test]
fn the_term_and_vote_leave_with_the_effects_that_rely_on_them() {
    let mut member = member(voters(&[1, 2, 3]));
    let last = LogPosition::default();
    let effects =
        step(&mut member, 3000, from_peer(4, MessageBody::Vote { last, transfer: false }));
    assert_eq!(effects.hard_state, Some(HardState { term: 4, voted_for: Some(id(2)) }));
    assert_eq!(effects.messages.len(), 1);
    // The same question again gets the same answer, and nothing to write.
    let again = step(&mut member, 3000, from_peer(4, MessageBody::Vote { last, transfer: false }));
    assert_eq!((again.hard_state, again.messages), (None, effects.messages));
}

#[test]
fn what_was_altered_in_memory_is_not_sent_again() {
    let mut leader = leader_of_three();
    let mut proposal = Proposal::new(EntryKind::Data, Bytes::from_static(b"as proposed"));
    proposal.data = Bytes::from_static(b"as\0proposed");
    step(&mut leader, 5000, Event::Propose(vec![proposal]));
    let effects = step(&mut leader, 5000, Event::Unreachable(id(2)));
    let retried = step(
        &mut leader,
        5000,
        from_peer(
            1,
            MessageBody::AppendReject { rejected: 1, hint: LogPosition { term: 1, index: 1 } },
        ),
    );
    assert_eq!(effects.fault.or(retried.fault), Some(Fault::Altered { index: 2 }));
    let sent = effects.messages.iter().chain(&retried.messages);
    let mut appends = sent.filter(|message| matches!(message.body, MessageBody::Append { .. }));
    assert_eq!(appends.next(), None);
}

#[test]
fn a_level_is_raised_one_at_a_time_and_no_higher_than_the_leader_knows() {
    let options = Options { level: 3, ..Options::new(id(1), 7) };
    let config = Config { level: 1, ..voters(&[1]) };
    let snapshot = SnapshotMeta { last: LogPosition::default(), config };
    let mut leader = Consensus::new(options, Restored { snapshot, ..Restored::default() }, 0);
    let mut change = |level| {
        let mut effects = Effects::default();
        step(&mut leader, 5000, Event::Tick);
        let last = leader.status(5000).last;
        step(&mut leader, 5000, Event::Persisted(last));
        let change = Event::ChangeMembership(ConfigChange::Level(level));
        let taken = leader.step(5000, change, &mut effects).is_ok();
        (taken, leader.status(5000).config.level)
    };
    assert_eq!(
        [3, 1, 2, 2, 3, 4].map(&mut change),
        [(false, 1), (false, 1), (true, 2), (false, 2), (true, 3), (false, 3),]
    );
}

#[test]
fn a_membership_of_a_level_that_is_not_known_stops_a_follower_before_it_takes_it() {
    let append = |config: Bytes| {
        let prev = LogPosition::default();
        let entries = vec![
            Entry::new(1, 1, EntryKind::Noop, Bytes::new()),
            Entry::new(2, 1, EntryKind::Config, config),
        ];
        from_peer(1, MessageBody::Append { prev, entries, commit: 0 })
    };
    let known = Config { level: LEVEL, ..voters(&[1, 2, 3]) };
    let newer = Config { level: LEVEL + 1, ..known.clone() };
    for (config, stops) in
        [(known.encode(), false), (newer.encode(), true), (Bytes::from_static(b"\xff"), true)]
    {
        let mut follower = member(voters(&[1, 2, 3]));
        let effects = step(&mut follower, 100, append(config));
        assert_eq!(effects.append.is_empty(), stops);
        match effects.fault {
            Some(Fault::Unreadable { index: 2, reason }) => {
                assert!(stops && reason.contains("run a release on this node"), "{reason}");
            }
            fault => assert!(fault.is_none() && !stops, "{fault:?}"),
        }
    }
}

#[test]
fn a_batch_leaves_for_disk_and_followers_in_one_step_without_copies() {
    let mut leader = leader_of_three();
    let payload = Bytes::from(vec![7; 1000]);
    let batch = vec![Proposal::new(EntryKind::Data, payload.clone()); 20];
    let effects = step(&mut leader, 5000, Event::Propose(batch));
    assert_eq!(effects.append.len(), 20);
    let sent: Vec<&Vec<Entry>> = effects
        .messages
        .iter()
        .filter_map(|message| match &message.body {
            MessageBody::Append { entries, .. } => Some(entries),
            _ => None,
        })
        .collect();
    assert_eq!(sent.len(), 2, "one message for each follower");
    for entry in sent.into_iter().flatten().chain(&effects.append) {
        assert_eq!(entry.data.as_ptr(), payload.as_ptr());
    }
}

#[test]
fn an_entry_longer_than_a_message_is_not_sent_before_it_is_known_where_the_logs_agree() {
    let mut leader = leader_of_three();
    let long = Bytes::from(vec![7; 2 << 20]);
    step(&mut leader, 5000, Event::Propose(vec![Proposal::new(EntryKind::Data, long)]));
    let reject =
        |rejected| MessageBody::AppendReject { rejected, hint: LogPosition { term: 1, index: 1 } };
    let sent = |effects: &Effects| -> Vec<(Index, usize)> {
        let bodies = effects.messages.iter().filter(|m| m.to == id(2)).map(|m| &m.body);
        let append = |body: &MessageBody| match body {
            MessageBody::Append { prev, entries, .. } => Some((prev.index, entries.len())),
            _ => None,
        };
        bodies.filter_map(append).collect()
    };
    // It answers heartbeats while the entry is on its way, or lost: it is asked where it stands, and
    // gets the entry once.
    assert_eq!(sent(&step(&mut leader, 5000, from_peer(1, reject(2)))), [(1, 0)]);
    for round in 1..4 {
        let reply = MessageBody::HeartbeatReply { round, persisted_last: 1 };
        step(&mut leader, 5000 + round * 200, Event::Tick);
        assert_eq!(sent(&step(&mut leader, 5000 + round * 200, from_peer(1, reply))), [(1, 0)]);
    }
    let found = MessageBody::AppendReply { matched: 1 };
    assert_eq!(sent(&step(&mut leader, 5700, from_peer(1, found))), [(1, 1)]);
}

#[test]
fn what_arrives_of_a_long_message_is_heard() {
    // A leader stays in office, and answers count that nobody could send yet.
    let mut leader = leader_of_three();
    for now_ms in (5200..9000).step_by(200) {
        step(&mut leader, now_ms, Event::Heard(id(2)));
        step(&mut leader, now_ms, Event::Tick);
        assert!(leader.is_leader(), "at {now_ms}");
    }
    step(&mut leader, 10_300, Event::Tick);
    assert!(!leader.is_leader());

    // A follower does not stand, and says that it hears its leader: that one only.
    let mut follower = member(voters(&[1, 2, 3]));
    step(&mut follower, 100, from_peer(1, MessageBody::Heartbeat { commit: 0, round: 1 }));
    for now_ms in (300..5000).step_by(200) {
        let effects = step(&mut follower, now_ms, Event::Heard(id(2)));
        let reply = MessageBody::HeartbeatReply { round: 0, persisted_last: 0 };
        let (from, to) = (id(1), id(2));
        assert_eq!(effects.messages, [Message { from, to, term: 1, body: reply }]);
        assert!(step(&mut follower, now_ms, Event::Tick).messages.is_empty());
        assert!(step(&mut follower, now_ms, Event::Heard(id(3))).messages.is_empty());
    }
    step(&mut follower, 7000, Event::Heard(id(3)));
    assert!(!step(&mut follower, 7000, Event::Tick).messages.is_empty(), "it asks for votes");
}

#[test]
fn effects_of_several_steps_can_be_carried_out_together() {
    let mut member = member(voters(&[1, 2, 3]));
    let mut effects = Effects::default();
    let entry = |index, term| Entry::new(index, term, EntryKind::Data, Bytes::new());
    let prev = LogPosition::default();
    for entries in [vec![entry(1, 1), entry(2, 1)], vec![entry(1, 1), entry(2, 2), entry(3, 2)]] {
        let term = entries[1].term;
        let append = MessageBody::Append { prev, entries, commit: 0 };
        member.step(0, from_peer(term, append), &mut effects).expect("accepted");
    }
    assert_eq!(effects.truncate_from, Some(2));
    let appended: Vec<_> = effects.append.iter().map(|e| (e.index, e.term)).collect();
    assert_eq!(appended, [(1, 1), (2, 2), (3, 2)]);
    assert_eq!(effects.hard_state.map(|h| h.term), Some(2));

    let last = LogPosition { term: 2, index: 9 };
    let meta = SnapshotMeta { last, config: voters(&[2]) };
    let install = Event::InstallSnapshot { from: id(2), term: 2, meta: meta.clone() };
    member.step(0, install, &mut effects).expect("accepted");
    assert_eq!((effects.reset_log.as_ref(), effects.truncate_from), (Some(&meta), None));
    assert!(effects.append.is_empty());
}

#[test]
fn a_log_ahead_of_the_term_file_forbids_a_second_vote() {
    let restored = Restored {
        hard_state: HardState { term: 2, voted_for: Some(id(3)) },
        snapshot: SnapshotMeta { last: LogPosition::default(), config: voters(&[1, 2, 3]) },
        last: LogPosition { term: 5, index: 1 },
        term_runs: vec![(1, 5)],
        ..Restored::default()
    };
    let mut member = Consensus::new(Options::new(id(1), 7), restored, 0);
    let effects = step(&mut member, 1, Event::Tick);
    assert_eq!(effects.hard_state, Some(HardState { term: 5, voted_for: None }));
}

#[test]
fn at_the_limit_of_terms_nobody_stands() {
    let restored = Restored {
        hard_state: HardState { term: TERM_MAX - 1, voted_for: None },
        snapshot: SnapshotMeta { last: LogPosition::default(), config: voters(&[1, 2, 3]) },
        ..Restored::default()
    };
    let mut member = Consensus::new(Options::new(id(1), 7), restored, 0);
    let beat = MessageBody::Heartbeat { commit: u64::MAX, round: u64::MAX };
    for term in [TERM_MAX - 1, TERM_MAX, TERM_MAX + 1] {
        step(&mut member, 0, from_peer(term, beat.clone()));
        assert_eq!((member.term(), member.leader()), (TERM_MAX - 1, None));
    }
    let effects = step(&mut member, 60_000, Event::Tick);
    assert!(effects.messages.is_empty());
}

#[test]
fn many_reads_share_a_round() {
    let mut leader = leader_of_three();
    let rounds = |effects: &Effects| {
        let beats = effects.messages.iter().filter_map(|message| match message.body {
            MessageBody::Heartbeat { round, .. } => Some(round),
            _ => None,
        });
        beats.collect::<Vec<_>>()
    };
    // Round 1, sent when it was elected, is unanswered: the reads wait for the one after it.
    for ctx in 0..100 {
        assert!(rounds(&step(&mut leader, 5001, Event::ReadIndex { ctx })).is_empty());
    }
    let reply = |round| from_peer(1, MessageBody::HeartbeatReply { round, persisted_last: 1 });
    let effects = step(&mut leader, 5002, reply(1));
    assert_eq!((rounds(&effects), effects.reads.len()), (vec![2, 2], 0));
    let effects = step(&mut leader, 5003, reply(2));
    assert_eq!((rounds(&effects), effects.reads.len()), (vec![], 100));
}

fn leader_of_two() -> Consensus {
    elected(member(voters(&[1, 2])), 1)
}

#[test]
fn one_of_two_goes_on_alone_and_the_other_can_do_nothing_without_it() {
    let mut member = leader_of_two();
    step(&mut member, 5000, Event::Persisted(LogPosition { term: 1, index: 1 }));
    assert_eq!(member.commit, 0, "the other one is needed");
    let effects = step(&mut member, 5100, Event::ContinueAlone(id(2)));
    assert_eq!(effects.hard_state, Some(HardState { term: 2, voted_for: Some(id(1)) }));
    let kinds: Vec<_> = effects.append.iter().map(|entry| (entry.term, entry.kind)).collect();
    assert_eq!(kinds, [(2, EntryKind::Noop), (2, EntryKind::Config)]);
    let effects = step(&mut member, 5100, Event::Persisted(LogPosition { term: 2, index: 3 }));
    assert_eq!(effects.commit, Some(3), "what waited for the other one, too");
    assert_eq!(member.config().voters().collect::<Vec<_>>(), [id(1)]);
    // The other one comes back with its own ideas: a later term and a log that ends before.
    let last = LogPosition { term: 1, index: 1 };
    let vote = from_peer(9, MessageBody::Vote { last, transfer: true });
    let effects = step(&mut member, 5200, vote);
    let granted = |m: &Message| matches!(m.body, MessageBody::VoteReply { granted: true });
    assert!(!effects.messages.iter().any(granted));
}

#[test]
fn one_of_three_or_with_a_learner_does_not_go_on_alone() {
    let alone = |member: &mut Consensus| {
        member.step(6000, Event::ContinueAlone(id(2)), &mut Effects::default())
    };
    assert!(alone(&mut leader_of_three()).is_err());
    let mut config = voters(&[1, 2, 3]);
    config.members.get_mut(&id(3)).unwrap().role = MemberRole::Learner;
    assert!(alone(&mut member(config)).is_err());
    assert!(alone(&mut member(voters(&[1]))).is_err());
    assert!(alone(&mut member(voters(&[1, 3]))).is_err());
    // A configuration of two that is not committed yet: the one before counts as well.
    let mut shrunk = leader_of_three();
    step(&mut shrunk, 5000, Event::Persisted(LogPosition { term: 1, index: 1 }));
    let change = ConfigChange::Update { put: Vec::new(), remove: vec![id(3)] };
    step(&mut shrunk, 5000, Event::ChangeMembership(change));
    assert!(alone(&mut shrunk).is_err());
}

#[test]
fn a_change_of_more_than_one_vote_goes_through_both_majorities() {
    let change = |votes: u8| {
        let mut member = leader_of_three();
        step(&mut member, 5000, Event::Persisted(LogPosition { term: 1, index: 1 }));
        let info = MemberInfo { votes, ..member.config().members[&id(1)].clone() };
        let put = vec![(id(1), info)];
        step(
            &mut member,
            5000,
            Event::ChangeMembership(ConfigChange::Update { put, remove: vec![] }),
        );
        member.config().clone()
    };
    assert!(!change(2).is_joint());
    assert!(!change(0).is_joint());
    let heavy = change(3);
    assert_eq!(heavy.outgoing, [id(1), id(2), id(3)]);
    assert_eq!(heavy.votes().collect::<Vec<_>>(), [id(1), id(1), id(1), id(2), id(3)]);
    assert_eq!(Config::decode(&heavy.encode()), Ok(heavy));
}

#[test]
fn who_has_fewer_votes_of_two_does_not_go_on_alone() {
    let mut config = voters(&[1, 2]);
    config.members.get_mut(&id(2)).unwrap().votes = 2;
    let mut fewer = member(config.clone());
    let alone = Event::ContinueAlone(id(2));
    assert!(fewer.step(6000, alone.clone(), &mut Effects::default()).is_err());
    config.members.get_mut(&id(1)).unwrap().votes = 2;
    assert!(member(config).step(6000, alone, &mut Effects::default()).is_ok());
}

#[test]
fn a_forced_vote_counts_only_if_what_is_committed_there_is_here() {
    let forced = |commit: LogPosition| {
        let mut member = member(voters(&[1, 2, 3, 4]));
        let keep = vec![id(1), id(2)];
        let effects = step(&mut member, 9000, Event::ForceQuorum { keep, audit: "why".into() });
        let term = effects.hard_state.expect("a new term").term;
        assert!(term > 1 << 32);
        assert_eq!(effects.messages.len(), 1, "only those kept are asked");
        let reply = MessageBody::ForcedVoteReply { granted: true, commit };
        step(&mut member, 9000, from_peer(term, reply));
        member
    };
    assert!(!forced(LogPosition { term: 1, index: 1 }).is_leader());
    let member = forced(LogPosition::default());
    assert!(member.is_leader());
    assert_eq!(member.status(9000).config.lost, [id(3), id(4)]);
}

#[test]
fn an_ordinary_reply_is_no_word_on_a_forced_election() {
    let mut member = member(voters(&[1, 2, 3, 4]));
    let keep = vec![id(1), id(2)];
    let effects = step(&mut member, 9000, Event::ForceQuorum { keep, audit: "why".into() });
    let term = effects.hard_state.expect("a new term").term;
    step(&mut member, 9000, from_peer(term, MessageBody::VoteReply { granted: true }));
    assert!(!member.is_leader());
}

#[test]
fn a_peer_that_answers_and_gets_no_more_of_the_log_is_there_and_stands_still() {
    let mut leader = leader_of_three();
    step(&mut leader, 5400, Event::Tick);
    let answer = MessageBody::HeartbeatReply { round: 1, persisted_last: 1 };
    step(&mut leader, 5401, from_peer(1, answer));
    let status = leader.status(5401);
    let times = |of: u128| status.peer(id(of)).map(|peer| (peer.silent_ms, peer.still_ms));
    assert_eq!((times(2), times(3)), (Some((0, 401)), Some((401, 401))));
}

pub(super) fn persisted(member: &mut Consensus, term: Term, index: Index) {
    step(member, 5000, Event::Persisted(LogPosition { term, index }));
}

pub(super) fn data(index: Index, term: Term) -> Entry {
    Entry::new(index, term, EntryKind::Data, Bytes::from_static(b"d"))
}

pub(super) fn append(term: Term, prev: (Term, Index), entries: Vec<Entry>, commit: Index) -> Event {
    let prev = LogPosition { term: prev.0, index: prev.1 };
    from_peer(term, MessageBody::Append { prev, entries, commit })
}

#[test]
fn what_a_majority_has_is_shown_before_the_own_disk_has_it_but_not_without_end() {
    let mut leader = leader_of_three();
    assert_eq!(leader.showable(), 0, "the disk has nothing of this term");
    persisted(&mut leader, 1, 1);
    let many = vec![Proposal::new(EntryKind::Data, Bytes::from_static(b"d")); 2000];
    step(&mut leader, 5000, Event::Propose(many));
    let all = |from| Message {
        from: id(from),
        to: id(1),
        term: 1,
        body: MessageBody::AppendReply { matched: 2001 },
    };
    step(&mut leader, 5000, Event::Receive(all(2)));
    assert_eq!(leader.showable(), 1, "one disk of three");
    step(&mut leader, 5000, Event::Receive(all(3)));
    assert_eq!((leader.status(5000).commit, leader.showable()), (2001, 1025));
    persisted(&mut leader, 1, 1500);
    assert_eq!(leader.showable(), 2001);
}

/// A crash would leave entries on the disk that contradict what was shown.
#[test]
fn what_takes_the_place_of_others_entries_is_shown_when_the_own_disk_has_some_of_it() {
    let mut follower = member(voters(&[1, 2, 3]));
    let own = vec![data(1, 1), data(2, 1), data(3, 1)];
    step(&mut follower, 5000, append(1, (0, 0), own, 1));
    persisted(&mut follower, 1, 3);
    assert_eq!(follower.showable(), 1);
    let leaders = vec![data(2, 2), data(3, 2), data(4, 2)];
    step(&mut follower, 5000, append(2, (1, 1), leaders, 4));
    assert_eq!((follower.status(5000).commit, follower.showable()), (4, 1));
    persisted(&mut follower, 2, 2);
    assert_eq!(follower.showable(), 4);
}
