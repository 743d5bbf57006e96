use super::chunks::TAG_BYTES;
use super::*;
use crate::disk::sim::SimDisk;

const HEAD: &[u8] = b"a head";

fn data_key(seed: u64) -> DataKey {
    let keys = DiskKeys::new(&[[7; 32]], true);
    Envelope::seal(keys.own().unwrap(), &SimDisk::new(seed), HEAD).unwrap().1
}

fn sealed(key: &DataKey, place: u64, plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in plain.chunks(CHUNK_BYTES) {
        let from = out.len();
        out.extend_from_slice(chunk);
        key.of_write(&[3; 16]).seal(place + from as u64, HEAD, &mut out, from);
    }
    out
}

#[test]
fn what_was_sealed_is_opened_in_one_chunk_or_several() {
    let key = data_key(1);
    for len in [1, 100, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 5] {
        let plain: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let mut bytes = sealed(&key, 4096, &plain);
        assert_eq!(bytes.len(), sealed_bytes(len));
        assert_eq!(key.open(&[3; 16], 4096, HEAD, &mut bytes), Some(len));
        assert!(bytes[..len] == plain, "{len}");
    }
}

#[test]
fn any_other_place_head_salt_key_order_or_bit_is_refused() {
    let key = data_key(1);
    let plain = vec![9; CHUNK_BYTES + 100];
    let good = sealed(&key, 64, &plain);
    let opens = |key: &DataKey, salt: u8, place, head, mut bytes: Vec<u8>| {
        key.open(&[salt; 16], place, head, &mut bytes).is_some()
    };
    assert!(opens(&key, 3, 64, HEAD, good.clone()));
    assert!(!opens(&key, 3, 72, HEAD, good.clone()));
    assert!(!opens(&key, 4, 64, HEAD, good.clone()));
    assert!(!opens(&key, 3, 64, b"another", good.clone()));
    assert!(!opens(&data_key(2), 3, 64, HEAD, good.clone()));
    for at in [0, 1000, CHUNK_BYTES, CHUNK_BYTES + TAG_BYTES, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 16;
        assert!(!opens(&key, 3, 64, HEAD, bad), "{at}");
    }
    assert!(!opens(&key, 3, 64, HEAD, good[..10].to_vec()));
    let equal = sealed(&key, 64, &vec![9; 2 * CHUNK_BYTES]);
    let (first, second) = equal.split_at(CHUNK_BYTES + TAG_BYTES);
    assert_ne!(first, second);
    assert!(!opens(&key, 3, 64, HEAD, [second, first].concat()));
}

#[test]
fn an_envelope_is_for_one_key_and_one_file() {
    let (own, other) = ([1; 32], [2; 32]);
    let disk = SimDisk::new(1);
    let keys = DiskKeys::new(&[own, other], true);
    let (envelope, _) = Envelope::seal(keys.own().unwrap(), &disk, HEAD).unwrap();
    assert_eq!(envelope.key(), DiskKeys::id_of(&own));
    assert!(envelope.open(&DiskKeys::new(&[other, own], true), HEAD).is_ok());
    assert!(envelope.open(&DiskKeys::new(&[own], false), HEAD).is_ok());
    let missing = NotOpened::NoKey(DiskKeys::id_of(&own));
    assert_eq!(envelope.open(&DiskKeys::new(&[other], true), HEAD).err(), Some(missing));
    assert_eq!(envelope.open(&keys, b"another").err(), Some(NotOpened::Forged));
    let (again, _) = Envelope::seal(keys.own().unwrap(), &disk, HEAD).unwrap();
    assert_ne!(again, envelope);
    for at in 8..Envelope::BYTES {
        let mut bytes = *envelope.bytes();
        bytes[at] ^= 1;
        assert_eq!(Envelope::of(bytes).open(&keys, HEAD).err(), Some(NotOpened::Forged), "{at}");
    }
}

#[test]
fn keys_are_shown_by_their_ids_alone() {
    let keys = DiskKeys::new(&[[0xab; 32]], true);
    let shown = format!("{keys:?} {keys}");
    assert!(shown.contains(&DiskKeys::id_of(&[0xab; 32]).to_string()), "{shown}");
    assert!(!shown.contains("abab") && !shown.contains("171"), "{shown}");
    assert_eq!(DiskKeys::default().to_string(), "none");
}
