//! Terms that are used up. What else there is to giving up a majority is in `tests/scenarios/force_*.txt`.

use super::*;
use crate::core::tests::{id, step, voters};
use crate::effects::{Effects, Objection};
use crate::event::{Event, Options, Restored};
use crate::message::Message;
use crate::types::{Index, SnapshotMeta};

/// With a log of so many entries of term 3, and this term in its file.
fn restored(own: u128, term: Term, last: Index) -> Consensus {
    let restored = Restored {
        hard_state: HardState { term, voted_for: Some(id(2)) },
        snapshot: SnapshotMeta { last: LogPosition::default(), config: voters(&[1, 2, 3]) },
        last: LogPosition { term: 3, index: last },
        term_runs: vec![(1, 3)],
        ..Restored::default()
    };
    Consensus::new(Options::new(id(own), own as u64), restored, 0)
}

fn force(member: &mut Consensus, keep: &[u128]) -> Result<Effects, StepError> {
    let keep = keep.iter().map(|number| id(*number)).collect();
    let mut effects = Effects::default();
    let order = Event::ForceQuorum { keep, audit: "the file was damaged".into() };
    member.step(10_000, order, &mut effects).map(|()| effects)
}

/// Delivers what is for members of these, until nothing is left; what did not count.
fn deliver(members: &mut [Consensus], mut messages: Vec<Message>) -> Vec<Objection> {
    let mut objections = Vec::new();
    while let Some(message) = messages.pop() {
        if let Some(to) = members.iter_mut().find(|member| member.id() == message.to) {
            let effects = step(to, 10_000, Event::Receive(message));
            messages.extend(effects.messages);
            objections.extend(effects.rejected.iter().map(|rejected| rejected.objection));
        }
    }
    objections
}

#[test]
fn terms_that_are_used_up_begin_anew_by_force_and_only_so() {
    let mut members = [(1, 5), (2, 5), (3, 4)].map(|(own, last)| restored(own, TERM_MAX - 1, last));
    for member in &mut members {
        assert!(member.terms_are_used_up());
        let stands = step(member, 9_000, Event::Tick);
        let beat = MessageBody::Heartbeat { commit: 0, round: 1 };
        let other = if member.id() == id(1) { 2 } else { 1 };
        let honest = Message { from: id(other), to: member.id(), term: 7, body: beat };
        step(member, 9_000, Event::Receive(honest));
        assert!(member.term() >= TERM_MAX - 1, "{stands:?}");
    }
    // All that are left are kept, though they are a majority.
    let effects = force(&mut members[0], &[1, 2, 3]).unwrap();
    let term = effects.hard_state.unwrap().term;
    assert!((TERM_LEAP..4 * TERM_LEAP).contains(&term), "{term}");
    assert!(deliver(&mut members, effects.messages).is_empty());
    assert!(members.iter().all(|member| member.term() == term));
    assert!(members[0].is_leader() && members[0].config().lost.is_empty());
}

#[test]
fn who_has_more_in_its_log_does_not_go_back() {
    let mut members = [(1, 4), (2, 5)].map(|(own, last)| restored(own, TERM_MAX - 1, last));
    let effects = force(&mut members[0], &[1, 2]).unwrap();
    deliver(&mut members, effects.messages);
    assert!(!members[0].is_leader() && members[1].terms_are_used_up());
    // Whose terms begin further on is a matter of chance: if it is the other one, they go on by elections.
    let effects = force(&mut members[1], &[1, 2]).unwrap();
    deliver(&mut members, effects.messages);
    assert!(!members[1].terms_are_used_up());
    for now_ms in (20_000..60_000).step_by(100) {
        if members[1].is_leader() {
            break;
        }
        let effects = step(&mut members[1], now_ms, Event::Tick);
        deliver(&mut members, effects.messages);
    }
    assert!(members[1].is_leader() && members[0].leader() == Some(id(2)));
}

#[test]
fn a_term_that_is_not_used_up_never_goes_back() {
    let mut members = [restored(1, TERM_MAX - 1, 5), restored(2, 1 << 40, 5)];
    let effects = force(&mut members[0], &[1, 2]).unwrap();
    deliver(&mut members, effects.messages);
    assert_eq!(members[1].term(), 1 << 40);
    assert!(!members[0].is_leader());
}

#[test]
fn a_log_that_has_the_last_terms_is_beyond_repair_and_says_so() {
    let last = LogPosition { term: TERM_MAX - 1, index: 5 };
    let restored = Restored {
        hard_state: HardState { term: TERM_MAX - 1, voted_for: None },
        snapshot: SnapshotMeta { last: LogPosition::default(), config: voters(&[1, 2]) },
        last,
        term_runs: vec![(1, last.term)],
        ..Restored::default()
    };
    let mut member = Consensus::new(Options::new(id(1), 7), restored, 0);
    let refusal = force(&mut member, &[1, 2]).unwrap_err().to_string();
    assert!(refusal.contains("no terms left") && refusal.contains("new group"), "{refusal}");
}
