use super::*;
use crate::core::tests::{append, data, member, persisted, step, voters};

/// It was given up when a quorum was forced, or the leader was: what both have beyond that must not be mixed.
#[test]
fn entries_that_contradict_what_is_committed_here_are_neither_taken_nor_acknowledged() {
    let mut follower = member(voters(&[1, 2, 3]));
    step(&mut follower, 0, append(1, (0, 0), (1..=3).map(|index| data(index, 1)).collect(), 3));
    persisted(&mut follower, 1, 3);
    assert_eq!(follower.status(0).commit, 3);
    let others = |from: Index| (from..=5).map(|index| data(index, 9)).collect();
    for event in [append(9, (1, 1), others(2), 5), append(9, (9, 3), others(4), 5)] {
        let effects = step(&mut follower, 0, event);
        let [Rejected { objection, .. }] = effects.rejected[..] else { panic!("{effects:?}") };
        assert_eq!(objection, Objection::Contradicts);
        assert!(effects.messages.is_empty() && effects.append.is_empty(), "{effects:?}");
        assert_eq!(follower.last(), LogPosition { term: 1, index: 3 });
    }
}
