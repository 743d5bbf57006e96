//! Whether the log has all that the database may have.

use super::*;

#[test]
fn a_rehearsal_tells_whether_the_log_has_all_that_the_database_may_have() {
    for noted in [None, Some(2)] {
        let link = Link::new(Arc::<Nobody>::default(), genesis(), MemberId(1), 1, Some(1));
        let (link, parts) = (Arc::new(link), Node::for_tests().sequencer_parts());
        let limits = Constants::default().limits();
        let mut node = Sequencer::new(parts, link.clone(), limits, noted);
        let entry = |index| {
            let data = write_set(link.node, index);
            Committed::Data { index, data, primary_term: None, level: LEVEL }
        };
        let mut rehearsal = node.rehearsal().expect("the database has more");
        let mut reaches = |index| rehearsal.reaches_database(entry(index)).unwrap();
        assert_eq!((reaches(1), reaches(2)), (noted.is_none(), true), "{noted:?}");
        node.apply(entry(1)).unwrap();
        assert_eq!((node.is_unlogged(true), node.is_unlogged(false)), (noted.is_some(), false));
        node.apply(entry(2)).unwrap();
        assert!(!node.is_unlogged(true) && node.rehearsal().is_none());
    }
}

#[test]
fn a_state_that_is_fetched_may_be_of_any_place_until_the_log_has_come_there() {
    let (mut node, link) = sequencer(Some(0));
    let mut next = |index| {
        let data = write_set(link.node, index);
        node.apply(Committed::Data { index, data, primary_term: None, level: LEVEL }).unwrap();
        node.is_unlogged(false)
    };
    assert!(!next(1));
    link.fetches();
    assert!(next(2));
    link.fetched(-1);
    assert!(!next(3), "the donor was busy");
    link.fetches();
    link.fetched(5);
    assert!(next(4));
    assert!(!next(5));
}
