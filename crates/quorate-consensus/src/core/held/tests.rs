use super::super::tests::{id, member, step, voters};
use crate::config::Config;
use crate::effects::Effects;
use crate::event::Event;
use crate::level::EVERYBODY_COUNTS;
use crate::message::{Message, MessageBody};
use crate::types::{Entry, EntryKind, Index, LogPosition, Term};
use crate::Consensus;
use bytes::Bytes;

fn at_level(config: Config) -> Config {
    Config { level: EVERYBODY_COUNTS, ..config }
}

fn says(from: u128, term: Term, body: MessageBody) -> Event {
    Event::Receive(Message { from: id(from), to: id(1), term, body })
}

fn held(from: u128, term: Term, matched: Index) -> Event {
    says(from, term, MessageBody::AppendReply { matched })
}

fn append(prev: (Term, Index), entries: Vec<Entry>, commit: Index) -> Event {
    let prev = LogPosition { term: prev.0, index: prev.1 };
    says(2, 1, MessageBody::Append { prev, entries, commit })
}

fn data(index: Index) -> Entry {
    Entry::new(index, 1, EntryKind::Data, Bytes::from_static(b"d"))
}

fn persisted(index: Index) -> Event {
    Event::Persisted(LogPosition { term: 1, index })
}

/// Member 1 follows member 2, which leads term 1 and has said that entry 1 is committed; it has entries up to 3,
/// on disk up to 1.
fn follower(config: Config) -> Consensus {
    let mut follower = member(at_level(config));
    let first = Entry::new(1, 1, EntryKind::Noop, Bytes::new());
    step(&mut follower, 10, append((0, 0), vec![first], 0));
    step(&mut follower, 10, persisted(1));
    step(&mut follower, 10, append((1, 1), vec![data(2), data(3)], 1));
    follower
}

fn commit(follower: &Consensus) -> Index {
    follower.status(10).commit
}

fn acknowledgements(effects: &Effects) -> Vec<(u128, Index)> {
    let of = |message: &Message| match message.body {
        MessageBody::AppendReply { matched } => Some((message.to.0, matched)),
        _ => None,
    };
    effects.messages.iter().filter_map(of).collect()
}

#[test]
fn a_follower_commits_what_a_quorum_has_and_says_so_before_the_leader_does() {
    let mut follower = follower(voters(&[1, 2, 3]));
    assert_eq!(commit(&follower), 1);
    step(&mut follower, 10, held(2, 1, 2));
    assert_eq!(commit(&follower), 1, "the leader has it, and nobody else");
    let effects = step(&mut follower, 10, persisted(3));
    assert_eq!((commit(&follower), effects.commit), (2, Some(2)));
    step(&mut follower, 10, held(3, 1, 9));
    assert_eq!(commit(&follower), 3, "not beyond its own log");
}

#[test]
fn others_may_have_it_before_this_one() {
    let mut follower = follower(voters(&[1, 2, 3]));
    step(&mut follower, 10, held(2, 1, 3));
    step(&mut follower, 10, held(3, 1, 3));
    assert_eq!((commit(&follower), follower.persisted()), (3, 1));
}

#[test]
fn other_terms_learners_and_connections_that_ended_do_not_count() {
    let mut config = voters(&[1, 2, 3]);
    config.members.insert(id(4), crate::MemberInfo::new(crate::MemberRole::Learner, "h:1", "l"));
    let mut follower = follower(config);
    step(&mut follower, 10, held(4, 1, 3));
    step(&mut follower, 10, held(3, 0, 3));
    step(&mut follower, 10, held(3, 2, 3));
    assert_eq!(follower.term(), 1, "it begins no term");
    step(&mut follower, 10, held(3, 1, 3));
    step(&mut follower, 10, Event::Connected(id(3)));
    step(&mut follower, 10, persisted(3));
    assert_eq!(commit(&follower), 1);
    step(&mut follower, 10, held(3, 1, 2));
    assert_eq!(commit(&follower), 2);
}

#[test]
fn nothing_is_counted_before_the_leader_has_committed_something_of_its_term() {
    let mut follower = member(at_level(voters(&[1, 2, 3])));
    let first = Entry::new(1, 1, EntryKind::Noop, Bytes::new());
    step(&mut follower, 10, append((0, 0), vec![first], 0));
    step(&mut follower, 10, persisted(1));
    for other in [2, 3] {
        step(&mut follower, 10, held(other, 1, 1));
    }
    assert_eq!(commit(&follower), 0);
}

#[test]
fn each_configuration_that_may_be_in_force_has_to_agree() {
    let mut follower = follower(voters(&[1, 2, 3]));
    let joint = Config { outgoing: [1, 2, 3].map(id).to_vec(), ..voters(&[1, 4, 5]) };
    let change = Entry::new(4, 1, EntryKind::Config, at_level(joint).encode());
    step(&mut follower, 10, append((1, 3), vec![change], 1));
    step(&mut follower, 10, persisted(4));
    step(&mut follower, 10, held(2, 1, 4));
    assert_eq!(commit(&follower), 1, "a majority of the former ones only");
    step(&mut follower, 10, held(4, 1, 3));
    assert_eq!(commit(&follower), 3);
}

#[test]
fn a_commit_that_is_told_ahead_of_its_entries_is_remembered() {
    let mut follower = follower(voters(&[1, 2, 3]));
    step(&mut follower, 10, says(2, 1, MessageBody::Heartbeat { commit: 5, round: 0 }));
    assert_eq!(commit(&follower), 3);
    step(&mut follower, 10, append((1, 3), vec![data(4)], 1));
    assert_eq!(commit(&follower), 4);
}

#[test]
fn acknowledgements_go_where_they_help() {
    let mut of_three = follower(voters(&[1, 2, 3]));
    let effects = step(&mut of_three, 10, persisted(3));
    assert_eq!(acknowledgements(&effects), [(2, 3)], "the other one counts the leader and itself");
    let mut of_five = follower(voters(&[1, 2, 3, 4, 5]));
    let effects = step(&mut of_five, 10, persisted(3));
    assert_eq!(acknowledgements(&effects), [(2, 3), (3, 3), (4, 3), (5, 3)]);
    let mut early = member(voters(&[1, 2, 3, 4, 5]));
    let first = Entry::new(1, 1, EntryKind::Noop, Bytes::new());
    step(&mut early, 10, append((0, 0), vec![first], 0));
    let effects = step(&mut early, 10, persisted(1));
    assert_eq!(acknowledgements(&effects), [(2, 1)], "earlier releases do not know it");
}
