use super::*;
use proptest::prelude::*;

fn step() -> impl Strategy<Value = Step> {
    let list = prop::option::of(prop::collection::vec(any::<u64>(), 0..4));
    prop_oneof![
        (any::<u32>(), any::<u64>()).prop_map(|(key, value)| Step::Append { key, value }),
        (any::<u32>(), list).prop_map(|(key, list)| Step::Read { key, list }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let ids = prop::collection::vec(0..50u64, 0..20);
    let pairs = prop::collection::vec(any::<(u64, u64)>(), 0..4);
    prop_oneof![
        any::<(u64, u32)>().prop_map(|(first, rows)| Action::Insert { first, rows }),
        ids.prop_map(|mut ids| {
            ids.sort_unstable();
            Action::Present(IdSet::from_sorted(ids))
        }),
        any::<(u32, u32, i64)>().prop_map(|(from, to, amount)| Action::Transfer {
            from,
            to,
            amount
        }),
        prop::collection::vec(any::<i64>(), 0..5).prop_map(Action::Balances),
        any::<u32>().prop_map(|counter| Action::Add { counter }),
        prop::collection::vec(any::<i64>(), 0..5).prop_map(Action::Counters),
        prop::collection::vec(step(), 0..5).prop_map(Action::Txn),
        any::<(u32, u64)>().prop_map(|(register, value)| Action::Write { register, value }),
        any::<(u32, u64)>().prop_map(|(register, value)| Action::Read { register, value }),
        any::<(u64, u64)>().prop_map(|(id, parent)| Action::Child { id, parent }),
        any::<u64>().prop_map(|parent| Action::Delete { parent }),
        pairs.prop_map(Action::Children),
        "[A-Z]{1,8}( [a-z0-9_]{1,8}){0,4}".prop_map(Action::Statement),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let outcome = prop_oneof![Just(Outcome::Ok), Just(Outcome::Fail), Just(Outcome::Unknown)];
    let head = any::<(u64, u64, u32, u16)>();
    (head, outcome, action(), "[a-z0-9 #:']{0,20}").prop_map(|(head, outcome, action, note)| {
        let (begin_us, end_us, process, node) = head;
        Operation { begin_us, end_us, process, node, outcome, action, note }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(operations in prop::collection::vec(operation(), 0..8)) {
        let text: String = operations.iter().map(|operation| format!("{operation}\n")).collect();
        prop_assert_eq!(read(text.as_bytes()).unwrap(), operations);
    }

    #[test]
    fn a_set_has_its_ids(mut ids in prop::collection::vec(0..60u64, 0..40)) {
        ids.sort_unstable();
        let set = IdSet::from_sorted(ids.iter().copied());
        let mut once = ids.clone();
        once.dedup();
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), once.clone());
        prop_assert_eq!(set.len() as usize, once.len());
        prop_assert_eq!(set.repeated.len(), ids.len() - once.len());
        prop_assert!((0..60).all(|id| set.contains(id) == once.contains(&id)));
    }
}

#[test]
fn a_line_that_was_cut_off_is_left_out_and_nonsense_is_named() {
    let text = "1 2 p3 n1 ok add 4\n5 6 p3 n1 ok ad";
    assert_eq!(read(text.as_bytes()).unwrap().len(), 1);
    let error = read("1 2 p3 n1 ok add 4\n1 2 p3 n1 maybe add 4\n".as_bytes()).unwrap_err();
    assert!(error.to_string().starts_with("line 2 of the history"), "{error}");
}
