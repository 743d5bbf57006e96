//! What a node finds in its data directory, and in the isolated actions of others.

use crate::source::Source;
use bytes::Bytes;
use quorate_certify::Constants;
use quorate_node::fuzzing;
use quorate_node::start::genesis::{Genesis, Standing};
use quorate_node::start::grastate::Grastate;
use quorate_node::start::isolated::action;
use quorate_node::start::Position;

/// Files are read as text; one that is none is as good as none.
fn text(input: &[u8]) -> &str {
    std::str::from_utf8(input).unwrap_or_default()
}

pub fn grastate(input: &[u8]) {
    fuzzing::grastate(text(input));
}

pub fn refused_database(input: &[u8]) {
    fuzzing::refused_database(text(input));
}

pub fn isolated_notes(input: &[u8]) {
    fuzzing::isolated_notes(text(input));
}

pub fn error_notes(input: &[u8]) {
    fuzzing::error_notes(text(input));
}

/// The payload of an isolated action: server's bytes and names, which travel on as they came.
pub fn action(input: &[u8]) {
    let payload = Bytes::copy_from_slice(input);
    if let Some((statement, tables)) = action::split(&payload) {
        let again = Bytes::from([&statement[..], &action::trailer(&tables)].concat());
        assert_eq!(action::split(&again), Some((statement, tables)));
    }
}

/// Where a database of any description stands in a group of any constants: never behind what it has.
pub fn genesis(input: &[u8]) {
    let mut source = Source::new(input);
    let constants = Constants::from_words([(); 5].map(|()| source.near(3)));
    let group = source.below(4).into();
    let genesis = Genesis::of_group(group, &constants);
    let saved = source.flag().then(|| Grastate {
        position: position(&mut source, genesis.history),
        safe_to_bootstrap: source.flag(),
        group: source.below(4).into(),
        gtid_domain: None,
    });
    let recovered = source.flag().then(|| position(&mut source, genesis.history));
    let standing = genesis.standing(group, saved.as_ref(), recovered, "--position");
    assert!(!standing.describe().is_empty() && !genesis.to_string().is_empty());
    if let Standing::At(seqno) = standing {
        let known = recovered.filter(|r| r.uuid != 0 && r.seqno >= 0);
        let known = known.or(saved.map(|saved| saved.position)).map(|known| known.seqno);
        assert!(known.is_none_or(|known| seqno >= known), "{seqno} of {known:?}");
    }
    let views = source.near(2) as i64;
    if let Some(founded) = Genesis::of_founder(saved.as_ref(), recovered, |_| views.max(0)) {
        assert!(founded.seqno >= 0 && founded.history != 0);
    }
}

fn position(source: &mut Source<'_>, history: u128) -> Position {
    let uuid = if source.flag() { history } else { source.below(3).into() };
    Position { uuid, seqno: source.near(3) as i64 }
}
