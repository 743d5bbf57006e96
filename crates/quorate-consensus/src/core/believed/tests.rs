use super::*;
use crate::config::{Config, ConfigChange, MemberInfo, MemberRole};
use crate::core::tests::{id, leader_of_three, member, step, voters};
use crate::event::{Event, Options};
use crate::message::TERM_MAX;
use crate::types::{LogPosition, SnapshotMeta};

fn from(sender: u128, term: Term, body: MessageBody) -> Event {
    Event::Receive(Message { from: id(sender), to: id(1), term, body })
}

fn beat(sender: u128, term: Term) -> Event {
    from(sender, term, MessageBody::Heartbeat { commit: 0, round: 1 })
}

fn vote(sender: u128, term: Term, transfer: bool) -> Event {
    let last = LogPosition { term: term - 1, index: 9 };
    from(sender, term, MessageBody::Vote { last, transfer })
}

fn snapshot(sender: u128, term: Term) -> Event {
    let meta = SnapshotMeta { last: LogPosition { term, index: 9 }, config: voters(&[1, 2, 3]) };
    Event::InstallSnapshot { from: id(sender), term, meta }
}

/// Two other voters, and a learner, 4.
fn with_learner() -> Config {
    let mut config = voters(&[1, 2, 3]);
    config.members.insert(id(4), MemberInfo::new(MemberRole::Learner, "h:4", "n4"));
    config
}

/// It hears 2, the leader of term 1.
fn follower() -> Consensus {
    let mut member = member(with_learner());
    step(&mut member, 0, beat(2, 1));
    assert_eq!(member.leader(), Some(id(2)));
    member
}

/// Why the event did not count; the term, the leader and the end of the log are what they were.
#[track_caller]
fn rejected(member: &mut Consensus, now_ms: u64, event: Event) -> Objection {
    let before = (member.term(), member.leader(), member.last(), member.is_leader());
    let effects = step(member, now_ms, event);
    assert_eq!((member.term(), member.leader(), member.last(), member.is_leader()), before);
    assert!(effects.messages.is_empty() && effects.hard_state.is_none(), "{effects:?}");
    let [Rejected { objection, .. }] = effects.rejected[..] else { panic!("{effects:?}") };
    objection
}

#[test]
fn while_a_leader_is_heard_only_voters_begin_a_term() {
    for sender in [4, 9] {
        let mut follower = follower();
        for event in [beat(sender, 2), vote(sender, 2, true), snapshot(sender, 2)] {
            assert_eq!(rejected(&mut follower, 10, event), Objection::NoVoter);
        }
        step(&mut follower, 10, vote(sender, 2, false));
        assert_eq!(follower.term(), 1, "the lease refuses that of anybody");
    }
    for event in [beat(3, 2), vote(3, 2, true), snapshot(3, 2)] {
        let mut follower = follower();
        step(&mut follower, 10, event);
        assert_eq!(follower.term(), 2);
    }
}

#[test]
fn who_has_just_voted_is_led_by_a_voter_only() {
    for sender in [4, 9] {
        let mut follower = follower();
        step(&mut follower, 10, vote(3, 2, true));
        assert_eq!((follower.term(), follower.leader()), (2, None));
        for event in [beat(sender, 2), beat(sender, 3), snapshot(sender, 2), vote(sender, 3, false)]
        {
            assert_eq!(rejected(&mut follower, 11, event), Objection::NoVoter);
        }
        step(&mut follower, 12, beat(3, 2));
        assert_eq!(follower.leader(), Some(id(3)));
    }
}

#[test]
fn who_hears_no_leader_follows_one_that_it_does_not_know() {
    for sender in [4, 9] {
        let mut follower = follower();
        step(&mut follower, 60_000, beat(sender, 2));
        assert_eq!(follower.leader(), Some(id(sender)), "it was admitted meanwhile");
    }
}

#[test]
fn who_has_just_started_waits_for_those_that_it_knows() {
    let patience = UNKNOWN_WAIT * Options::new(id(1), 0).election_timeout_ms;
    for sender in [4, 9] {
        let mut started = member(with_learner());
        for event in [beat(sender, 2), vote(sender, 2, true), snapshot(sender, 2)] {
            assert_eq!(rejected(&mut started, patience - 1, event), Objection::NoVoter);
        }
        step(&mut started, patience - 1, beat(3, 2));
        assert_eq!(started.leader(), Some(id(3)));
        let mut waits = member(with_learner());
        step(&mut waits, patience, beat(sender, 2));
        assert_eq!(waits.leader(), Some(id(sender)));
    }
}

#[test]
fn a_leader_is_not_deposed_by_who_has_no_vote() {
    let mut leader = leader_of_three();
    for event in [beat(9, 7), vote(9, 7, true), snapshot(9, 7)] {
        assert_eq!(rejected(&mut leader, 5001, event), Objection::NoVoter);
    }
    for body in answers() {
        assert_eq!(rejected(&mut leader, 5001, from(9, 7, body)), Objection::Stranger);
    }
    step(&mut leader, 5001, beat(3, 7));
    assert_eq!(leader.term(), 7);
}

fn answers() -> [MessageBody; 9] {
    [
        MessageBody::HeartbeatReply { round: 0, persisted_last: 0 },
        MessageBody::AppendReply { matched: 1 },
        MessageBody::AppendReject { rejected: 1, hint: LogPosition::default() },
        MessageBody::SnapshotReply { matched: 1 },
        MessageBody::PreVoteReply { granted: false },
        MessageBody::VoteReply { granted: true },
        MessageBody::ForcedVoteReply { granted: true, commit: LogPosition::default() },
        MessageBody::ReadIndex { ctx: 1 },
        MessageBody::ReadIndexReply { ctx: 1, index: 1 },
    ]
}

/// Leads 2, 3 and the learner 4, in term 1.
fn leader_with_learner() -> Consensus {
    let mut leader = member(with_learner());
    step(&mut leader, 5000, Event::Tick);
    step(&mut leader, 5000, from(2, 1, MessageBody::PreVoteReply { granted: true }));
    step(&mut leader, 5000, from(2, 1, MessageBody::VoteReply { granted: true }));
    assert!(leader.is_leader());
    leader
}

/// It is sent the entry that says so as long as it may be there, and is followed nowhere meanwhile.
#[test]
fn nobody_outgrows_the_term_of_a_member_that_was_removed() {
    let mut leader = leader_with_learner();
    let settle = |leader: &mut Consensus| {
        let last = leader.last();
        step(leader, 5000, Event::Persisted(last));
        step(leader, 5000, from(2, 1, MessageBody::AppendReply { matched: last.index }));
        assert_eq!(leader.status(5000).commit, last.index);
    };
    settle(&mut leader);
    let change = ConfigChange::Update { put: Vec::new(), remove: vec![id(4)] };
    step(&mut leader, 5000, Event::ChangeMembership(change));
    settle(&mut leader);
    assert!(leader.leadership().is_some_and(|leadership| leadership.peers.contains_key(&id(4))));
    for body in answers() {
        assert_eq!(rejected(&mut leader, 5001, from(4, 2, body)), Objection::Stranger);
    }
}

#[test]
fn an_answer_leads_on_to_another_term_only_if_a_voter_gives_it() {
    for body in answers() {
        let mut leader = leader_with_learner();
        assert_eq!(rejected(&mut leader, 5001, from(4, 2, body.clone())), Objection::Ahead);
        step(&mut leader, 5001, from(2, 2, body.clone()));
        assert_eq!(leader.term(), 2, "{body:?}");
        // Nor does it keep those who hear no leader from electing one.
        if !matches!(body, MessageBody::AppendReply { .. }) {
            let mut alone = member(with_learner());
            assert_eq!(rejected(&mut alone, 60_000, from(4, 2, body)), Objection::Ahead);
        }
    }
}

#[test]
fn a_leader_has_itself_elected_beyond_a_learner_that_is_ahead_and_seldom() {
    let mut leader = leader_with_learner();
    let ahead = |term| from(4, term, MessageBody::HeartbeatReply { round: 0, persisted_last: 0 });
    let confirm = |leader: &mut Consensus, now_ms| {
        step(leader, now_ms, Event::Tick);
        let (round, term) = (now_ms, leader.term());
        let beat = |round| MessageBody::HeartbeatReply { round, persisted_last: 0 };
        let rounds = (1..=round).take_while(|round| {
            step(leader, now_ms, from(2, term, beat(*round))).rejected.is_empty()
        });
        assert!(rounds.count() > 0);
        step(leader, now_ms, Event::Tick)
    };
    step(&mut leader, 5001, ahead(5));
    step(&mut leader, 5001, Event::Tick);
    assert!(leader.is_leader(), "not before a quorum has confirmed that it leads");
    let effects = confirm(&mut leader, 5500);
    assert_eq!(leader.term(), 6);
    let asks =
        |message: &&Message| matches!(message.body, MessageBody::Vote { transfer: true, .. });
    assert_eq!(effects.messages.iter().filter(asks).count(), 2);
    step(&mut leader, 5500, from(3, 6, MessageBody::VoteReply { granted: true }));
    assert!(leader.is_leader());
    step(&mut leader, 6000, ahead(9));
    confirm(&mut leader, 6500);
    assert!(leader.is_leader() && leader.term() == 6, "once in ten minutes");
    let mut now_ms = 6500;
    while now_ms < 605_000 {
        now_ms += 500;
        confirm(&mut leader, now_ms);
        step(&mut leader, now_ms, ahead(9));
        assert_eq!(leader.term(), 6, "at {now_ms}");
    }
    now_ms += 1000;
    for term in [8, 9, 7] {
        step(&mut leader, now_ms, ahead(term));
    }
    confirm(&mut leader, now_ms + 500);
    assert_eq!(leader.term(), 10, "beyond the one that is furthest ahead");
}

#[test]
fn no_learner_leads_its_leader_on_by_a_leap() {
    for term in [1 << 21, 1 << 33, TERM_LEAP_MAX, TERM_LEAP_MAX + 1] {
        let mut leader = leader_with_learner();
        let beat = |from_whom, term, round| {
            let body = MessageBody::HeartbeatReply { round, persisted_last: 0 };
            from(from_whom, term, body)
        };
        let is_too_far = term > TERM_LEAP_MAX;
        let objection = if is_too_far { Objection::Leap } else { Objection::Ahead };
        assert_eq!(rejected(&mut leader, 5001, beat(4, 1 + term, 0)), objection);
        for now_ms in (5_500..10_000).step_by(500) {
            step(&mut leader, now_ms, Event::Tick);
            for round in 1..10 {
                step(&mut leader, now_ms, beat(2, 1, round));
            }
        }
        assert!(leader.is_leader() && leader.term() == 1, "{term}");
    }
}

#[test]
fn who_got_a_members_vote_leads_it_although_it_does_not_know_that_one_as_a_voter() {
    for sender in [4, 9] {
        let mut follower = follower();
        step(&mut follower, 60_000, vote(sender, 2, false));
        step(&mut follower, 60_000, vote(sender, 2, false));
        step(&mut follower, 60_001, beat(sender, 2));
        assert_eq!((follower.term(), follower.leader()), (2, Some(id(sender))));
        // Nor does that one lose it where it has itself elected once more.
        step(&mut follower, 60_002, vote(sender, 3, true));
        assert_eq!(follower.term(), 3);
    }
}

#[test]
fn who_would_get_no_vote_gets_no_promise_of_one() {
    let asks = |sender| {
        let last = LogPosition { term: 1, index: 9 };
        from(sender, 2, MessageBody::PreVote { last })
    };
    let granted = |effects: &Effects| {
        let is_yes =
            |message: &Message| message.body == MessageBody::PreVoteReply { granted: true };
        effects.messages.iter().any(is_yes)
    };
    for sender in [4, 9] {
        let mut follower = follower();
        // Its leader's process has ended: so the lease refuses nobody.
        step(&mut follower, 10, Event::Unreachable(id(2)));
        assert!(!granted(&step(&mut follower, 11, asks(sender))));
        assert!(granted(&step(&mut follower, 12, asks(3))));
        assert!(granted(&step(&mut follower, 60_000, asks(sender))), "it may be a voter by then");
    }
}

#[test]
fn a_term_has_one_leader() {
    let mut follower = follower();
    for event in [beat(3, 1), from(3, 1, MessageBody::TimeoutNow), snapshot(3, 1)] {
        assert_eq!(rejected(&mut follower, 10, event), Objection::SecondLeader);
    }
    assert_eq!(rejected(&mut leader_of_three(), 5001, beat(2, 1)), Objection::SecondLeader);
}

#[test]
fn what_was_never_sent_is_not_acknowledged() {
    let mut leader = leader_of_three();
    for body in [
        MessageBody::AppendReply { matched: 2 },
        MessageBody::SnapshotReply { matched: u64::MAX },
        MessageBody::HeartbeatReply { round: 99, persisted_last: 1 },
    ] {
        assert_eq!(rejected(&mut leader, 5001, from(2, 1, body)), Objection::NeverSent);
    }
    assert_eq!(leader.status(5001).commit, 1);
}

#[test]
fn a_term_that_no_election_led_to_is_not_taken_over() {
    let mut member = member(voters(&[1, 2, 3]));
    for term in [TERM_JUMP_MAX + 1, TERM_MAX / 2, TERM_MAX] {
        for event in [beat(2, term), vote(2, term, false), snapshot(2, term)] {
            assert_eq!(rejected(&mut member, 0, event), Objection::Leap);
        }
    }
    step(&mut member, 0, beat(2, TERM_JUMP_MAX));
    assert_eq!(member.term(), TERM_JUMP_MAX, "it knew none");
    let mut term = TERM_JUMP_MAX;
    let further = beat(3, term + TERM_LEAP_MAX + 1);
    assert_eq!(rejected(&mut member, 0, further), Objection::Leap);
    let mut leaps = 0;
    while leaps < 1_000 {
        if !step(&mut member, 0, beat(3, term + TERM_LEAP_MAX)).rejected.is_empty() {
            break;
        }
        (leaps, term) = (leaps + 1, term + TERM_LEAP_MAX);
        assert_eq!(member.term(), term);
    }
    assert_eq!(leaps, LEAPS_AT_ONCE + 1);
    term += ELECTIONS_MAX;
    step(&mut member, 0, beat(2, term));
    assert_eq!(member.term(), term, "elections go on");
    for second in 1..4 {
        let now_ms = second * LEAP_PAUSE_MS;
        term += TERM_LEAP_MAX;
        step(&mut member, now_ms, beat(3, term));
        assert_eq!(member.term(), term);
        let next = beat(2, term + TERM_LEAP_MAX);
        assert_eq!(rejected(&mut member, now_ms, next), Objection::Leap);
    }
}
