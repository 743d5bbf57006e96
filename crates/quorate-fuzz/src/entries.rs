//! Committed entries of any content, in any order, with views and restarts between them.
//!
//! A twin is fed the same, and goes through a snapshot now and then: it says the same of each entry, and
//! ends in the same state, bit for bit.

use crate::source::Source;
use bytes::Bytes;
use quorate_certify::votes::Ballot;
use quorate_certify::{
    flags, Constants, Header, KeyType, Kind, Limits, Outcome, PartsOf, Rules, Sequenced,
    Sequencing, StateOutcome, StateRequest, VoteAct, VoteMessage, WriteSetBuilder,
};

/// As many keys are in the window at most.
const KEYS_MAX: u64 = 64;

pub fn run(input: &[u8]) {
    let mut source = Source::new(input);
    let mut state = beginning(&mut source);
    let mut twin = Sequenced::restore(&state.snapshot()).expect("its own snapshot");
    let mut index = 0;
    while !source.is_empty() {
        index += 1;
        let before = state.certifier.seqno();
        match source.below(8) {
            0 => {
                let members = members(&mut source);
                let seen = state.view(&members);
                assert_eq!(seen, twin.view(&members));
                assert_eq!(seen.0, before + 1);
            }
            1 => twin = Sequenced::restore(&twin.snapshot()).expect("its own snapshot"),
            choice => {
                let entry =
                    if choice == 2 { source.block() } else { proposal(&mut source, before) };
                let primary_term = source.flag().then(|| u64::from(source.below(4)));
                let said = said(&mut state, index, entry.clone(), primary_term);
                assert_eq!(said, self::said(&mut twin, index, entry, primary_term));
                assert!(state.parts.first_index().is_none_or(|first| first <= index));
                let counts = i64::from(said.starts_with("seqno"));
                assert_eq!(state.certifier.seqno(), before + counts, "{said}");
            }
        }
    }
    assert!(state.snapshot() == twin.snapshot());
}

fn beginning(source: &mut Source<'_>) -> Sequenced {
    if source.flag() {
        let words = [(); 5].map(|()| source.u64());
        let constants = Constants::from_words(words);
        assert_eq!(constants.words(), words);
        // Others are refused before there is a state.
        if constants.are_sound() {
            // Room for more would take most of the time to fill with zeros.
            let limits = constants.limits();
            let limits = Limits { keys_max: limits.keys_max.min(KEYS_MAX), ..limits };
            return Sequenced::beginning(limits, constants.seqno);
        }
    }
    let limits =
        Limits { window: 1 + u32::from(source.below(8)), keys_max: u64::from(source.below(16)) };
    Sequenced::beginning(limits, i64::from(source.below(8)))
}

/// What became of an entry, in words.
fn said(state: &mut Sequenced, index: u64, entry: Bytes, primary_term: Option<u64>) -> String {
    // Under both, one after the other.
    let rules = Rules::new(primary_term, index % 2 == 0);
    match state.entry(index, entry, rules) {
        Ok(Sequencing::WriteSet(_, verdict, parts)) => {
            assert!(verdict.depends_on < verdict.seqno);
            if let Outcome::Conflict { with } = verdict.outcome {
                assert!(with < verdict.seqno);
            }
            format!("seqno {verdict:?} {parts:?}")
        }
        Ok(Sequencing::Vote(_, message, answer)) => format!("{message:?} {answer:?}"),
        Ok(Sequencing::StateRequest(_, request, asked)) => format!("{request:?} {asked:?}"),
        Ok(Sequencing::StateOutcome(_, outcome)) => format!("{outcome:?}"),
        Ok(Sequencing::Part(_)) => format!("{:?}", state.parts),
        Ok(Sequencing::Void(_)) => "void".to_owned(),
        Ok(Sequencing::Message(_)) => "message".to_owned(),
        Err(error) => error.to_string(),
    }
}

pub fn members(source: &mut Source<'_>) -> Vec<u128> {
    let set = source.byte();
    (0..8).filter(|id| set >> id & 1 == 1).collect()
}

/// One that can be read, if its fields make sense or not; at the end of a log of `last` seqnos.
pub fn proposal(source: &mut Source<'_>, last: i64) -> Bytes {
    let kinds = [
        Kind::WRITE_SET,
        Kind::WRITE_SET,
        Kind::WRITE_SET,
        Kind::VOTE,
        Kind::STATE_REQUEST,
        Kind::STATE_OUTCOME,
        Kind::PART,
        Kind::PARTS_END,
        Kind(source.below(20)),
    ];
    let kind = source.one_of(&kinds);
    let (origin, serial) = (u128::from(source.below(8)), u64::from(source.byte()));
    let header = Header {
        kind,
        flags: trx_flags(source),
        last_seen: source.near(last as u64) as i64,
        pa_range: if source.flag() { Header::PA_RANGE_ANY } else { source.near(1) as u32 },
        term: u64::from(source.below(4)),
        kin_epoch: source.below(3).into(),
        trx_id: source.below(4).into(),
        conn_id: source.below(4).into(),
        parts: source.flag().then(|| PartsOf {
            stream: source.below(4).into(),
            count: source.below(4).into(),
            bytes: source.byte().into(),
        }),
        ..Header::transaction(origin, serial, 0)
    };
    let mut builder = WriteSetBuilder::new();
    let data = match kind {
        Kind::VOTE if source.flag() => vote(source, last),
        Kind::STATE_REQUEST if source.flag() => {
            let (donor, message) = (source.below(8).into(), source.block());
            StateRequest { donor, joiner: origin, message }.encode()
        }
        Kind::STATE_OUTCOME if source.flag() => {
            let (joiner, code) = (source.below(8).into(), -i32::from(source.byte()));
            StateOutcome { joiner, code }.encode()
        }
        _ => source.block().to_vec(),
    };
    builder.append_data(&data);
    for _ in 0..source.below(4) {
        let key_type = source.one_of(&KeyType::ALL);
        builder.append_key(&[b"db", &[source.below(4)]], key_type);
    }
    builder.finish(&header)
}

fn trx_flags(source: &mut Source<'_>) -> u32 {
    let usual = [
        flags::TRX_START | flags::TRX_END,
        flags::TRX_START,
        0,
        flags::TRX_END,
        flags::ROLLBACK | flags::TRX_END,
        flags::ISOLATION,
        flags::PA_UNSAFE,
        u32::from(source.byte()) << 2,
    ];
    source.one_of(&usual)
}

fn vote(source: &mut Source<'_>, last: i64) -> Vec<u8> {
    let acts = [
        VoteAct::Cast(Ballot::Error(7)),
        VoteAct::Cast(Ballot::Dissent(8)),
        VoteAct::Cast(Ballot::Success),
        VoteAct::Cast(Ballot::Abstain),
        VoteAct::Close,
    ];
    let act = source.one_of(&acts);
    let (seqno, policy) = (source.near(last as u64) as i64, source.below(3));
    VoteMessage { seqno, policy, act, text: source.text() }.encode()
}
