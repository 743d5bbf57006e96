//! What operators write, and what Galera left, for fuzzers: whatever it is, nothing panics, and what is
//! accepted makes sense. Not part of the interface.

use crate::connect::address::{host_of, incoming, parse_url, with_port};
use crate::connect::views_in;
use crate::operator::{parse_alteration, parse_rules};
use quorate_consensus::{Rules, PRIORITY_MAX};
use quorate_node::start::Position;
use std::io::Cursor;

/// `wsrep_cluster_address`, and the addresses of a node: each has a port in the end.
pub fn cluster_address(text: &str) {
    let has_port = |address: &str| {
        let port = &address[host_of(address).len()..];
        port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
    };
    if let Ok(url) = parse_url(text, 4567) {
        assert!(url.seeds.iter().all(|seed| has_port(seed)), "{url:?}");
        assert!(!url.options.contains('&'));
    }
    assert!(with_port(text, 4567).is_none_or(|address| has_port(&address)));
    let (told, node) = text.split_once(' ').unwrap_or((text, "10.0.0.1"));
    let found = incoming(told, node);
    assert!(found == told || has_port(&found), "{found}");
}

/// What is set of members and rules.
pub fn orders(text: &str) {
    if let Ok((name, alteration)) = parse_alteration(text) {
        assert!(!name.is_empty() && alteration.priority.is_none_or(|p| p <= PRIORITY_MAX));
    }
    if let Ok(rules) = parse_rules(text, Rules::default()) {
        assert_eq!(parse_rules(&rules.to_string(), Rules::default()), Ok(rules));
    }
}

/// The bytes as a cache; and, after its position and its first buffer's place, as what stands behind a
/// right preamble.
pub fn galera_cache(input: &[u8]) {
    let at = |seqno| Position { uuid: 7, seqno };
    let views = |bytes: &[u8], seqno| views_in(Cursor::new(bytes), bytes.len() as u64, at(seqno));
    assert!((0..=6).contains(&views(input, 5)));
    let Some(([seqno, low, high], ring)) = input.split_first_chunk() else { return };
    let (seqno, first) = (i64::from(*seqno), u16::from_le_bytes([*low, *high]));
    let mut bytes = format!(
        "Version: 2\nGID: {:032x}\nseqno_max: {seqno}\noffset: {first}\nsynced: 1\n\n",
        at(seqno).uuid
    )
    .into_bytes();
    bytes.resize(1024, 0);
    bytes.extend_from_slice(ring);
    assert!((0..=seqno + 1).contains(&views(&bytes, seqno)));
}
