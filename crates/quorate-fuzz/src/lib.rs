//! What fuzzers run: every decoder of bytes that others wrote, and a member among hostile peers.
//!
//! The bodies are here, once: `fuzz/` wraps each for libFuzzer, and `tests/corpus.rs` runs each over the
//! committed corpus with the stable compiler. A body takes any bytes. It panics if the code it drives
//! does, or if that breaks a promise of its own; both are bugs.
//!
//! Nothing here is part of the product.

mod certify;
mod entries;
mod feed;
mod group;
mod node;
pub mod peer;
mod provider;
pub mod seeds;
mod source;
mod votes;
mod wire;

pub use source::Source;

/// Takes any bytes.
pub type Target = fn(&[u8]);

/// By name.
pub const TARGETS: &[(&str, Target)] = &[
    // From the network.
    ("wire_frame", wire::frame),
    ("wire_packet", wire::packet),
    ("snapshot_packets", group::packets),
    ("peer", peer::run),
    ("certificate", quorate_live::fuzzing::certificate),
    ("operator_claim", quorate_live::fuzzing::operator_claim),
    ("operator_request", quorate_live::fuzzing::operator_request),
    ("operator_answer", quorate_live::fuzzing::operator_answer),
    ("agent_request", provider::agent_request),
    // From the log, and so from any member.
    ("config", group::config),
    ("view", group::view),
    ("feed", feed::run),
    ("note", group::note),
    ("write_set", certify::write_set),
    ("messages", certify::messages),
    ("entries", entries::run),
    ("votes", votes::run),
    ("transfers", certify::transfers),
    ("action", node::action),
    // From the log's directory.
    ("wal_segment", quorate_wal::fuzzing::segment),
    ("wal_sealed_segment", quorate_wal::fuzzing::sealed_segment),
    ("wal_meta", quorate_wal::fuzzing::meta),
    ("wal_snapshot", quorate_wal::fuzzing::snapshot),
    ("snapshot_content", group::content),
    ("certifier", certify::certifier),
    ("sequenced", certify::sequenced),
    // From the data directory.
    ("grastate", node::grastate),
    ("genesis", node::genesis),
    ("refused_database", node::refused_database),
    ("isolated_notes", node::isolated_notes),
    ("error_notes", node::error_notes),
    ("galera_cache", quorate::fuzzing::galera_cache),
    // From operators.
    ("cluster_address", provider::cluster_address),
    ("options", provider::options),
    ("orders", provider::orders),
    ("operator_texts", provider::operator_texts),
];

/// Runs the target of this name.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, body) = target.unwrap_or_else(|| panic!("there is no target {name}"));
    body(input);
}
