use super::*;

const E: Ballot = Ballot::Error(7);
const F: Ballot = Ballot::Error(9);

fn of(members: u128) -> Votes {
    let mut votes = Votes::default();
    assert_eq!(votes.view(1..=members), []);
    votes
}

/// Casts the ballots of members 1, 2, … on seqno 5; the result and after how many it was there.
fn run(members: u128, policy: u8, ballots: &[Ballot]) -> Option<(u64, usize)> {
    let mut votes = of(members);
    for (i, ballot) in ballots.iter().enumerate() {
        if let Answer::Decided(d) = votes.cast(5, i as u128 + 1, *ballot, (policy, Rule::Cast)) {
            assert_eq!(d.seqno, 5);
            return Some((d.result, i + 1));
        }
    }
    None
}

#[test]
fn alike_everywhere_is_decided_by_a_majority() {
    assert_eq!(run(3, 0, &[E, E, E]), Some((7, 2)));
    assert_eq!(run(1, 0, &[E]), Some((7, 1)));
    assert_eq!(run(2, 0, &[E, E]), Some((7, 2)));
}

#[test]
fn success_wins_ties_and_two_who_fail_differently() {
    assert_eq!(run(2, 0, &[E, Ballot::Success]), Some((0, 2)));
    assert_eq!(run(3, 0, &[E, F, Ballot::Success]), Some((0, 3)));
    assert_eq!(run(3, 0, &[E, Ballot::Success, E]), Some((7, 3)));
    assert_eq!(run(4, 0, &[E, Ballot::Success, E, Ballot::Success]), Some((0, 4)));
}

#[test]
fn a_result_that_cannot_change_waits_for_nobody() {
    assert_eq!(run(5, 0, &[E, Ballot::Success, Ballot::Success]), None);
    let three = [Ballot::Success; 3];
    assert_eq!(run(5, 0, &[&[E], &three[..]].concat()), Some((0, 4)));
    assert_eq!(run(3, 0, &[E]), None);
    assert_eq!(run(3, 0, &[E, F]), None, "the third may still agree with either");
}

#[test]
fn a_policy_lets_a_few_successes_win() {
    assert_eq!(run(5, 1, &[E, E, E, Ballot::Success]), Some((0, 4)));
    assert_eq!(run(5, 2, &[E, E, E, Ballot::Success]), None);
    assert_eq!(run(5, 2, &[E, E, E, Ballot::Success, E]), Some((7, 5)));
}

#[test]
fn who_leaves_the_view_is_not_waited_for() {
    let mut votes = of(3);
    assert_eq!(votes.cast(5, 1, E, (0, Rule::Cast)), Answer::Opened);
    assert_eq!(votes.cast(5, 2, Ballot::Success, (0, Rule::Cast)), Answer::Counted);
    let ended = votes.view([1, 2].into_iter());
    assert_eq!(ended.iter().map(|d| (d.seqno, d.result)).collect::<Vec<_>>(), [(5, SUCCESS)]);
    assert_eq!(votes.cast(5, 3, E, (0, Rule::Cast)), Answer::Late(SUCCESS));

    assert_eq!(votes.cast(6, 1, E, (0, Rule::Cast)), Answer::Opened);
    assert_eq!(votes.view([2].into_iter()), [], "only the one who failed had voted");
    assert_eq!(votes.cast(6, 2, Ballot::Success, (0, Rule::Cast)), Answer::Counted);
    assert!(matches!(votes.cast(6, 2, E, (0, Rule::Cast)), Answer::Decided(d) if d.result == 7));
}

#[test]
fn abstaining_and_closing_end_the_wait() {
    assert_eq!(run(3, 0, &[E, Ballot::Abstain, Ballot::Abstain]), Some((7, 3)));
    assert_eq!(run(3, 0, &[E, Ballot::Abstain, Ballot::Success]), Some((0, 3)));
    let mut votes = of(3);
    votes.cast(5, 1, E, (0, Rule::Cast));
    votes.cast(5, 2, Ballot::Success, (0, Rule::Cast));
    assert_eq!(votes.close(5, 3, Rule::Cast), Answer::Counted, "who has not voted cannot close");
    assert!(matches!(votes.close(5, 1, Rule::Cast), Answer::Decided(d) if d.result == SUCCESS));
    assert_eq!(votes.close(5, 1, Rule::Cast), Answer::Late(SUCCESS));
}

#[test]
fn who_abstained_decides_nothing_when_those_who_know_have_left() {
    let mut votes = of(3);
    votes.cast(5, 1, E, (0, Rule::Cast));
    assert_eq!(votes.cast(5, 2, Ballot::Abstain, (0, Rule::Cast)), Answer::Counted);
    assert_eq!(votes.view([2, 3].into_iter()), []);
    assert_eq!(votes.cast(5, 3, Ballot::Abstain, (0, Rule::Cast)), Answer::Counted);
    assert_eq!(votes.view(1..=3), []);
    assert_eq!(
        votes.cast(5, 1, E, (0, Rule::Cast)),
        Answer::Opened,
        "back, and with the only data there is"
    );
    assert_eq!(votes.cast(5, 2, Ballot::Abstain, (0, Rule::Cast)), Answer::Counted);
    assert!(
        matches!(votes.cast(5, 3, Ballot::Abstain, (0, Rule::Cast)), Answer::Decided(d) if d.result == 7)
    );
}

#[test]
fn a_ballot_counts_once_and_success_opens_nothing() {
    let mut votes = of(3);
    assert_eq!(votes.cast(5, 2, Ballot::Success, (0, Rule::Cast)), Answer::Counted);
    assert_eq!(votes.cast(5, 1, E, (0, Rule::Cast)), Answer::Opened);
    assert_eq!(votes.cast(5, 1, E, (0, Rule::Cast)), Answer::Counted);
    assert_eq!(votes.cast(5, 9, E, (0, Rule::Cast)), Answer::Counted, "not in the view");
    assert!(matches!(votes.cast(5, 3, E, (0, Rule::Cast)), Answer::Decided(d) if d.result == 7));
}

#[test]
fn results_are_kept_up_to_a_bound_and_then_taken_for_success() {
    let mut votes = of(1);
    let count = RESULTS_MAX as Seqno + 10;
    for seqno in 1..=count {
        assert!(matches!(votes.cast(seqno, 1, E, (0, Rule::Cast)), Answer::Decided(_)));
    }
    assert_eq!(votes.cast(count, 1, E, (0, Rule::Cast)), Answer::Late(7));
    assert_eq!(votes.cast(10, 1, E, (0, Rule::Cast)), Answer::Late(SUCCESS));
    assert_eq!(votes.results.len(), RESULTS_MAX);
}

#[test]
fn the_state_survives_as_bytes_and_garbage_is_refused() {
    let mut votes = of(4);
    votes.cast(5, 1, E, (2, Rule::Cast));
    votes.cast(5, 2, Ballot::Abstain, (0, Rule::Cast));
    votes.cast(5, 3, Ballot::Success, (0, Rule::Cast));
    votes.cast(3, 1, E, (0, Rule::Cast));
    for voter in 2..=4 {
        votes.cast(3, voter, E, (0, Rule::Cast));
    }
    let bytes = votes.encode();
    assert_eq!(Votes::decode(&bytes), Some(votes));
    for cut in 0..bytes.len() {
        assert_eq!(Votes::decode(&bytes[..cut]), None);
    }
}

#[test]
fn one_error_does_not_outvote_an_origin_that_has_left() {
    const D: Ballot = Ballot::Dissent(7);
    assert_eq!(run(1, 0, &[D]), Some((0, 1)), "it is alone");
    assert_eq!(run(2, 0, &[D, Ballot::Abstain]), Some((0, 2)));
    assert_eq!(run(2, 0, &[D, D]), Some((7, 2)), "two do");
    assert_eq!(run(3, 0, &[D, Ballot::Success, D]), Some((7, 3)), "the origin counts once");
    assert_eq!(run(3, 0, &[D, D]), Some((7, 2)), "whatever the third says");
    assert_eq!(run(4, 0, &[D, D]), None);
    assert_eq!(run(2, 1, &[D, D]), Some((0, 1)), "where one success is enough");

    let mut votes = of(3);
    assert_eq!(votes.cast(5, 1, D, (0, Rule::Cast)), Answer::Opened);
    assert_eq!(Votes::decode(&votes.encode()), Some(votes.clone()));
    let ended = votes.view(1..=1);
    assert_eq!(ended.iter().map(|d| (d.seqno, d.result)).collect::<Vec<_>>(), [(5, SUCCESS)]);
    assert!(ended[0].tally.ends_with("of 1 voters"), "{}", ended[0].tally);
    let mut votes = of(3);
    votes.cast(5, 1, D, (0, Rule::Cast));
    assert_eq!(votes.view(2..=3), [], "nobody is left who knows");
    assert_eq!(votes, of_two_to_three());
}

fn of_two_to_three() -> Votes {
    let mut votes = Votes::default();
    votes.view(2..=3);
    votes
}

#[test]
fn one_member_alone_makes_nobody_leave() {
    let majority = (0, Rule::Majority);
    let mut votes = Votes::default();
    votes.view([1, 2, 3].into_iter());
    assert_eq!(votes.cast(5, 1, E, majority), Answer::Opened);
    assert_eq!(votes.close(5, 1, Rule::Majority), Answer::Counted, "nobody else has said anything");
    assert_eq!(
        votes.cast(5, 9, E, majority),
        Answer::Counted,
        "another process of it, not in the view"
    );
    assert_eq!(votes.cast(5, 2, Ballot::Success, majority), Answer::Counted);
    let closed = votes.close(5, 1, Rule::Majority);
    assert_eq!(closed, Answer::InDoubt, "it may leave, and the third has its own word");
    let last = votes.clone().cast(5, 3, E, majority);
    assert!(matches!(last, Answer::Decided(d) if d.result == 7));
    let last = votes.cast(5, 3, Ballot::Success, majority);
    assert!(matches!(last, Answer::Decided(d) if d.result == SUCCESS));

    // Two have met an error, and a third says, and says so at once, that it has not.
    assert_eq!(votes.cast(7, 1, E, majority), Answer::Opened);
    assert_eq!(votes.cast(7, 3, Ballot::Success, majority), Answer::Counted);
    assert_eq!(votes.close(7, 3, Rule::Majority), Answer::Counted, "it waits for nothing");
    let last = votes.cast(7, 2, E, majority);
    assert!(matches!(last, Answer::Decided(d) if d.result == 7), "both stay");

    assert_eq!(
        votes.cast(6, 9, E, majority),
        Answer::Counted,
        "who is not in the view opens nothing"
    );
    assert_eq!(votes.cast(6, 1, E, majority), Answer::Opened);
    assert_eq!(votes.cast(6, 2, Ballot::Abstain, majority), Answer::Counted);
    assert_eq!(votes.close(6, 1, Rule::Majority), Answer::Counted, "one of two is no majority");
    let last = votes.cast(6, 3, E, majority);
    assert!(matches!(last, Answer::Decided(d) if d.result == 7));
}

#[test]
fn an_error_of_a_majority_waits_for_nobody_who_is_silent() {
    // One success would win at once: the third is waited for until somebody closes the poll.
    let one_is_enough = (1, Rule::Majority);
    let mut votes = Votes::default();
    votes.view([1, 2, 3].into_iter());
    assert_eq!(votes.cast(5, 1, E, one_is_enough), Answer::Opened);
    assert_eq!(votes.close(5, 1, Rule::Majority), Answer::Counted, "one of three");
    assert_eq!(votes.cast(5, 2, E, one_is_enough), Answer::Counted);
    let closed = votes.close(5, 1, Rule::Majority);
    assert!(matches!(closed, Answer::Decided(d) if d.result == 7), "two of three");
}

/// The others have met an error over a write set of member 3, which opens the poll.
#[test]
fn a_policy_is_not_for_whoever_opens_the_poll_to_choose() {
    let (one, own) = ((1, Rule::Majority), (0, Rule::Majority));
    const D: Ballot = Ballot::Dissent(7);
    let mut votes = of(3);
    assert_eq!(votes.cast(5, 3, F, one), Answer::Opened);
    assert_eq!(votes.cast(5, 1, D, own), Answer::Counted, "what the origin has is not enough");
    assert!(matches!(votes.cast(5, 2, D, own), Answer::Decided(d) if d.result == 7));

    // A single member has had success, and does not think that this is enough.
    let mut votes = of(5);
    assert_eq!(votes.cast(5, 3, E, one), Answer::Opened);
    assert_eq!(votes.cast(5, 4, Ballot::Success, own), Answer::Counted);
    assert_eq!(votes.cast(5, 1, E, own), Answer::Counted);
    assert!(matches!(votes.cast(5, 2, E, own), Answer::Decided(d) if d.result == 7));

    let mut votes = of(5);
    votes.cast(5, 3, E, one);
    let alike = votes.cast(5, 4, Ballot::Success, one);
    assert!(matches!(alike, Answer::Decided(d) if d.result == SUCCESS), "where all think so");
}

/// What the origin has committed is no reason for all others to leave, of whom only one has said anything.
#[test]
fn what_the_origin_has_committed_closes_nothing() {
    let rule = (0, Rule::Majority);
    const D: Ballot = Ballot::Dissent(7);
    let mut votes = of(3);
    assert_eq!(votes.cast(5, 3, F, rule), Answer::Opened);
    assert_eq!(votes.cast(5, 1, D, rule), Answer::Counted);
    assert_eq!(votes.close(5, 3, Rule::Majority), Answer::InDoubt);
    assert!(matches!(votes.cast(5, 2, D, rule), Answer::Decided(d) if d.result == 7));
}

#[test]
fn no_member_opens_polls_without_end() {
    let rule = (0, Rule::Majority);
    let mut votes = of(3);
    for seqno in 1..OPEN_MAX as Seqno + 10 {
        assert_eq!(votes.cast(seqno, 1, E, rule), Answer::Opened);
    }
    assert_eq!(votes.open.len(), OPEN_MAX);
    assert_eq!(votes.cast(3, 2, E, rule), Answer::Opened);
    assert_eq!(votes.cast(3, 1, F, rule), Answer::Counted);
    assert_eq!(votes.cast(9999, 1, E, rule), Answer::Opened);
    assert_eq!(votes.awaited(3).collect::<Vec<_>>(), [3], "another one waits for it");
    assert_eq!(votes.awaited(9999).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(votes.awaited(4).count(), 0);
    assert_eq!(votes.open.len(), OPEN_MAX);
}

/// It dissents from its own write set, of which nobody knows any more whose it was.
#[test]
fn what_the_log_has_forgotten_is_no_word_against_a_majority() {
    let rule = (0, Rule::Majority);
    let liar = Ballot::Dissent(99);
    let mut votes = of(3);
    assert_eq!(votes.cast_in_doubt(5, 3, liar, rule), Answer::Opened);
    assert_eq!(
        votes.close(5, 3, Rule::Majority),
        Answer::InDoubt,
        "before the others say anything"
    );
    assert_eq!(votes.cast_in_doubt(5, 1, Ballot::Dissent(7), rule), Answer::Counted);
    assert_eq!(votes.close(5, 3, Rule::Majority), Answer::InDoubt);
    let Answer::Decided(decision) = votes.cast_in_doubt(5, 2, Ballot::Dissent(7), rule) else {
        panic!("two of three");
    };
    assert_eq!(decision.result, 7);
}

#[test]
fn a_single_error_over_what_the_log_has_forgotten_is_its_members_alone() {
    let rule = (0, Rule::Majority);
    let dissents = |votes: &mut Votes| votes.cast_in_doubt(5, 1, Ballot::Dissent(7), rule);
    let result = |answer| match answer {
        Answer::Decided(decision) => decision.result,
        other => panic!("{other:?}"),
    };
    // The others have no data.
    let mut votes = of(3);
    assert_eq!(dissents(&mut votes), Answer::Opened);
    assert_eq!(votes.cast(5, 2, Ballot::Abstain, rule), Answer::Counted);
    assert_eq!(result(votes.cast(5, 3, Ballot::Abstain, rule)), SUCCESS);
    assert_eq!(result(dissents(&mut of(1))), SUCCESS);
    // Nor does one of two that differ win over the other.
    let mut votes = of(3);
    assert_eq!(dissents(&mut votes), Answer::Opened);
    assert_eq!(votes.cast_in_doubt(5, 2, Ballot::Dissent(9), rule), Answer::Counted);
    assert_eq!(result(votes.cast(5, 3, Ballot::Abstain, rule)), SUCCESS);
    // They have it right.
    let mut votes = of(3);
    assert_eq!(dissents(&mut votes), Answer::Opened);
    assert_eq!(votes.cast(5, 2, Ballot::Success, rule), Answer::Counted);
    assert_eq!(votes.close(5, 1, Rule::Majority), Answer::InDoubt, "one said so");
    assert_eq!(result(votes.cast(5, 3, Ballot::Success, rule)), SUCCESS);
}
