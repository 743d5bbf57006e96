//! Status variables, under Galera's names (the server adds `wsrep_`), and ours under `quorate_`.

use crate::operator::describe;
use crate::provider::Provider;
use quorate_consensus::MemberId;
use std::sync::atomic::Ordering::Relaxed;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Int(i64),
    Double(f64),
}

pub const PROTOCOL_APPLICATION: i64 = 4;

/// All variables, in an order that stays: tools cut the list by position. `connection` is the number of the
/// session that asks, if it is known.
pub fn stats(provider: &Provider, connection: Option<u64>) -> Vec<(&'static str, Value)> {
    let link = provider.link();
    let status = link.as_ref().map(|l| l.group.status()).unwrap_or_default();
    let history = link.as_ref().map_or(0, |l| l.history);
    let sequenced = link.as_ref().map_or(-1, |l| l.progress.seqno());
    let c = provider.counters();
    let told = provider.answers.lock().told(connection);
    let queued = provider.queued();
    let flow = link.as_ref().map(|link| link.flow.report()).unwrap_or_default();
    let word = |yes| if yes { "true" } else { "false" };
    let text = |s: &str| Value::Text(s.to_string());
    let int = |v: u64| Value::Int(v as i64);
    let uuid = |id: u128| Value::Text(MemberId(id).to_string());
    let latency = format!(
        "{:.6}/{:.6}/{:.6}/{:.6}/{}",
        status.sync_us_min as f64 / 1e6,
        status.sync_us_avg / 1e6,
        status.sync_us_max as f64 / 1e6,
        status.sync_us_deviation / 1e6,
        status.syncs
    );
    vec![
        ("local_state_uuid", uuid(history)),
        ("protocol_version", Value::Int(11)),
        ("protocol_application", Value::Int(PROTOCOL_APPLICATION)),
        ("protocol_replicator", Value::Int(11)),
        ("protocol_GCS", Value::Int(5)),
        ("last_committed", Value::Int(provider.last_applied())),
        ("replicated", int(c.replicated.load(Relaxed))),
        ("replicated_bytes", int(c.replicated_bytes.load(Relaxed))),
        ("repl_keys", int(c.repl_keys.load(Relaxed))),
        (
            "repl_keys_bytes",
            int(c.repl_keys.load(Relaxed) * quorate_certify::Key::ENCODED_LEN as u64),
        ),
        ("repl_data_bytes", int(c.repl_data_bytes.load(Relaxed))),
        ("repl_other_bytes", Value::Int(0)),
        ("received", int(c.received.load(Relaxed))),
        ("received_bytes", int(c.received_bytes.load(Relaxed))),
        ("local_commits", int(c.local_commits.load(Relaxed))),
        ("local_cert_failures", int(c.local_cert_failures.load(Relaxed))),
        ("local_replays", int(c.local_replays.load(Relaxed))),
        ("local_send_queue", Value::Int(status.proposals_pending as i64)),
        ("local_send_queue_max", Value::Int(status.proposals_pending_max as i64)),
        ("local_send_queue_min", Value::Int(0)),
        ("local_send_queue_avg", Value::Double(status.proposals_pending_avg)),
        ("local_recv_queue", Value::Int(queued.now as i64)),
        ("local_recv_queue_max", Value::Int(queued.max as i64)),
        ("local_recv_queue_min", Value::Int(0)),
        ("local_recv_queue_avg", Value::Double(queued.avg)),
        ("local_cached_downto", Value::Int(cached_downto(&status, sequenced))),
        ("flow_control_paused_ns", int(flow.paused.as_nanos() as u64)),
        ("flow_control_paused", Value::Double(flow.paused_share)),
        ("flow_control_sent", int(flow.own_periods)),
        ("flow_control_recv", int(flow.periods)),
        ("flow_control_active", text(word(flow.active))),
        ("flow_control_requested", text(word(flow.requested))),
        ("cert_deps_distance", Value::Double(c.cert_deps_distance())),
        ("apply_oooe", Value::Double(0.0)),
        ("apply_oool", Value::Double(0.0)),
        ("apply_waits", int(c.apply_waits.load(Relaxed))),
        ("apply_window", Value::Double((sequenced - provider.last_applied()).max(0) as f64)),
        ("commit_oooe", Value::Double(0.0)),
        ("commit_oool", Value::Double(0.0)),
        (
            "commit_window",
            Value::Double((sequenced - provider.last_left_commit_order()).max(0) as f64),
        ),
        ("local_state", Value::Int(provider.local_state() as i64)),
        ("local_state_comment", text(provider.local_state().comment())),
        ("cert_index_size", int(c.cert_index_size.load(Relaxed))),
        ("causal_reads", int(c.causal_reads.load(Relaxed))),
        ("cert_interval", Value::Double(c.cert_interval())),
        ("open_transactions", Value::Int(provider.transactions().count() as i64)),
        ("open_connections", Value::Int(0)),
        ("incoming_addresses", Value::Text(incoming_addresses(provider))),
        ("cluster_weight", Value::Int(votes(provider, &status))),
        ("desync_count", Value::Int(provider.desync_count() as i64)),
        ("evs_delayed", text("")),
        ("evs_evict_list", text("")),
        ("evs_repl_latency", Value::Text(latency)),
        ("evs_state", text(if status.primary { "OPERATIONAL" } else { "GATHER" })),
        ("gcomm_uuid", uuid(link.as_ref().map_or(0, |l| l.node))),
        ("gmcast_segment", Value::Int(provider.options.lock().integer("gmcast.segment"))),
        #[cfg(feature = "sync-points")]
        ("debug_sync_waiters", Value::Text(quorate_node::sync::waiters())),
        ("quorate_last_answer", Value::Text(told.answer)),
        ("quorate_members", Value::Text(describe(&status.config))),
        ("quorate_last_refusal", Value::Text(told.refusal)),
        ("quorate_role", text(role(&status))),
        ("quorate_leader", Value::Text(status.leader.map(|l| l.to_string()).unwrap_or_default())),
        ("quorate_member", uuid(status.member.0)),
        ("quorate_term", int(status.term)),
        ("quorate_level", int(status.config.level.into())),
        ("quorate_last_index", int(status.last_index)),
        ("quorate_persisted_index", int(status.persisted_index)),
        ("quorate_commit_index", int(status.commit_index)),
        ("quorate_applied_index", int(link.as_ref().map_or(0, |l| l.progress.index()))),
        ("quorate_log_bytes", int(status.log_bytes)),
        ("quorate_log_max", int(status.log_max.unwrap_or(0))),
        ("quorate_log_first_index", int(status.first_index)),
        ("quorate_syncs", int(status.syncs)),
        ("quorate_fsync_seconds", Value::Double(status.sync_us_avg / 1e6)),
        ("quorate_fsync_seconds_max", Value::Double(status.sync_us_max as f64 / 1e6)),
        ("quorate_pending", Value::Int(link.as_ref().map_or(0, |l| l.open_transactions()) as i64)),
        ("quorate_cert_digest", Value::Text(format!("{:016x}", c.cert_digest.load(Relaxed)))),
        ("quorate_rules", Value::Text(status.config.rules.to_string())),
        ("quorate_rejected", Value::Text(status.rejections())),
        ("quorate_certificate_days", Value::Text(certificate_days(provider))),
        ("quorate_last_order", Value::Text(last_order(provider))),
        ("quorate_not_applied", int(c.not_applied.load(Relaxed))),
        ("quorate_lag_seconds", Value::Double(provider.lag().as_secs_f64())),
    ]
}

/// What an operator ordered last, on any node, and what came of it.
fn last_order(provider: &Provider) -> String {
    let last = provider.controls().and_then(|group| group.orders().pop());
    last.map(|note| note.to_string()).unwrap_or_default()
}

/// Until the node's certificate ends; empty without one.
fn certificate_days(provider: &Provider) -> String {
    let days = provider.controls().and_then(|group| group.certificate_days());
    days.map(|days| days.to_string()).unwrap_or_default()
}

/// Votes of the members of the primary view, the own ones as they were set; 0 outside of one.
fn votes(provider: &Provider, status: &quorate_live::GroupStatus) -> i64 {
    if !status.primary {
        return 0;
    }
    let own = provider.options.lock().integer("pc.weight");
    let votes = |id: &MemberId| match *id == status.member {
        true => own,
        false => status.config.votes().filter(|voter| voter == id).count() as i64,
    };
    provider.counters().view_members.lock().iter().map(votes).sum()
}

fn incoming_addresses(provider: &Provider) -> String {
    provider.counters().incoming.lock().clone()
}

/// About the first seqno that the log still has: each takes an entry, few entries take none.
fn cached_downto(status: &quorate_live::GroupStatus, sequenced: i64) -> i64 {
    let entries = status.commit_index.saturating_sub(status.first_index) as i64;
    (sequenced - entries).max(1)
}

fn role(status: &quorate_live::GroupStatus) -> &'static str {
    if status.is_leader {
        "Leader"
    } else if status.voters.contains(&status.member) {
        "Follower"
    } else if status.learners.contains(&status.member) {
        "Learner"
    } else {
        "None"
    }
}
