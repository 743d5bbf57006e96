//! The write-set codec: what goes in comes out, and nothing else is believed.

use bytes::Bytes;
use proptest::prelude::*;
use quorate_certify::*;
use std::collections::BTreeMap;

fn key_type() -> impl Strategy<Value = KeyType> {
    prop::sample::select(KeyType::ALL.to_vec())
}

fn kind() -> impl Strategy<Value = Kind> {
    let messages = [Kind::STATE_REQUEST, Kind::VOTE, Kind::STATE_OUTCOME];
    let all = [&[Kind::WRITE_SET][..], &messages, &[Kind::PART, Kind::PARTS_END]];
    prop::sample::select(all.concat())
}

fn header() -> impl Strategy<Value = Header> {
    let identity = (kind(), 0u32..1 << 10, any::<u128>(), any::<u64>());
    let session = (any::<u64>(), any::<u64>(), any::<i64>(), any::<u32>(), any::<u64>());
    let term = prop_oneof![Just(0), any::<u64>()];
    let standing = (term, any::<u16>());
    (identity, session, standing).prop_map(|((kind, flags, origin, serial), session, standing)| {
        let (term, kin_epoch) = standing;
        let (trx_id, conn_id, last_seen, pa_range, timestamp) = session;
        let place = Header { kind, flags, origin, serial, ..Header::transaction(0, 0, 0) };
        Header { trx_id, conn_id, last_seen, pa_range, term, kin_epoch, timestamp, ..place }
    })
}

type Path = Vec<Vec<u8>>;

/// Few different parts, so that paths share prefixes and repeat.
fn paths() -> impl Strategy<Value = Vec<(Path, KeyType)>> {
    let part = prop::collection::vec(b'a'..b'd', 0..3);
    prop::collection::vec((prop::collection::vec(part, 0..4), key_type()), 0..80)
}

fn append(builder: &mut WriteSetBuilder, path: &Path, key_type: KeyType) {
    let parts: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
    builder.append_key(&parts, key_type);
}

proptest! {
    #[test]
    fn round_trips(header in header(), data in prop::collection::vec(any::<Vec<u8>>(), 0..6)) {
        let mut builder = WriteSetBuilder::new();
        for fragment in 0..3u8 {
            builder.append_key(&[b"db", &[fragment]], KeyType::Update);
            for piece in &data {
                builder.append_data(piece);
            }
            prop_assert_eq!(builder.data_len(), data.concat().len());
            let len = builder.encoded_len();
            let bytes = builder.finish(&header);
            prop_assert_eq!(bytes.len(), len + if header.term == 0 { 0 } else { 8 });
            prop_assert!(builder.is_empty());
            prop_assert_eq!(WriteSet::peek_kind(&bytes), Some(header.kind));
            let parsed = WriteSet::parse(bytes.clone()).expect("own bytes");
            prop_assert_eq!(parsed.header(), &header);
            prop_assert_eq!(parsed.payload(), data.concat());
            prop_assert_eq!(parsed.keys().len(), 3);
            prop_assert_eq!(parsed.bytes(), &bytes);
        }
    }

    /// Every prefix as REFERENCE, the leaf as its type, each path once with its strongest type.
    #[test]
    fn builder_keeps_the_strongest_type(paths in paths()) {
        let mut builder = WriteSetBuilder::new();
        let mut expected = BTreeMap::from([(Path::new(), KeyType::PREFIX)]);
        for (path, key_type) in &paths {
            append(&mut builder, path, *key_type);
            for len in 0..=path.len() {
                let own = if len == path.len() { *key_type } else { KeyType::PREFIX };
                let known = expected.entry(path[..len].to_vec()).or_insert(own);
                *known = own.max(*known);
            }
        }
        let bytes = builder.finish(&Header::transaction(1, 1, 0));
        let mut got: Vec<Key> = WriteSet::parse(bytes).expect("own bytes").keys().collect();
        let mut want: Vec<Key> = Vec::new();
        for (path, key_type) in &expected {
            // The leaf of a single-key write set, found by what its prefixes are not.
            let mut single = WriteSetBuilder::new();
            append(&mut single, path, KeyType::Exclusive);
            let bytes = single.finish(&Header::transaction(1, 1, 0));
            let keys: Vec<Key> = WriteSet::parse(bytes).expect("own bytes").keys().collect();
            let leaf = keys.into_iter().find(|key| key.key_type() == KeyType::Exclusive);
            want.push(leaf.expect("has a leaf").with_type(*key_type));
        }
        got.sort();
        want.sort();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_all(bytes);
    }

    #[test]
    fn mutants_never_panic(
        header in header(),
        data in any::<Vec<u8>>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        len in 0usize..400,
    ) {
        let mut builder = WriteSetBuilder::new();
        builder.append_key(&[b"db", b"t", b"1"], KeyType::Exclusive);
        builder.append_data(&data);
        let mut bytes = builder.finish(&header).to_vec();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        read_all(bytes.clone());
        bytes.resize(len, 0);
        read_all(bytes);
    }
}

fn read_all(bytes: Vec<u8>) {
    let bytes = Bytes::from(bytes);
    if let Ok(write_set) = WriteSet::parse(bytes.clone()) {
        let term = if write_set.header().term == 0 { 0 } else { 8 };
        let parts = write_set.payload().len() + write_set.keys().len() * 8 + 80 + term;
        assert_eq!(parts, bytes.len());
        assert!(write_set.keys().all(|key| key.path() != 0));
        if write_set.header().kind == Kind::WRITE_SET {
            Certifier::new(4).sequence(&write_set);
        }
    }
    assert!(Certifier::restore(&bytes).is_err());
}

#[test]
fn damage_is_named() {
    let mut builder = WriteSetBuilder::new();
    builder.append_data(b"data");
    let good = builder.finish(&Header::transaction(1, 1, 0)).to_vec();
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        WriteSet::parse(Bytes::from(bytes)).expect_err("damaged")
    };
    assert_eq!(with(0, 4), ParseError::Version(4));
    assert!(matches!(with(0, 2), ParseError::Length { .. }), "no term");
    assert!(matches!(with(0, 3), ParseError::Length { .. }), "no parts");
    assert_eq!(with(1, 0), ParseError::Header);
    assert_eq!(with(6, 1), ParseError::Header);
    assert!(matches!(with(64, 5), ParseError::Length { .. }));
    assert!(matches!(with(71, 0xff), ParseError::Length { .. }));
    assert!(matches!(with(75, 0xff), ParseError::Length { .. }));
    let short = Bytes::copy_from_slice(&good[..79]);
    assert_eq!(WriteSet::parse(short), Err(ParseError::Truncated { bytes: 79 }));
}

/// The layout is on disk in every group: a change is a protocol change.
#[test]
fn layout_is_frozen() {
    let mut builder = WriteSetBuilder::new();
    builder.append_key(&[b"d"], KeyType::Exclusive);
    builder.append_data(b"payload");
    let bytes = builder.finish(&Header {
        kind: Kind::WRITE_SET,
        flags: flags::TRX_START | flags::TRX_END,
        origin: 0x0f0e0d0c_0b0a0908_07060504_03020100,
        serial: 0x10,
        trx_id: 0x20,
        conn_id: 0x30,
        last_seen: -1,
        pa_range: 0x50,
        term: 0,
        kin_epoch: 0x70,
        parts: None,
        packed: None,
        timestamp: 0x60,
    });
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = concat!(
        "0101700041000000",
        "000102030405060708090a0b0c0d0e0f",
        "1000000000000000",
        "2000000000000000",
        "3000000000000000",
        "ffffffffffffffff",
        "6000000000000000",
        "0700000000000000",
        "02000000",
        "50000000",
        "7061796c6f6164",
        "51756f726174652e",
    );
    assert_eq!(&hex[..expected.len()], expected);
    assert_eq!(bytes.len(), 80 + 7 + 16);
}

#[test]
fn a_term_stands_behind_the_keys_and_only_where_there_is_one() {
    let finished = |term| {
        let mut builder = WriteSetBuilder::new();
        builder.append_key(&[b"d"], KeyType::Exclusive);
        builder.append_data(b"payload");
        builder.finish(&Header { term, ..Header::transaction(1, 2, 3) })
    };
    let (plain, stamped) = (finished(0), finished(0x0102));
    assert_eq!((plain[0], stamped[0]), (1, 2));
    assert_eq!(stamped[1..plain.len()], plain[1..]);
    assert_eq!(stamped[plain.len()..], [2, 1, 0, 0, 0, 0, 0, 0]);

    let read = WriteSet::parse(stamped.clone()).expect("own bytes");
    assert_eq!(
        (read.header().term, &read.payload()[..], read.keys().len()),
        (0x0102, &b"payload"[..], 2)
    );
    for cut in 0..stamped.len() {
        assert!(WriteSet::parse(stamped.slice(..cut)).is_err(), "{cut}");
    }
    let mut without = stamped.to_vec();
    without[plain.len()..].fill(0);
    assert!(WriteSet::parse(without.into()).is_err(), "version 2 has a term");
}

#[test]
fn parts_stand_behind_the_term_which_may_be_none() {
    for term in [0, 0x0102] {
        let parts = Some(PartsOf { stream: 0x0304, count: 5, bytes: 6 });
        let mut builder = WriteSetBuilder::new();
        builder.append_key(&[b"d"], KeyType::Exclusive);
        builder.append_data(b"payload");
        let bytes = builder.finish(&Header { term, parts, ..Header::transaction(1, 2, 3) });
        assert_eq!((bytes[0], bytes.len()), (3, 80 + 7 + 16 + 37));
        let tail = [4, 3, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes[bytes.len() - 29..bytes.len() - 9], tail);
        assert_eq!(bytes[bytes.len() - 9..], [0; 9]);
        let read = WriteSet::parse(bytes.clone()).expect("own bytes");
        assert_eq!((read.header().term, read.header().parts), (term, parts));
        assert_eq!((&read.payload()[..], read.keys().len()), (&b"payload"[..], 2));
        for cut in 0..bytes.len() {
            assert!(WriteSet::parse(bytes.slice(..cut)).is_err(), "{cut}");
        }
    }
}

#[test]
fn packed_data_says_so_and_so_do_parts() {
    for codec in [Codec::Lz4, Codec::Zstd] {
        let mut builder = WriteSetBuilder::new();
        builder.append_key(&[b"d"], KeyType::Exclusive);
        builder.append_data(&[7; 2000]);
        let packing = Some(Packing { codec, from: 100 });
        let part = builder.take_part(1000).finish(&Header::part(1, 7, 7, 0), packing);
        let last = builder.finish_packed(&Header::transaction(1, 8, 0), packing);
        for (bytes, keys) in [(part, 0), (last, 2)] {
            assert!(bytes.len() < 300, "{}", bytes.len());
            let read = WriteSet::parse(bytes).expect("own bytes");
            let packed = read.header().packed.expect("it is packed");
            assert_eq!((packed.codec, packed.bytes, read.keys().len()), (codec, 1000, keys));
            assert_eq!(packed.unpack(&read.payload()).as_deref(), Ok(&[7; 1000][..]));
        }
        builder.append_data(&[7; 99]);
        let short = builder.finish_packed(&Header::transaction(1, 9, 0), packing);
        let short = WriteSet::parse(short).unwrap();
        assert_eq!((short.header().packed, short.payload().len()), (None, 99));
    }
}

#[test]
fn only_the_data_of_transactions_is_packed() {
    let mut builder = WriteSetBuilder::new();
    builder.append_data(&[7; 2000]);
    let packing = Some(Packing { codec: Codec::Lz4, from: 1 });
    let bytes = builder.finish_packed(&Header::transaction(1, 8, 0), packing).to_vec();
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        WriteSet::parse(Bytes::from(bytes)).map(|_| ())
    };
    let end = bytes.len();
    assert_eq!(with(end - 9, 2), Ok(()), "the other codec");
    assert_eq!(with(end - 9, 3), Err(ParseError::Header), "no codec");
    assert_eq!(with(end - 9, 0), Err(ParseError::Header), "bytes unpacked, and no codec");
    assert_eq!(with(end - 20, 1), Err(ParseError::Header), "parts, and no stream");
    assert_eq!(with(1, Kind::VOTE.0), Err(ParseError::Header));
    assert_eq!(with(4, flags::ISOLATION as u8), Err(ParseError::Header));
}

#[test]
fn data_is_cut_into_parts_in_front_and_the_keys_stay() {
    let mut builder = WriteSetBuilder::new();
    builder.append_key(&[b"d"], KeyType::Exclusive);
    builder.append_data(b"0123456789");
    let mut data = Vec::new();
    for number in 0..3 {
        let header = Header::part(1, 7 + u64::from(number), 7, number);
        let part = builder.take_part(4).finish(&header, None);
        let part = WriteSet::parse(part).expect("own bytes");
        let header = part.header();
        assert_eq!((header.kind, header.trx_id, header.conn_id), (Kind::PART, 7, number.into()));
        assert_eq!(part.keys().len(), 0);
        data.push(part.payload());
    }
    assert_eq!(data, [&b"0123"[..], b"4567", b"89"]);
    builder.append_data(b"rest");
    let last = WriteSet::parse(builder.finish(&Header::transaction(1, 10, 0))).expect("own bytes");
    assert_eq!((&last.payload()[..], last.keys().len()), (&b"rest"[..], 2));
}

/// The data is where it was appended: `finish` moved neither it nor the buffer.
#[test]
fn payload_is_not_copied() {
    let mut builder = WriteSetBuilder::new();
    builder.append_key(&[b"db", b"t", b"1"], KeyType::Exclusive);
    builder.append_data(&[7; 1000]);
    let bytes = builder.finish(&Header::transaction(1, 1, 0));
    let write_set = WriteSet::parse(bytes.clone()).expect("own bytes");
    assert_eq!(write_set.payload().as_ptr(), bytes[80..].as_ptr());
}
