use super::*;
use crate::disk::sim::{Crash, Faults, SimDisk};

fn meta(term: u64) -> Meta {
    Meta {
        identity: Identity {
            member: MemberId(u128::MAX / 3),
            group: 17,
            charter: Charter([1, 2, 3, 4, u64::MAX - term]),
            incarnation: term as u32,
        },
        hard_state: HardState { term, voted_for: Some(MemberId(u128::from(term) << 70)) },
        first_segment: term,
        base: LogPosition { term: 2, index: 1 << 40 },
        synced: Place { segment: term, offset: 1 << 33 },
        closed: term % 2 == 0,
    }
}

fn none() -> DiskKeys {
    DiskKeys::default()
}

/// Where a member goes on that had this term and lost a slot.
fn ahead(term: u64) -> HardState {
    HardState { term: term + TERMS_AHEAD, voted_for: None }
}

#[test]
fn a_slot_reads_back() {
    let slot = Slot { sequence: 7, ceiling: 1 << 50, meta: meta(3) };
    let bytes = encode_slot(&slot, None);
    assert_eq!(decode_slot(&bytes), Ok(slot));
    assert_eq!(decode_slot(&bytes[..100]), Err(SlotError::Foreign));
}

/// Also when the power fails again and again, each time while the file is written.
#[test]
fn a_torn_write_leaves_the_old_or_the_new_content() {
    for seed in 0..2000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut disk = SimDisk::new(seed);
        let (mut saved, mut tried) = (1, 1);
        MetaFile::create(&disk, none(), meta(saved)).unwrap();
        for _ in 0..8 {
            let mut file = MetaFile::open(&disk, none()).unwrap();
            let found = u64::from(file.content().identity.incarnation);
            assert!((saved..=tried).contains(&found), "seed {seed}: {found} of {saved}..={tried}");
            let hard_state = file.content().hard_state;
            assert!(hard_state == meta(found).hard_state || hard_state == ahead(found));
            tried += 1;
            disk.inject(Faults { dies_after: Some(rng.u64(..10)), ..Faults::default() });
            if file.settle().and_then(|()| file.save(meta(tried))).is_ok() {
                saved = tried;
                assert_eq!(MetaFile::open(&disk, none()).unwrap().content(), meta(saved));
            }
            disk = disk.crash(if rng.bool() { Crash::Power } else { Crash::Kill });
        }
    }
}

fn vote(term: u64, candidate: u128) -> HardState {
    HardState { term, voted_for: Some(MemberId(candidate)) }
}

#[test]
fn a_vote_takes_one_sync() {
    let disk = SimDisk::new(1);
    let mut file = MetaFile::create(&disk, none(), meta(1)).unwrap();
    let mut writes = |content: Meta| {
        let before = disk.operations();
        file.save(content).unwrap();
        assert_eq!(MetaFile::open(&disk, none()).unwrap().content(), content);
        (disk.operations() - before) / 2
    };
    let voting = |hard_state| Meta { hard_state, ..meta(1) };
    for term in 1..=TERMS_AHEAD {
        assert_eq!(writes(voting(vote(term, 7))), 1, "{term}");
    }
    let term = TERMS_AHEAD + 1;
    assert_eq!(writes(voting(vote(term, 7))), 2, "from here on a lost slot would cost it");
    assert_eq!(writes(voting(vote(term + 1, 7))), 1);
    assert_eq!(writes(voting(vote(term, 8))), 2, "back");
    assert_eq!(writes(Meta { closed: true, ..voting(vote(term, 8)) }), 2, "not only a vote");
}

/// The power fails again and again, mostly while votes are saved, and then one slot rots or cannot be
/// read: the member finds its last answer, or goes on where it has never voted.
#[test]
fn one_lost_slot_never_costs_a_vote_that_was_answered() {
    let (mut kept, mut went_ahead) = (0, 0);
    for seed in 0..3000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut disk = SimDisk::new(seed);
        MetaFile::create(&disk, none(), meta(1)).unwrap();
        let (mut answered, mut tried) = (meta(1).hard_state, meta(1).hard_state);
        let mut whole = true;
        for _ in 0..6 {
            let mut file = MetaFile::open(&disk, none()).unwrap();
            let found = file.content().hard_state;
            if found == answered || found == tried {
                kept += 1;
            } else {
                assert!(found.term > answered.term && found.voted_for.is_none(), "seed {seed}");
                went_ahead += 1;
            }
            disk.inject(Faults { dies_after: Some(rng.u64(..16)), ..Faults::default() });
            // As an open does it, before it lets anything be answered.
            let mut content = file.content();
            content.identity.incarnation += 1;
            if file.settle().and_then(|()| file.save(content)).is_ok() {
                (answered, whole) = (found, true);
                loop {
                    let further = [1, 1, 1, 2, TERMS_AHEAD - 1, 2 * TERMS_AHEAD][rng.usize(..6)];
                    tried = vote(answered.term + further, rng.u128(..));
                    content.hard_state = tried;
                    if file.save(content).is_err() {
                        break;
                    }
                    answered = tried;
                }
            }
            disk = disk.crash(if rng.bool() { Crash::Power } else { Crash::Kill });
            assert!(!whole || MetaFile::open(&disk, none()).is_ok(), "seed {seed}: a crash alone");
            let slot = [0, 8][rng.usize(..2)];
            let harmed = match rng.u32(..3) {
                0 => disk.rot(META_NAME, slot),
                1 => disk.set_unreadable(META_NAME, slot),
                _ => false,
            };
            whole &= !harmed;
            if MetaFile::open(&disk, none()).is_err() {
                // The other one was lost before, or was being written.
                break;
            }
        }
    }
    assert!(kept > 1000 && went_ahead > 1000, "{kept} {went_ahead}");
}

#[test]
fn what_somebody_without_the_key_wrote_is_damaged() {
    let disk = SimDisk::new(1);
    let keys = || DiskKeys::new(&[[7; 32]], true);
    let demanding = || keys().refusing_plain();
    let content = |keys| MetaFile::open(&disk, keys).map(|file| file.content());
    MetaFile::create(&disk, keys(), meta(5)).unwrap();
    assert_eq!(content(demanding()).unwrap(), meta(5));
    for others in [none(), DiskKeys::new(&[[8; 32]], true)] {
        assert!(matches!(content(others), Err(WalError::NoKey { .. })));
    }
    let file = disk.open(META_NAME).unwrap();
    let write = |slot: u64, bytes: &[u8]| file.write_all_at(bytes, slot * SLOT_STRIDE).unwrap();
    let slot = |slot: u64| {
        let mut bytes = [0; SLOT_BYTES];
        file.read_exact_at(&mut bytes, slot * SLOT_STRIDE).unwrap();
        bytes
    };
    // Less was synced, says somebody who can make a checksum.
    let genuine = slot(0);
    let mut forged = genuine;
    forged[168..176].copy_from_slice(&0u64.to_le_bytes());
    let forged = with_checksum(&forged);
    assert!(decode_slot(&forged).is_ok());
    write(0, &forged);
    assert_eq!(content(keys()).unwrap().hard_state, ahead(5), "it counts as lost");
    write(1, &forged);
    assert!(matches!(content(keys()), Err(WalError::Damaged { .. })));
    // Or a node without encryption.
    let plain = encode_slot(&Slot { sequence: 9, ceiling: 1 << 20, meta: meta(6) }, None);
    (0..2).for_each(|slot| write(slot, &plain));
    assert!(matches!(content(demanding()), Err(WalError::Plain { .. })));
    let mut file = MetaFile::open(&disk, keys()).unwrap();
    assert_eq!(file.content(), meta(6), "before it was encrypted");
    file.save(meta(7)).unwrap();
    assert_eq!(content(demanding()).unwrap(), meta(7));
    (0..2).for_each(|slot| write(slot, &genuine));
    assert_eq!(content(demanding()).unwrap(), meta(5), "an older one of its own, as it was");
}
