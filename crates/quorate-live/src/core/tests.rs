use super::*;
use crate::tests::common::Cluster;
use quorate_group::LogFigures;

/// As a thread does that finds the machine taken.
fn hand_in(core: &Core, serial: u64) {
    let proposal = Proposal::new(EntryKind::Data, Bytes::from_static(b"x"));
    core.intake.lock().push(serial, proposal);
    core.set_fresh();
}

#[test]
fn what_is_handed_in_while_the_caller_feeds_is_taken_in_when_it_has_fed() {
    const ROUNDS: u64 = 50;
    let cluster = Cluster::started("handed-in", 1);
    let core = &cluster.nodes[0].group().live.core;
    // Read before anything is taken in that waits.
    let last =
        || core.with(|machine, now_ms, _| machine.status(now_ms, LogFigures::default()).last_index);
    let taken_in = |round: &u64| {
        let before = last();
        core.with_feeding(|_, _, _| (), || hand_in(core, (1 << 40) + round));
        last() > before
    };
    // Now and then another thread holds the machine, and takes it in a moment later.
    let taken_in = (0..ROUNDS).filter(taken_in).count() as u64;
    assert!(taken_in > ROUNDS * 9 / 10, "{taken_in}");
}
