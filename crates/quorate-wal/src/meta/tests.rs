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

#[test]
fn a_slot_reads_back() {
    let bytes = encode_slot(7, &meta(3));
    assert_eq!(decode_slot(&bytes), Ok((7, meta(3))));
    assert_eq!(decode_slot(&bytes[..100]), Err(SlotError::Foreign));
}

/// Also when the power fails again and again, each time while the file is written.
#[test]
fn a_torn_write_leaves_the_old_or_the_new_content() {
    for seed in 0..2000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut disk = SimDisk::new(seed);
        let mut term = 1;
        MetaFile::create(&disk, meta(term)).unwrap();
        for _ in 0..8 {
            let mut file = MetaFile::open(&disk).unwrap();
            let found = file.content().hard_state.term;
            assert!(found == term || found + 1 == term, "{found} {term}");
            term = found + 1;
            disk.inject(Faults { dies_after: Some(rng.u64(..6)), ..Faults::default() });
            if file.save(meta(term)).is_ok() {
                assert_eq!(MetaFile::open(&disk).unwrap().content(), meta(term));
            }
            disk = disk.crash(Crash::Power);
        }
    }
}
