//! The rules of certification one by one, each beside the sentence that it comes from.

mod support;

use quorate_certify::flags::*;
use quorate_certify::*;
use support::{key, write_set};
use KeyType::*;
use Outcome::*;

const A: u128 = 0xa;
const B: u128 = 0xb;

struct Group {
    certifier: Certifier,
    serial: u64,
}

impl Group {
    fn new() -> Group {
        Group::with(Limits { window: 100, keys_max: 1000 })
    }

    fn with(limits: Limits) -> Group {
        Group { certifier: Certifier::starting_at(limits, 0), serial: 0 }
    }

    /// With A and B in a view, at seqno 1.
    fn in_view() -> Group {
        let mut group = Group::new();
        assert_eq!(group.certifier.sequence_view([A, B].into_iter()), 1);
        group
    }

    /// A fragment that is not the first follows something at its `last_seen`.
    fn send(&mut self, origin: u128, flags: u32, last_seen: Seqno, keys: &[Key]) -> Verdict {
        self.serial += 1;
        let mut header = Header { flags, ..Header::transaction(origin, self.serial, last_seen) };
        if flags & TRX_START == 0 {
            header.pa_range = 0;
        }
        self.certifier.sequence(&write_set(&header, keys))
    }

    fn trx(&mut self, origin: u128, last_seen: Seqno, keys: &[Key]) -> Verdict {
        self.send(origin, TRX_START | TRX_END, last_seen, keys)
    }
}

fn verdict(seqno: Seqno, outcome: Outcome, depends_on: Seqno) -> Verdict {
    Verdict { seqno, outcome, depends_on }
}

/// Every pair of types, seen and unseen, from the same and another server, in TOI and not.
#[test]
fn conflict_table() {
    const FREE: &str = "-";
    const DEPENDS: &str = "D";
    const CONFLICT: &str = "C";
    let table = [
        (Shared, [FREE, FREE, DEPENDS, DEPENDS]),
        (Reference, [FREE, FREE, DEPENDS, CONFLICT]),
        (Update, [DEPENDS, DEPENDS, CONFLICT, CONFLICT]),
        (Exclusive, [CONFLICT, CONFLICT, CONFLICT, CONFLICT]),
    ];
    for (earlier, row) in table {
        for (later, expected) in KeyType::ALL.into_iter().zip(row) {
            for (origin, toi, seen) in
                (0..8).map(|n| (if n & 1 == 0 { A } else { B }, n & 2 != 0, n & 4 != 0))
            {
                let mut group = Group::new();
                let isolation = if toi { ISOLATION } else { 0 };
                group.send(A, TRX_START | TRX_END | isolation, 0, &[key(0, earlier)]);
                let got = group.trx(origin, i64::from(seen), &[key(0, later)]);
                let counts = !seen && (toi || origin == B);
                let want = match expected {
                    CONFLICT if counts => {
                        // TOI orders all that is later; a failed write set depends on nothing more.
                        verdict(2, Conflict { with: 1 }, i64::from(toi))
                    }
                    FREE => verdict(2, Ok, i64::from(toi)),
                    _ => verdict(2, Ok, 1),
                };
                let case = format!("{earlier:?} then {later:?}, toi {toi}, seen {seen}");
                assert_eq!(got, want, "{case}");
                // Another path never matters.
                let other = group.trx(B, i64::from(toi), &[key(1, Exclusive)]);
                assert_eq!(other.outcome, Ok, "{case}");
            }
        }
    }
}

#[test]
fn own_later_write_does_not_hide_a_stranger() {
    let mut group = Group::new();
    let row = [key(0, Exclusive)];
    assert_eq!(group.trx(A, 0, &row), verdict(1, Ok, 0));
    assert_eq!(group.trx(B, 1, &row), verdict(2, Ok, 1));
    // A delayed proposal of B that had not seen A's write: B's own, newer one stands before it.
    assert_eq!(group.trx(B, 0, &row), verdict(3, Conflict { with: 1 }, 0));
    assert_eq!(group.trx(B, 1, &row), verdict(4, Ok, 2));
}

#[test]
fn conflict_names_the_newest() {
    let mut group = Group::new();
    group.trx(A, 0, &[key(0, Exclusive)]);
    group.trx(A, 0, &[key(1, Exclusive)]);
    group.trx(A, 0, &[key(2, Exclusive)]);
    let keys = [key(0, Update), key(1, Update), key(2, Update)];
    assert_eq!(group.trx(B, 0, &keys).outcome, Conflict { with: 3 });
    assert_eq!(group.trx(B, 2, &keys[..2]), verdict(5, Ok, 2));
}

#[test]
fn failed_write_sets_leave_no_keys() {
    let mut group = Group::new();
    group.trx(A, 0, &[key(0, Exclusive)]);
    assert_eq!(group.trx(B, 0, &[key(0, Update), key(1, Exclusive)]).outcome, Conflict { with: 1 });
    assert_eq!(group.trx(A, 1, &[key(1, Exclusive)]), verdict(3, Ok, 0));
}

#[test]
fn toi_is_not_tested_and_orders_everything() {
    let mut group = Group::new();
    group.trx(A, 0, &[key(0, Exclusive)]);
    let toi = group.send(B, TRX_START | TRX_END | ISOLATION, 0, &[key(0, Exclusive)]);
    assert_eq!(toi, verdict(2, Ok, 1));
    assert_eq!(group.trx(A, 0, &[key(7, Shared)]), verdict(3, Ok, 2));
    // Even its own server's transactions conflict with it.
    assert_eq!(group.trx(B, 1, &[key(0, Reference)]).outcome, Conflict { with: 2 });
}

#[test]
fn pa_unsafe_and_views_order_everything() {
    let mut group = Group::new();
    group.trx(A, 0, &[key(0, Exclusive)]);
    assert_eq!(group.send(A, TRX_START | TRX_END | PA_UNSAFE, 0, &[]), verdict(2, Ok, 1));
    assert_eq!(group.trx(A, 0, &[key(1, Exclusive)]), verdict(3, Ok, 2));
    assert_eq!(group.certifier.sequence_view([A, B].into_iter()), 4);
    assert_eq!(group.trx(A, 0, &[key(2, Exclusive)]), verdict(5, Ok, 4));
    // One that fails orders nobody.
    assert_eq!(
        group.send(B, TRX_START | TRX_END | PA_UNSAFE, 0, &[key(0, Update)]),
        verdict(6, Conflict { with: 1 }, 4)
    );
    assert_eq!(group.trx(A, 0, &[]), verdict(7, Ok, 4));
}

#[test]
fn dependencies_can_be_asked_for() {
    let mut group = Group::new();
    for _ in 0..9 {
        group.trx(A, 0, &[]);
    }
    let ask = |serial, flags, last_seen, pa_range| {
        let header = Header::transaction(A, serial, last_seen);
        write_set(&Header { flags: header.flags | flags, pa_range, ..header }, &[])
    };
    let any = Header::PA_RANGE_ANY;
    assert_eq!(group.certifier.sequence(&ask(91, 0, 8, any)).depends_on, 0);
    assert_eq!(group.certifier.sequence(&ask(92, 0, 8, 3)).depends_on, 5);
    assert_eq!(group.certifier.sequence(&ask(93, 0, 8, 0)).depends_on, 8);
    assert_eq!(group.certifier.sequence(&ask(94, IMPLICIT_DEPS, 7, any)).depends_on, 7);
}

#[test]
fn streaming_fragments() {
    let mut group = Group::in_view();
    let row = [key(0, Exclusive)];
    // Each fragment is certified; those of one server never conflict with each other.
    assert_eq!(group.send(A, TRX_START, 1, &row), verdict(2, Ok, 1));
    assert_eq!(group.send(A, 0, 1, &row), verdict(3, Ok, 2));
    assert_eq!(group.trx(B, 1, &row).outcome, Conflict { with: 3 });
    assert_eq!(group.send(A, TRX_END | PA_UNSAFE, 1, &[key(0, Shared)]), verdict(5, Ok, 4));

    // A rollback is never tested, enters nothing, and orders everything.
    group.send(A, TRX_START, 5, &[key(1, Exclusive)]);
    group.trx(B, 6, &[key(2, Exclusive)]);
    assert_eq!(group.send(A, ROLLBACK, 5, &[key(2, Exclusive)]), verdict(8, Ok, 7));
    assert_eq!(group.trx(B, 6, &[key(2, Exclusive)]), verdict(9, Ok, 8));

    // A fragment that fails rolls its transaction back, so it orders everything too.
    group.send(A, TRX_START, 9, &[key(3, Exclusive)]);
    group.trx(B, 9, &[key(4, Exclusive)]);
    assert_eq!(group.send(A, 0, 10, &[key(4, Update)]), verdict(12, Conflict { with: 11 }, 11));
    assert_eq!(group.trx(B, 11, &[key(5, Exclusive)]), verdict(13, Ok, 12));
    // The first fragment has nothing to roll back.
    assert_eq!(group.send(A, TRX_START, 10, &[key(4, Update)]).outcome, Conflict { with: 11 });
    assert_eq!(group.trx(B, 11, &[key(6, Exclusive)]), verdict(15, Ok, 12));
}

#[test]
fn a_view_ends_the_streaming_transactions_of_who_is_out() {
    let mut group = Group::in_view();
    let row = [key(0, Exclusive)];
    assert_eq!(group.send(A, TRX_START, 1, &row), verdict(2, Ok, 1));
    assert_eq!(group.certifier.sequence_view([B].into_iter()), 3);
    // It has not heard of that yet. Its failure is ordered like a rollback.
    assert_eq!(group.send(A, 0, 2, &[key(1, Exclusive)]), verdict(4, Orphan, 3));
    assert_eq!(group.certifier.sequence_view([A, B].into_iter()), 5);
    let last = Header { flags: TRX_END | PA_UNSAFE, pa_range: 3, ..Header::transaction(A, 9, 5) };
    assert_eq!(group.certifier.sequence(&write_set(&last, &[])), verdict(6, Orphan, 5));
    // Whole transactions are not concerned, nor what begins anew.
    assert_eq!(group.trx(A, 2, &[key(2, Exclusive)]).outcome, Ok);
    assert_eq!(group.send(A, TRX_START, 5, &row).outcome, Ok);
    let restored = Certifier::restore(&group.certifier.snapshot()).unwrap();
    assert_eq!(restored.members(), group.certifier.members());
}

#[test]
fn copies_do_nothing() {
    let mut group = Group::in_view();
    let header = Header { flags: 0, pa_range: 0, ..Header::transaction(A, 77, 1) };
    let fragment = write_set(&header, &[key(0, Exclusive)]);
    assert_eq!(group.certifier.sequence(&fragment), verdict(2, Ok, 1));
    assert_eq!(group.certifier.sequence(&fragment), verdict(3, Duplicate, 1));
    assert_eq!(group.trx(B, 2, &[key(0, Exclusive)]), verdict(4, Ok, 2));
    // The serial alone is nobody's identity.
    let other = write_set(&Header { origin: B, ..header }, &[]);
    assert_eq!(group.certifier.sequence(&other).outcome, Ok);
}

/// With a single primary only what the leader of the entry's term proposed as such passes. Copies
/// stay copies, conflicts stay conflicts, and what was begun may always be ended.
#[test]
fn a_single_primary_is_the_leader_of_the_term() {
    let whole = TRX_START | TRX_END;
    let mut serial = 0;
    let mut stamped = |flags, term, last_seen, keys: &[Key]| {
        serial += 1;
        let header = Header { flags, term, ..Header::transaction(A, serial, last_seen) };
        write_set(&header, keys)
    };
    let row = [key(0, Exclusive)];
    let mut certifier = Certifier::new(100);
    certifier.sequence_view([A, B].into_iter());
    let first = stamped(whole, 7, 1, &row);
    assert_eq!(certifier.sequence_under(&first, Some(7)).outcome, Ok);
    assert_eq!(certifier.sequence_under(&first, Some(8)).outcome, Duplicate);
    let others = [
        (whole, 6, NotPrimary),
        (whole, 8, NotPrimary),
        (whole, 0, NotPrimary),
        (whole | ISOLATION, 6, NotPrimary),
        (TRX_START, 6, NotPrimary),
        (ROLLBACK, 0, Ok),
    ];
    for (flags, term, outcome) in others {
        let seen = certifier.seqno();
        let late = certifier.sequence_under(&stamped(flags, term, seen, &row), Some(7));
        assert_eq!(late.outcome, outcome, "flags {flags:#x} of term {term}");
    }
    // What is refused leaves no keys; and with every member a primary, terms mean nothing.
    let seen = certifier.seqno() - 1;
    assert_eq!(certifier.sequence_under(&stamped(whole, 7, seen, &row), Some(7)).outcome, Ok);
    let seen = certifier.seqno();
    assert_eq!(certifier.sequence_under(&stamped(whole, 3, seen, &row), None).outcome, Ok);
}

#[test]
fn last_seen_must_lie_in_the_window() {
    let mut group = Group::with(Limits { window: 4, keys_max: 1000 });
    let row = [key(0, Exclusive)];
    assert_eq!(group.trx(A, -1, &row).outcome, TooOld);
    assert_eq!(group.trx(A, 2, &row).outcome, TooOld);
    assert_eq!(group.trx(A, 0, &row), verdict(3, Ok, 0));
    assert_eq!(group.trx(A, i64::MAX, &row).outcome, TooOld);
    assert_eq!(group.trx(A, i64::MIN, &row).outcome, TooOld);
    // Five sequenced, four kept: seqno 1 is gone, 3 is known.
    assert_eq!(group.certifier.last_seen_min(), 1);
    assert_eq!(group.trx(B, 1, &row).outcome, Conflict { with: 3 });
    assert_eq!(group.trx(B, 1, &[]).outcome, TooOld);
    // Four more followed 3: it is forgotten, and depended on like all that is forgotten.
    assert_eq!(group.certifier.last_seen_min(), 3);
    assert_eq!(group.trx(B, 3, &row), verdict(8, Ok, 3));
}

/// Of two write sets of one server, one of which was given up, the second must have seen the first.
#[test]
fn kinship_ends_with_the_epoch() {
    let mut certifier = Certifier::new(100);
    let mut send = |serial, kin_epoch, flags, last_seen| {
        let header = Header { kin_epoch, flags, ..Header::transaction(A, serial, last_seen) };
        certifier.sequence(&write_set(&header, &[key(1, Update)])).outcome
    };
    let all = TRX_START | TRX_END;
    assert_eq!([send(1, 0, all, 0), send(2, 0, all, 0)], [Ok, Ok]);
    assert_eq!(send(3, 1, all, 1), Conflict { with: 2 }, "the given-up one came first");
    assert_eq!(send(4, 1, all, 2), Ok, "seen");
    assert_eq!(send(5, 0, all, 2), Conflict { with: 4 }, "the given-up one comes late");
    assert_eq!(send(6, 1, all, 2), Ok);
    assert_eq!(send(7, 1, all | ISOLATION, 2), Ok, "never tested");
    assert_eq!(send(8, 1, all, 6), Conflict { with: 7 }, "never kin");
}

#[test]
fn many_keys_shorten_the_window() {
    let mut group = Group::with(Limits { window: 100, keys_max: 10 });
    let keys = |from: u64, count: u64| -> Vec<Key> {
        (from..from + count).map(|path| key(path, Exclusive)).collect()
    };
    group.trx(A, 0, &keys(0, 4));
    group.trx(A, 0, &keys(10, 4));
    assert_eq!(group.certifier.last_seen_min(), 0);
    group.trx(A, 0, &keys(20, 4));
    assert_eq!(group.certifier.last_seen_min(), 1);
    assert_eq!(group.trx(B, 1, &keys(10, 1)).outcome, Conflict { with: 2 });

    // One that exceeds the limit alone is certified, then stands for everything before it.
    assert_eq!(group.trx(B, 1, &keys(20, 11)).outcome, Conflict { with: 3 });
    let huge = group.trx(B, 3, &keys(20, 11));
    assert_eq!(huge, verdict(6, Ok, 3));
    assert_eq!(group.certifier.last_seen_min(), 6);
    assert_eq!(group.trx(A, 5, &[]).outcome, TooOld);
    assert_eq!(group.trx(A, 6, &keys(20, 1)), verdict(8, Ok, 6));
}

/// The index holds no more than the window's keys once purging had a few items' time.
#[test]
fn purge_keeps_up() {
    let mut group = Group::with(Limits { window: 8, keys_max: 1_000_000 });
    let many: Vec<Key> = (0..5000).map(|path| key(path << 40, Update)).collect();
    group.trx(A, 0, &many);
    for seqno in 1..400 {
        group.trx(A, seqno, &[key((seqno as u64) << 30, Update)]);
    }
    assert_eq!(group.certifier.index_len(), 8);
}

#[test]
fn a_group_may_go_on_from_another_history() {
    let mut certifier = Certifier::starting_at(Limits { window: 4, keys_max: 10 }, 500);
    let early = write_set(&Header::transaction(A, 1, 499), &[]);
    assert_eq!(certifier.sequence(&early), verdict(501, TooOld, 500));
    let seen = write_set(&Header::transaction(A, 2, 500), &[]);
    assert_eq!(certifier.sequence(&seen), verdict(502, Ok, 500));
}
