//! Random histories: the certifier against the model, against itself restored from a snapshot, and
//! against garbage.

mod plain;
#[path = "../support/mod.rs"]
mod support;

use plain::Model;
use proptest::prelude::*;
use quorate_certify::*;
use support::write_set;
use twox_hash::XxHash3_64;

#[derive(Clone, Debug)]
enum Step {
    /// Of the origins whose bits are set.
    View(u8),
    Propose {
        header: Header,
        lag: Seqno,
        keys: Vec<Key>,
    },
    /// The proposal made that many steps ago arrives again.
    Repeat {
        back: usize,
    },
    /// One of two certifiers is replaced by its snapshot.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let key = (0u64..12, 0usize..4).prop_map(|(p, t)| support::key(p, KeyType::ALL[t]));
    let keys = prop_oneof![
        20 => prop::collection::vec(key.clone(), 0..6),
        1 => prop::collection::vec(key, 0..60),
    ];
    let all = flags::TRX_START | flags::TRX_END;
    let flags = prop_oneof![
        20 => Just(all),
        2 => Just(flags::TRX_START),
        2 => Just(0),
        2 => Just(flags::TRX_END | flags::PA_UNSAFE),
        1 => Just(flags::ROLLBACK | flags::PA_UNSAFE),
        1 => Just(flags::ROLLBACK),
        2 => Just(all | flags::ISOLATION),
        1 => Just(all | flags::PA_UNSAFE),
        1 => Just(all | flags::IMPLICIT_DEPS),
    ];
    let range = prop_oneof![4 => Just(Header::PA_RANGE_ANY), 1 => 0u32..8];
    let lag = prop_oneof![20 => 1i64..6, 5 => 1i64..30, 1 => -2i64..100];
    let epoch = prop_oneof![4 => Just(0u16), 1 => 0u16..3];
    let propose = (flags, 1u128..4, range, epoch, lag, keys);
    let propose = propose.prop_map(|(flags, origin, pa_range, kin_epoch, lag, keys)| {
        let header = Header { flags, pa_range, kin_epoch, ..Header::transaction(origin, 0, 0) };
        Step::Propose { header, lag, keys }
    });
    prop_oneof![
        1 => prop_oneof![1 => 0u8..16, 3 => Just(0b1110)].prop_map(Step::View),
        40 => propose,
        3 => (0usize..40).prop_map(|back| Step::Repeat { back }),
        1 => Just(Step::Restart),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    (1u32..24, 1u64..120).prop_map(|(window, keys_max)| Limits { window, keys_max })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn agrees_with_the_model(
        limits in limits(),
        // The index keeps the lowest 32 bits of seqnos.
        start in prop_oneof![Just(0), Just((1i64 << 32) - 40)],
        steps in prop::collection::vec(step(), 0..300),
    ) {
        let mut model = Model::new(limits, start);
        let mut steady = Certifier::starting_at(limits, start);
        let mut restarted = Certifier::starting_at(limits, start);
        let mut proposals: Vec<WriteSet> = Vec::new();
        for (serial, step) in steps.into_iter().enumerate() {
            let proposal = match step {
                Step::View(bits) => {
                    let seqno = model.sequence_view(&origins(bits).collect::<Vec<_>>());
                    prop_assert_eq!(steady.sequence_view(origins(bits)), seqno);
                    prop_assert_eq!(restarted.sequence_view(origins(bits)), seqno);
                    continue;
                }
                Step::Restart => {
                    let snapshot = restarted.snapshot();
                    prop_assert_eq!(&snapshot, &steady.snapshot());
                    restarted = Certifier::restore(&snapshot).expect("own snapshot");
                    prop_assert_eq!(restarted.snapshot(), snapshot);
                    continue;
                }
                Step::Propose { header, lag, keys } => {
                    let last_seen = model.seqno() + 1 - lag;
                    write_set(&Header { serial: serial as u64, last_seen, ..header }, &keys)
                }
                Step::Repeat { back } => match proposals.iter().rev().nth(back) {
                    Some(proposal) => proposal.clone(),
                    None => continue,
                },
            };
            let expected = model.sequence(&proposal);
            prop_assert_eq!(steady.sequence(&proposal), expected);
            prop_assert_eq!(restarted.sequence(&proposal), expected);
            prop_assert_eq!(steady.digest(), restarted.digest());
            prop_assert!(expected.depends_on < expected.seqno);
            proposals.push(proposal);
        }
    }

    /// However late a copy comes, and whatever the limits: one of them passes at most.
    #[test]
    fn passes_at_most_once(limits in limits(), order in prop::collection::vec(0u64..40, 0..400)) {
        let mut certifier = Certifier::starting_at(limits, 0);
        let mut made = std::collections::HashMap::new();
        let mut passed = std::collections::HashSet::new();
        for serial in order {
            let last_seen = certifier.seqno();
            let proposal = made.entry(serial).or_insert_with(|| {
                let keys = [support::key(serial % 7, KeyType::Update)];
                write_set(&Header::transaction(1, serial, last_seen), &keys)
            });
            if certifier.sequence(proposal).outcome == Outcome::Ok {
                prop_assert!(passed.insert(serial), "serial {} passed twice", serial);
            }
        }
    }

    /// A row that a server counts up, whose locks keep its transactions apart: each reads what the
    /// one before wrote. Its sessions give proposals up, which drops the lock though the log may
    /// still order them, sooner or later, or never. What passes counts, each exactly once.
    #[test]
    fn a_given_up_write_set_is_not_overwritten_nor_overwrites(
        steps in prop::collection::vec((0u8..3, 0usize..4, any::<bool>()), 1..60),
    ) {
        let mut certifier = Certifier::new(64);
        let row = [support::key(1, KeyType::Update)];
        let (mut on_its_way, mut epoch) = (Vec::new(), 0);
        // The row in this server's database and, by the log, in everybody's.
        let (mut here, mut seen, mut logged, mut passed) = (0u64, 0, 0u64, 0u64);
        for (serial, (lag, place, gives_up)) in steps.into_iter().enumerate() {
            // Not all of what is ordered is applied here yet.
            let applied = certifier.seqno() - Seqno::from(lag);
            if applied > seen {
                (here, seen) = (logged, certifier.seqno());
            }
            let header = Header { kin_epoch: epoch, ..Header::transaction(1, serial as u64, seen) };
            on_its_way.push((write_set(&header, &row), here + 1));
            if gives_up {
                epoch += 1;
                continue;
            }
            // The session waits for the last one; earlier ones come now, in any order, or later.
            let (own, written) = on_its_way.pop().expect("just pushed");
            let earlier = on_its_way.split_off(on_its_way.len() - place.min(on_its_way.len()));
            let mut order = |set: &WriteSet, image: u64| {
                let ok = certifier.sequence(set).outcome == Outcome::Ok;
                if ok {
                    logged = image;
                    passed += 1;
                }
                ok
            };
            earlier.iter().for_each(|(set, image)| { order(set, *image); });
            if order(&own, written) {
                here = written;
            }
        }
        prop_assert_eq!(logged, passed, "additions that passed, and what is left of them");
    }

    #[test]
    fn damaged_snapshots_are_refused(
        steps in prop::collection::vec(step(), 0..60),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
        cut in any::<prop::sample::Index>(),
    ) {
        let snapshot = grown(steps).snapshot();
        let mut mutant = snapshot.to_vec();
        mutant[at.index(snapshot.len())] ^= flip;
        prop_assert!(Certifier::restore(&mutant).is_err());
        prop_assert!(Certifier::restore(&snapshot[..cut.index(snapshot.len())]).is_err());
    }

    /// A snapshot that is wrong under a right checksum is refused, or is a state like any other.
    #[test]
    fn forged_snapshots_never_panic(
        steps in prop::collection::vec(step(), 0..60),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        probe in prop::collection::vec(step(), 1..10),
    ) {
        let mut forged = grown(steps).snapshot().to_vec();
        forged.truncate(forged.len() - 8);
        for (at, value) in edits {
            // Half of the edits hit the 53 bytes of limits, seqnos and counts.
            let len = if value & 1 == 0 { 53 } else { forged.len() };
            let at = at.index(len);
            forged[at] = value;
        }
        let checksum = XxHash3_64::oneshot(&forged);
        forged.extend_from_slice(&checksum.to_le_bytes());
        if let Ok(mut certifier) = Certifier::restore(&forged) {
            let again = Certifier::restore(&certifier.snapshot()).expect("own snapshot");
            prop_assert_eq!(again.digest(), certifier.digest());
            feed(&mut certifier, probe);
        }
    }
}

/// `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(600), ..default }
}

fn origins(bits: u8) -> impl Iterator<Item = u128> {
    (0..8).filter(move |bit| bits >> bit & 1 == 1)
}

fn grown(steps: Vec<Step>) -> Certifier {
    let mut certifier = Certifier::starting_at(Limits { window: 16, keys_max: 100 }, 0);
    feed(&mut certifier, steps);
    certifier
}

fn feed(certifier: &mut Certifier, steps: Vec<Step>) {
    for (serial, step) in steps.into_iter().enumerate() {
        match step {
            Step::View(bits) => {
                certifier.sequence_view(origins(bits));
            }
            Step::Propose { header, lag, keys } => {
                let last_seen = certifier.seqno() + 1 - lag;
                let header = Header { serial: serial as u64, last_seen, ..header };
                certifier.sequence(&write_set(&header, &keys));
            }
            Step::Repeat { .. } | Step::Restart => {}
        }
    }
}
