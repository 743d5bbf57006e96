//! What is known of the member, as OpenMetrics. Names begin with `quorate_`; docs/run/status.md says what each
//! means, and when to worry.

use crate::lag::write_sets;
use crate::memory::Known;
use crate::verdict::{is_primary, serves, takes_writes};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use quorate_latency::LatencyReport;
use quorate_live::port::Report;
use quorate_live::CommitLatencyReport;
use std::fmt;
use std::sync::atomic::AtomicU64;

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Member {
    member: String,
}

/// Of what the agent was built, where the build was told that.
const REVISION: Option<&str> = option_env!("QUORATE_REVISION");

/// The text of one scrape. `certificate_days`: until the agent's own certificate ends, if it has one.
pub fn render(known: &Known, certificate_days: Option<i64>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("quorate");
    let version = [("version", env!("CARGO_PKG_VERSION"))].into_iter();
    let build: Vec<_> = version.chain(REVISION.map(|revision| ("revision", revision))).collect();
    registry.register("build", "Release of the agent.", Info::new(build));
    let mut gauge = |name: &str, help: &str, value: f64| {
        registry.register(name, help, ConstGauge::new(value));
    };
    let age = known.last.as_ref().map(|(_, age)| age.as_secs_f64());
    gauge(
        "up",
        "Whether the member answered, not longer ago than counts.",
        known.fresh.is_some().into(),
    );
    gauge("report_age_seconds", "Age of what is known of the member.", age.unwrap_or(f64::NAN));
    if let Some(days) = certificate_days {
        gauge(
            "agent_certificate_days",
            "Days until the agent's own certificate ends.",
            days as f64,
        );
    }
    if let Some(report) = &known.fresh {
        of_report(report, &mut gauge);
        of_members(report, &mut registry);
    }
    let mut counter = |name: &str, help: &str, value: u64| {
        registry.register(name, help, ConstCounter::new(value));
    };
    counter(
        "elections_seen",
        "Times that another member was seen to lead, or the same one in another term.",
        known.elections,
    );
    counter("questions", "Times that the member was asked.", known.asked);
    counter("questions_unanswered", "Times that it did not answer.", known.unanswered);
    if let Some(report) = &known.fresh {
        counter("syncs", "Syncs of the group's log.", report.own.log.syncs);
    }
    let server = known.fresh.as_ref().and_then(|report| report.own.server.as_ref());
    if let Some(commits) = server.and_then(|server| server.commits) {
        counter("local_commits", "Commits of its clients.", commits.commits);
        counter(
            "local_cert_failures",
            "Write sets of its clients that failed certification.",
            commits.cert_failures,
        );
        counter(
            "local_bf_aborts",
            "Transactions of its clients that were aborted for a write set that came first.",
            commits.bf_aborts,
        );
        counter(
            "local_replays",
            "Those of them that were applied again, as they had passed certification.",
            commits.replays,
        );
    }
    if let Some(report) = &known.fresh {
        of_latency(report, &mut registry);
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn of_report(report: &Report, gauge: &mut impl FnMut(&str, &str, f64)) {
    let own = &report.own;
    let mut flag = |name, help, value: bool| gauge(name, help, value.into());
    flag("leader", "Whether this member leads the group.", own.leads);
    flag("quorum", "Whether this member is connected to a majority.", own.primary);
    flag("has_leader", "Whether this member knows who leads.", report.leader.is_some());
    flag("paused", "Whether nothing moves leadership without an order.", report.rules.paused);
    flag("serving", "Whether its server answers clients, in step with the group.", serves(report));
    flag("primary", "Whether it leads, and its server takes writes.", is_primary(report));
    flag("writable", "Whether its server takes writes.", takes_writes(report));
    flag("failed", "Whether its log failed, or a bug stopped it.", own.failed);
    flag("isolated", "Whether its operator cut it off.", own.isolated);
    flag(
        "disputed",
        "Whether it is told that it is an older state of itself.",
        own.disputed.is_some(),
    );
    flag(
        "log_warning",
        "Whether something is wrong with the disk of its log.",
        own.log.warning.is_some(),
    );
    gauge("term", "Term of the group, which grows with each election.", report.term as f64);
    gauge("feature_level", "Feature level of the group.", report.level.into());
    gauge("members", "Members of the group.", report.members.len() as f64);
    gauge("last_index", "Last index of its log.", own.last_index as f64);
    gauge(
        "persisted_index",
        "Index up to which its log is on its disk.",
        own.persisted_index as f64,
    );
    gauge(
        "commit_index",
        "Index up to which the log is known to be committed.",
        own.commit_index as f64,
    );
    gauge(
        "applied_index",
        "Index up to which the log was certified here.",
        own.applied_index as f64,
    );
    gauge(
        "proposals_pending",
        "Proposals of this member that are not decided.",
        own.proposals_pending as f64,
    );
    gauge("log_bytes", "Size of its log.", own.log.bytes as f64);
    if let Some(max) = own.log.max {
        gauge("log_max_bytes", "Size that its log may have at most.", max as f64);
    }
    gauge("log_first_index", "First index of its log.", own.log.first_index as f64);
    if let Some(age) = own.log.age_s {
        gauge("log_age_seconds", "How far back its log reaches at least.", age as f64);
    }
    gauge(
        "sync_seconds",
        "Mean time of a sync of the log, with its write.",
        own.log.sync_us_avg / 1e6,
    );
    gauge(
        "sync_seconds_max",
        "Longest time of one since its start.",
        own.log.sync_us_max as f64 / 1e6,
    );
    if let Some(days) = own.certificate_days {
        gauge("certificate_days", "Days until its certificate ends.", days as f64);
    }
    if let Some(server) = &own.server {
        gauge("seqno", "Last write set that its server has applied.", server.seqno as f64);
        gauge(
            "committed_seqno",
            "Last write set that is committed in the group.",
            server.committed as f64,
        );
        gauge(
            "lag_write_sets",
            "Write sets that are committed and not applied here.",
            write_sets(report) as f64,
        );
        gauge("lag_seconds", "Age of the first of these.", server.lag_ms as f64 / 1e3);
        gauge("apply_queue", "Write sets that wait for the appliers.", server.queued as f64);
        gauge(
            "transactions",
            "Transactions of its clients that are under way.",
            server.transactions as f64,
        );
    }
}

fn of_members(report: &Report, registry: &mut Registry) {
    let connected = Family::<Member, Gauge>::default();
    let voter = Family::<Member, Gauge>::default();
    let behind = Family::<Member, Gauge>::default();
    let lag = Family::<Member, Gauge<f64, AtomicU64>>::default();
    for member in &report.members {
        let label = Member { member: member.name.clone() };
        connected.get_or_create(&label).set(member.connected.into());
        voter.get_or_create(&label).set((member.votes > 0 && !member.joining).into());
        if let Some(matched) = member.matched_index {
            behind.get_or_create(&label).set(report.own.last_index.saturating_sub(matched) as i64);
        }
        if let Some(standing) = &member.standing {
            lag.get_or_create(&label).set(standing.lag_ms as f64 / 1e3);
        }
    }
    registry.register("member_connected", "Whether it is connected to this member.", connected);
    registry.register("member_votes", "Whether it counts for majorities.", voter);
    registry.register_with_unit(
        "member_behind",
        "Of the leader: log entries that a member is not known to have on its disk.",
        Unit::Other("entries".to_owned()),
        behind,
    );
    registry.register_with_unit(
        "member_lag",
        "Of another member, as it last told this one: age of the first write set that it has not applied.",
        Unit::Seconds,
        lag,
    );
}

fn of_latency(report: &Report, registry: &mut Registry) {
    if let Some(sync) = &report.own.log.sync_latency {
        registry.register_with_unit(
            "sync_latency",
            "Time of a sync of the log, with its write.",
            Unit::Seconds,
            Counted(sync.clone()),
        );
    }
    let server = report.own.server.as_ref();
    if let Some(commit) = server.and_then(|server| server.commit_latency.clone()) {
        let CommitLatencyReport { replicate, order, commit } = commit;
        registry.register_with_unit(
            "commit_latency",
            "Time of each stage of the commits of its clients.",
            Unit::Seconds,
            Stages([("replicate", replicate), ("order", order), ("commit", commit)]),
        );
    }
}

/// A histogram that was counted elsewhere.
#[derive(Debug)]
struct Counted(LatencyReport);

/// Those of the stages of something.
#[derive(Debug)]
struct Stages([(&'static str, LatencyReport); 3]);

fn encode_histogram(latency: &LatencyReport, mut encoder: MetricEncoder) -> fmt::Result {
    let seconds = |us: u64| us as f64 / 1e6;
    let known = latency.buckets.iter().map(|(end_us, count)| (seconds(*end_us), *count));
    let buckets: Vec<(f64, u64)> = known.chain([(f64::INFINITY, latency.beyond)]).collect();
    let (sum, count) = (seconds(latency.sum_us), latency.count());
    encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
}

impl EncodeMetric for Counted {
    fn encode(&self, encoder: MetricEncoder) -> fmt::Result {
        encode_histogram(&self.0, encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

impl EncodeMetric for Stages {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        for (stage, latency) in &self.0 {
            encode_histogram(latency, encoder.encode_family(&[("stage", *stage)])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::verdict::tests::report;
    use quorate_latency::Latency;
    use quorate_live::port::{MemberReport, StandingReport};
    use std::time::{Duration, Instant};

    #[test]
    fn a_scrape_has_what_is_known_and_says_what_is_not() {
        let memory = Memory::new(Duration::from_secs(1));
        let text = render(&memory.known(), None).unwrap();
        assert!(text.contains("quorate_up 0.0\n"), "{text}");
        assert!(!text.contains("quorate_leader ") && !text.contains("quorate_paused "), "{text}");
        assert!(!text.contains("quorate_agent_certificate_days"), "it has none: {text}");
        let build = concat!("quorate_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"");
        assert!(text.contains(build), "{text}");
        let mut seen = report(true, "single");
        seen.own.last_index = 50;
        seen.rules.paused = true;
        let latency = Latency::default();
        for us in [300, 1_000, 7_000_000] {
            latency.took(Duration::from_micros(us));
        }
        seen.own.log.sync_latency = Some(latency.report());
        seen.members = vec![MemberReport {
            name: "n2\"x".into(),
            connected: true,
            matched_index: Some(43),
            standing: Some(StandingReport { lag_ms: 2_500, ..StandingReport::default() }),
            ..MemberReport::default()
        }];
        memory.answered(seen, Instant::now());
        let text = render(&memory.known(), Some(-2)).unwrap();
        for line in [
            "quorate_up 1.0",
            "quorate_paused 1.0",
            "quorate_agent_certificate_days -2.0",
            "quorate_primary 1.0",
            "quorate_lag_write_sets 10.0",
            "quorate_lag_seconds 1.5",
            "quorate_member_connected{member=\"n2\\\"x\"} 1",
            "quorate_member_behind_entries{member=\"n2\\\"x\"} 7",
            "quorate_member_lag_seconds{member=\"n2\\\"x\"} 2.5",
            "quorate_questions_total 1",
            "quorate_local_cert_failures_total 3",
            "quorate_sync_latency_seconds_bucket{le=\"0.001\"} 2",
            "quorate_sync_latency_seconds_bucket{le=\"+Inf\"} 3",
            "quorate_sync_latency_seconds_sum 7.0013",
            "quorate_commit_latency_seconds_count{stage=\"order\"} 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
    }
}
