//! Votes on errors: any ballots in any order, from any state that a snapshot may hold.
//!
//! A poll ends once, and every later ballot on it hears the same result.

use crate::source::Source;
use quorate_certify::votes::{Answer, Ballot, Decision, Rule, Votes};
use std::collections::BTreeMap;

pub fn run(input: &[u8]) {
    if let Some(votes) = Votes::decode(input) {
        assert_eq!(Votes::decode(&votes.encode()), Some(votes));
    }
    let rule = if input.len() % 2 == 0 { Rule::Majority } else { Rule::Cast };
    let mut source = Source::new(input);
    let restored = Votes::decode(source.long_block());
    // What a snapshot may say of results is not what these ballots said.
    let mut ended = restored.is_none().then(BTreeMap::new);
    let mut votes = restored.unwrap_or_default();
    while !source.is_empty() {
        let decisions = step(&mut votes, &mut source, rule, ended.as_ref());
        for Decision { seqno, result, .. } in decisions {
            let before = ended.as_mut().and_then(|ended| ended.insert(seqno, result));
            assert_eq!(before, None, "the poll on {seqno} ended twice");
        }
    }
    assert_eq!(Votes::decode(&votes.encode()), Some(votes));
}

/// One ballot, call or view; what it decided.
fn step(
    votes: &mut Votes,
    source: &mut Source<'_>,
    rule: Rule,
    ended: Option<&BTreeMap<i64, u64>>,
) -> Vec<Decision> {
    let choice = source.below(8);
    if choice == 0 {
        let members = source.byte();
        return votes.view((0..8).filter(|id| members >> id & 1 == 1));
    }
    let (seqno, voter) = (source.near(5) as i64, u128::from(source.below(8)));
    let answer = match choice {
        1 => votes.close(seqno, voter, rule),
        _ => {
            let digest = 1 + u64::from(source.below(3));
            let ballots = [
                Ballot::Success,
                Ballot::Error(digest),
                Ballot::Dissent(digest),
                Ballot::Abstain,
                Ballot::Error(digest),
            ];
            let ballot = source.one_of(&ballots);
            votes.cast(seqno, voter, ballot, (source.below(5), rule))
        }
    };
    match answer {
        Answer::Decided(decision) => vec![decision],
        Answer::Late(result) => {
            let known = ended.and_then(|ended| ended.get(&seqno)).copied();
            // Below the first seqno of a group all is forgotten.
            assert!(ended.is_none() || known == Some(result) || seqno <= 0, "{seqno}: {result}");
            Vec::new()
        }
        Answer::Counted | Answer::InDoubt | Answer::Opened => Vec::new(),
    }
}
