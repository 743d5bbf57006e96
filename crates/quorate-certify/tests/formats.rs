//! What released versions have written is read, and means the same.
//!
//! `formats/RELEASE/entries` is a history of entries, each after its length (u32, little-endian);
//! `formats/RELEASE/state` is the state that followed from them. A release with other formats than
//! the one before (`quorate_consensus::level`) adds its folder:
//! `QUORATE_WRITE_FORMATS=1 cargo test -p quorate-certify --test formats`

use bytes::Bytes;
use quorate_certify::flags::{ISOLATION, ROLLBACK, TRX_END, TRX_START};
use quorate_certify::votes::Ballot;
use quorate_certify::*;
use quorate_consensus::level::NEWEST;
use std::fs;
use std::path::{Path, PathBuf};

const MEMBERS: [u128; 3] = [11, 12, 13];
/// Views come before the first entry, and before this one.
const SECOND_VIEW: usize = 5;
/// From here on the group is at level 2.
const LEVEL_2: usize = 14;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats")
}

/// Each kind of entry, each type of key, and each field with a value of its own.
fn history() -> Vec<Bytes> {
    let plain = |origin, serial| Header {
        trx_id: 100 + serial,
        conn_id: 7,
        timestamp: 1_700_000_000_000_000_000,
        ..Header::transaction(origin, serial, 0)
    };
    let write_set = |header: Header, keys: &[(&[u8], KeyType)]| {
        let mut builder = WriteSetBuilder::new();
        for (row, key_type) in keys {
            builder.append_key(&[b"db", b"t", row], *key_type);
        }
        builder.append_data(b"rows");
        builder.finish(&header)
    };
    let message = |kind, origin, serial, text: Vec<u8>| {
        let mut builder = WriteSetBuilder::new();
        builder.append_data(&text);
        builder.finish(&Header { kind, ..plain(origin, serial) })
    };
    let vote_on = |seqno, act| VoteMessage { seqno, policy: 1, act, text: "1062;".into() }.encode();
    let vote = |act| vote_on(3, act);
    let request =
        StateRequest { donor: 12, joiner: 13, message: Bytes::from_static(b"rsync\0h\0") };
    let update = KeyType::Update;
    let part = |header: Header| {
        let mut builder = WriteSetBuilder::new();
        builder.append_data(b"part");
        builder.finish(&header)
    };
    vec![
        write_set(plain(11, 1), &[(b"1", update), (b"2", KeyType::Reference)]),
        // Overlaps the one before, which it has not seen.
        write_set(plain(12, 1), &[(b"1", update)]),
        write_set(Header { last_seen: 3, term: 4, ..plain(12, 2) }, &[(b"1", KeyType::Exclusive)]),
        write_set(Header { flags: ISOLATION, ..plain(13, 1) }, &[(b"t", KeyType::Exclusive)]),
        message(Kind::VOTE, 11, 2, vote(VoteAct::Cast(Ballot::Error(9)))),
        write_set(
            Header { flags: TRX_START, last_seen: 5, kin_epoch: 3, ..plain(11, 3) },
            &[(b"3", KeyType::Shared)],
        ),
        write_set(
            Header { flags: TRX_END, last_seen: 6, pa_range: 1, kin_epoch: 3, ..plain(11, 4) },
            &[(b"4", update)],
        ),
        write_set(Header { flags: ROLLBACK | TRX_END, last_seen: 6, ..plain(11, 5) }, &[]),
        message(Kind::STATE_REQUEST, 13, 2, request.encode()),
        message(Kind::VOTE, 12, 3, vote(VoteAct::Close)),
        message(Kind::STATE_OUTCOME, 12, 4, StateOutcome { joiner: 13, code: -5 }.encode()),
        message(Kind::VOTE, 13, 3, vote(VoteAct::Cast(Ballot::Success))),
        message(Kind::VOTE, 12, 5, vote_on(4, VoteAct::Cast(Ballot::Error(9)))),
        message(Kind::VOTE, 11, 6, vote_on(5, VoteAct::Cast(Ballot::Dissent(9)))),
        // `LEVEL_2` begins.
        part(Header::part(11, 7, 7, 0)),
        part(Header::part(12, 6, 6, 0)),
        part(Header::part(11, 8, 7, 1)),
        write_set(
            Header { parts: Some(PartsOf { stream: 7, count: 2, bytes: 8 }), ..plain(11, 9) },
            &[(b"5", update)],
        ),
        part(Header::parts_end(11, 10, 4)),
        message(Kind::VOTE, 11, 11, vote_on(6, VoteAct::Cast(Ballot::Dissent(9)))),
    ]
}

/// The state that follows, and what was said of each entry.
fn follow(entries: &[Bytes]) -> (Sequenced, Vec<String>) {
    let mut state = Sequenced::beginning(Limits { window: 64, keys_max: 1000 }, 2);
    let mut said = Vec::new();
    state.view(&MEMBERS);
    for (at, entry) in entries.iter().enumerate() {
        if at == SECOND_VIEW {
            state.view(&MEMBERS[..2]);
            state.view(&MEMBERS);
        }
        let rules = Rules::new(Some(4), at >= LEVEL_2);
        said.push(
            match state.entry(at as u64, entry.clone(), rules).expect("an entry of a release") {
                Sequencing::WriteSet(_, verdict, parts) => format!("{verdict:?} {parts:?}"),
                Sequencing::Part(_) => format!("{:?}", state.parts),
                Sequencing::Vote(_, message, _) => format!("{message:?}"),
                Sequencing::StateRequest(_, request, asked) => format!("{request:?} {asked:?}"),
                Sequencing::Void(_) => "void".to_owned(),
                Sequencing::StateOutcome(_, outcome) => format!("{outcome:?}"),
                Sequencing::Message(_) => "message".to_owned(),
            },
        );
    }
    (state, said)
}

fn write(folder: &Path) {
    let mut entries = Vec::new();
    for entry in history() {
        entries.extend((entry.len() as u32).to_le_bytes());
        entries.extend(entry);
    }
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("entries"), entries).unwrap();
    fs::write(folder.join("state"), follow(&history()).0.snapshot()).unwrap();
}

fn entries(folder: &Path) -> Vec<Bytes> {
    let mut rest = Bytes::from(fs::read(folder.join("entries")).unwrap());
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest.split_to(4)[..].try_into().unwrap());
        entries.push(rest.split_to(length as usize));
    }
    entries
}

#[test]
fn what_releases_wrote_means_the_same() {
    let newest = folder().join(NEWEST.release);
    if std::env::var_os("QUORATE_WRITE_FORMATS").is_some() {
        write(&newest);
    }
    assert!(newest.exists(), "{}: a release with formats of its own has no folder", NEWEST.release);
    let (now, said_now) = follow(&history());
    assert!(!now.parts.is_empty());
    for release in fs::read_dir(folder()).unwrap() {
        let release = release.unwrap().path();
        let (followed, said) = follow(&entries(&release));
        // Later ones know more.
        let (then, _) = follow(&history()[..said.len()]);
        assert_eq!(said, said_now[..said.len()], "{}", release.display());
        let state = fs::read(release.join("state")).unwrap();
        let restored = Sequenced::restore(&state).expect("the state of a release");
        assert_eq!(restored.snapshot(), followed.snapshot(), "{}", release.display());
        assert_eq!(restored.snapshot(), then.snapshot(), "{}", release.display());
    }
    // Another byte is another format, which is another level.
    assert_eq!(history(), entries(&newest));
    assert_eq!(now.snapshot(), fs::read(newest.join("state")).unwrap());
}
