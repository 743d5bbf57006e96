//! What an abort by a transaction with priority comes to, phase by phase.

use super::*;

fn fate(seqno: i64, ws_flags: u32) -> Fate {
    let (payload, parts, packed) = Default::default();
    Fate { seqno, depends_on: 0, certified: true, flags: ws_flags, payload, parts, packed }
}

const COMMIT: u32 = flags::TRX_START | flags::TRX_END;
const FRAGMENT: u32 = flags::TRX_START;

/// A transaction in `phase` whose fragment was ordered at 5.
fn ordered(phase: Phase, ws_flags: u32) -> Trx {
    let trx = Trx::new(1);
    trx.decide(fate(5, ws_flags));
    trx.lock().phase = phase;
    trx
}

fn order_at(last_left: i64) -> CommitOrder {
    let order = CommitOrder::new();
    order.set_position(last_left);
    order
}

#[test]
fn before_it_is_ordered_a_victim_is_only_marked() {
    let order = order_at(0);
    for phase in [Phase::Executing, Phase::Sending] {
        let trx = Trx::new(1);
        trx.lock().phase = phase;
        assert_eq!(trx.abort(9, &order), Abort::Marked(-1));
        assert_eq!(trx.lock().phase, Phase::MustAbort);
        assert_eq!(trx.abort(9, &order), Abort::Done(-1), "marked already");
        assert_eq!(trx.lock().phase, Phase::MustAbort);
    }
}

#[test]
fn a_victim_ordered_before_the_aborter_is_left_alone() {
    let trx = ordered(Phase::Ordered, COMMIT);
    assert_eq!(trx.abort(6, &order_at(0)), Abort::NotAllowed(5));
    assert_eq!(trx.lock().phase, Phase::Ordered);
}

#[test]
fn a_kill_has_no_order_and_aborts_what_has_not_committed() {
    let trx = ordered(Phase::Ordered, COMMIT);
    assert_eq!(trx.abort(0, &order_at(0)), Abort::Marked(5));
    assert_eq!(trx.enter_commit(&order_at(4), &CommitLatency::default()), Ok(EnterResult::Replay));
    assert_eq!(trx.lock().phase, Phase::MustReplay);
}

#[test]
fn an_aborted_fragment_fails_instead_of_being_replayed() {
    let trx = ordered(Phase::Ordered, FRAGMENT);
    assert_eq!(trx.abort(6, &order_at(0)), Abort::Marked(5), "even by a later one");
    assert_eq!(trx.enter_commit(&order_at(4), &CommitLatency::default()), Ok(EnterResult::Failed));
    assert_eq!(trx.lock().phase, Phase::Aborting);
}

#[test]
fn waiting_for_commit_order_ends_in_a_replay() {
    let order = Arc::new(order_at(0));
    let trx = Arc::new(ordered(Phase::Ordered, COMMIT));
    let waiter = {
        let (order, trx) = (order.clone(), trx.clone());
        std::thread::spawn(move || trx.enter_commit(&order, &CommitLatency::default()))
    };
    while trx.lock().phase != Phase::Committing {
        std::thread::yield_now();
    }
    assert_eq!(trx.abort(3, &order), Abort::Marked(5));
    assert_eq!(waiter.join().unwrap(), Ok(EnterResult::Replay));
}

#[test]
fn inside_commit_order_a_commit_cannot_be_aborted_any_more() {
    let order = order_at(4);
    let trx = ordered(Phase::Ordered, COMMIT);
    assert_eq!(trx.enter_commit(&order, &CommitLatency::default()), Ok(EnterResult::Entered));
    assert_eq!(trx.abort(3, &order), Abort::NotAllowed(5));
    trx.leave_commit(&order, &CommitLatency::default()).unwrap();
    assert_eq!(trx.lock().phase, Phase::Committed);
    assert_eq!(trx.abort(3, &order), Abort::NotAllowed(5));
    assert_eq!(order.last_left(), 5);
}

#[test]
fn inside_commit_order_a_fragment_is_marked_and_told_at_its_release() {
    let order = order_at(4);
    let trx = ordered(Phase::Ordered, FRAGMENT);
    assert_eq!(trx.enter_commit(&order, &CommitLatency::default()), Ok(EnterResult::Entered));
    assert_eq!(trx.abort(3, &order), Abort::Marked(5));
    trx.leave_commit(&order, &CommitLatency::default()).unwrap();
    let state = trx.lock();
    assert!(state.deferred_abort);
    assert_eq!(state.phase, Phase::Aborting);
}

#[test]
fn a_failed_one_passes_commit_order_undisturbed() {
    let order = order_at(4);
    let trx = ordered(Phase::Aborting, COMMIT);
    let another_with_this_id = trx.abort(3, &order);
    assert_eq!(
        another_with_this_id,
        Abort::Done(5),
        "its streaming transaction may be rolled back"
    );
    assert_eq!(trx.lock().phase, Phase::Aborting);
    assert_eq!(trx.enter_commit(&order, &CommitLatency::default()), Ok(EnterResult::Entered));
    trx.leave_commit(&order, &CommitLatency::default()).unwrap();
    assert_eq!(trx.lock().phase, Phase::RolledBack);
}

#[test]
fn a_replaying_one_is_not_aborted_again() {
    let order = order_at(4);
    let trx = ordered(Phase::Replaying, COMMIT);
    assert_eq!(trx.abort(3, &order), Abort::Done(5));
    assert_eq!(trx.lock().phase, Phase::Replaying);
    assert_eq!(trx.enter_commit(&order, &CommitLatency::default()), Ok(EnterResult::Entered));
    trx.leave_commit(&order, &CommitLatency::default()).unwrap();
    assert_eq!(trx.lock().phase, Phase::Committed);
}

#[test]
fn a_fate_wakes_its_owner_and_giving_up_ends_the_wait() {
    let trx = Arc::new(Trx::new(1));
    let owner = {
        let trx = trx.clone();
        std::thread::spawn(move || trx.await_fate(trx.lock(), || false).seqno())
    };
    trx.decide(fate(8, COMMIT));
    assert_eq!(owner.join().unwrap(), 8);
    let other = Trx::new(2);
    assert!(other.await_fate(other.lock(), || true).fate.is_none());
}

#[test]
fn each_stage_of_a_commit_is_counted_once_and_only_of_what_was_proposed() {
    let latency = CommitLatency::default();
    let counts = || {
        let report = latency.report();
        [report.replicate, report.order, report.commit].map(|stage| stage.count())
    };
    for proposed in [false, true, true] {
        let (trx, order) = (ordered(Phase::Ordered, COMMIT), order_at(4));
        if proposed {
            trx.lock().begin_commit();
            trx.lock().end_stage(&latency.replicate, now());
            trx.lock().phase = Phase::Ordered;
        }
        for _ in 0..2 {
            assert_eq!(trx.enter_commit(&order, &latency), Ok(EnterResult::Entered));
        }
        for _ in 0..2 {
            trx.leave_commit(&order, &latency).unwrap();
        }
    }
    assert_eq!(counts(), [2, 2, 2]);
    let (victim, order) = (ordered(Phase::Ordered, COMMIT), order_at(4));
    victim.lock().begin_commit();
    victim.lock().phase = Phase::MustAbort;
    assert_eq!(victim.enter_commit(&order, &latency), Ok(EnterResult::Replay));
    victim.lock().phase = Phase::Replaying;
    assert_eq!(victim.enter_commit(&order, &latency), Ok(EnterResult::Entered));
    victim.leave_commit(&order, &latency).unwrap();
    assert_eq!(counts(), [2, 2, 2], "what is applied again first");
}

#[test]
fn what_nobody_can_read_does_not_count_as_committed_at_its_origin() {
    let remote = |committed, unreadable: Option<&str>| {
        let unreadable = unreadable.map(str::to_owned);
        Remote { unreadable, ..Remote::new(5, committed) }.is_committed()
    };
    assert!(remote(true, None));
    assert!(!remote(false, None) && !remote(true, Some("not what it said")));
}
