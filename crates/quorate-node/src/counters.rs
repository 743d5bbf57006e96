//! What is counted for the status variables, and the small switches read on hot paths.

use crate::blocking::{Mutex, RwLock};
use crate::settings::{Settings, BYTES_MAX};
use quorate_certify::{Packing, WriteSetBuilder};
use quorate_consensus::MemberId;
use quorate_latency::Latency;
use quorate_live::{CommitLatencyReport, CommitReport};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

pub struct Counters {
    /// Client addresses of the members of the last view, comma-separated.
    pub incoming: Mutex<String>,
    pub applier_threads: AtomicUsize,
    pub replicated: AtomicU64,
    pub replicated_bytes: AtomicU64,
    pub repl_keys: AtomicU64,
    pub repl_data_bytes: AtomicU64,
    pub received: AtomicU64,
    pub received_bytes: AtomicU64,
    pub local_commits: AtomicU64,
    pub local_cert_failures: AtomicU64,
    /// Transactions that a write set in the group's order wanted out of its way.
    pub local_bf_aborts: AtomicU64,
    pub local_replays: AtomicU64,
    /// Commits whose clients were answered before all others had applied them, though that was asked for.
    pub not_applied: AtomicU64,
    pub causal_reads: AtomicU64,
    /// Write sets that waited for another one they depend on.
    pub apply_waits: AtomicU64,
    /// Keys in the certification index.
    pub cert_index_size: AtomicU64,
    /// Of the certifier's state at the newest seqno: equal on members that have the same log.
    pub cert_digest: AtomicU64,
    /// Members of the last primary view.
    pub view_members: Mutex<Vec<MemberId>>,
    pub latency: CommitLatency,
    /// Of write sets that were certified: how many, and the sums of what `sequenced` is told of them.
    sequenced_count: AtomicU64,
    distance_sum: AtomicU64,
    interval_sum: AtomicU64,
    max_ws_size: AtomicU64,
    log_conflicts: AtomicBool,
    packing: RwLock<Option<Packing>>,
}

/// Of each stage of the commits of this node's sessions.
#[derive(Default)]
pub struct CommitLatency {
    pub replicate: Latency,
    pub order: Latency,
    pub commit: Latency,
}

impl CommitLatency {
    pub fn report(&self) -> CommitLatencyReport {
        CommitLatencyReport {
            replicate: self.replicate.report(),
            order: self.order.report(),
            commit: self.commit.report(),
        }
    }
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            incoming: Mutex::new(String::new()),
            applier_threads: AtomicUsize::new(0),
            replicated: AtomicU64::new(0),
            replicated_bytes: AtomicU64::new(0),
            repl_keys: AtomicU64::new(0),
            repl_data_bytes: AtomicU64::new(0),
            received: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            local_commits: AtomicU64::new(0),
            local_cert_failures: AtomicU64::new(0),
            local_bf_aborts: AtomicU64::new(0),
            local_replays: AtomicU64::new(0),
            not_applied: AtomicU64::new(0),
            causal_reads: AtomicU64::new(0),
            apply_waits: AtomicU64::new(0),
            cert_index_size: AtomicU64::new(0),
            cert_digest: AtomicU64::new(0),
            view_members: Mutex::new(Vec::new()),
            latency: CommitLatency::default(),
            sequenced_count: AtomicU64::new(0),
            distance_sum: AtomicU64::new(0),
            interval_sum: AtomicU64::new(0),
            max_ws_size: AtomicU64::new(u64::MAX),
            log_conflicts: AtomicBool::new(false),
            packing: RwLock::new(None),
        }
    }

    /// Takes over the settings that hot paths read.
    pub fn configure(&self, settings: &Settings) {
        self.max_ws_size.store(settings.write_set_bytes_max.min(BYTES_MAX), Relaxed);
        self.log_conflicts.store(settings.log_conflicts, Relaxed);
        *self.packing.write() = settings.packing;
    }

    /// How the data of write sets is packed.
    pub fn packing(&self) -> Option<Packing> {
        *self.packing.read()
    }

    /// Whether a write set is within the limit, of which so many bytes are sent already.
    pub fn allows(&self, builder: &WriteSetBuilder, sent: u64) -> bool {
        builder.encoded_len() as u64 + sent <= self.max_ws_size.load(Relaxed)
    }

    pub fn log_conflicts(&self) -> bool {
        self.log_conflicts.load(Relaxed)
    }

    /// A write set of this node's that is proposed, of `bytes`; with so much data before that was packed, parts
    /// included.
    pub fn note_local(&self, keys: usize, data_bytes: u64, bytes: usize) {
        self.replicated.fetch_add(1, Relaxed);
        self.replicated_bytes.fetch_add(bytes as u64, Relaxed);
        self.repl_keys.fetch_add(keys as u64, Relaxed);
        self.repl_data_bytes.fetch_add(data_bytes, Relaxed);
    }

    /// A part of one.
    pub fn note_part(&self, bytes: usize) {
        self.replicated_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub fn received(&self, bytes: usize) {
        self.received.fetch_add(1, Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// A part of a large transaction of another node's.
    pub fn received_part(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub fn local_commit(&self) {
        self.local_commits.fetch_add(1, Relaxed);
    }

    pub fn cert_failure(&self) {
        self.local_cert_failures.fetch_add(1, Relaxed);
    }

    pub fn local_bf_abort(&self) {
        self.local_bf_aborts.fetch_add(1, Relaxed);
    }

    pub fn local_replay(&self) {
        self.local_replays.fetch_add(1, Relaxed);
    }

    /// What became of this node's transactions.
    pub fn commits(&self) -> CommitReport {
        CommitReport {
            commits: self.local_commits.load(Relaxed),
            cert_failures: self.local_cert_failures.load(Relaxed),
            bf_aborts: self.local_bf_aborts.load(Relaxed),
            replays: self.local_replays.load(Relaxed),
        }
    }

    /// A write set was certified: which one it depends on, and up to where its origin had applied when it was
    /// proposed.
    pub fn sequenced(&self, seqno: i64, depends_on: i64, last_seen: i64) {
        self.sequenced_count.fetch_add(1, Relaxed);
        self.distance_sum.fetch_add((seqno - depends_on.max(0)).max(0) as u64, Relaxed);
        self.interval_sum.fetch_add((seqno - last_seen.max(0) - 1).max(0) as u64, Relaxed);
    }

    /// What is told of the certifier's state.
    pub fn set_certifier(&self, keys: u64, digest: u64) {
        self.cert_index_size.store(keys, Relaxed);
        self.cert_digest.store(digest, Relaxed);
    }

    /// Average distance between a write set and the last one it depends on.
    pub fn cert_deps_distance(&self) -> f64 {
        self.mean_of(&self.distance_sum)
    }

    /// How many others were ordered, on average, between what a write set had seen and itself: those it may
    /// conflict with.
    pub fn cert_interval(&self) -> f64 {
        self.mean_of(&self.interval_sum)
    }

    fn mean_of(&self, sum: &AtomicU64) -> f64 {
        match self.sequenced_count.load(Relaxed) {
            0 => 0.0,
            n => sum.load(Relaxed) as f64 / n as f64,
        }
    }

    pub fn reset(&self) {
        for counter in [
            &self.replicated,
            &self.replicated_bytes,
            &self.repl_keys,
            &self.repl_data_bytes,
            &self.received,
            &self.received_bytes,
            &self.local_commits,
            &self.local_cert_failures,
            &self.local_bf_aborts,
            &self.local_replays,
            &self.not_applied,
            &self.causal_reads,
            &self.apply_waits,
            &self.sequenced_count,
            &self.distance_sum,
            &self.interval_sum,
        ] {
            counter.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_all_that_was_certified_since_they_began_anew() {
        let counters = Counters::new();
        assert_eq!((counters.cert_deps_distance(), counters.cert_interval()), (0.0, 0.0));
        counters.sequenced(5, 4, 4);
        counters.sequenced(9, 4, 6);
        assert_eq!((counters.cert_deps_distance(), counters.cert_interval()), (3.0, 1.0));
        counters.reset();
        counters.sequenced(10, 8, 9);
        assert_eq!((counters.cert_deps_distance(), counters.cert_interval()), (2.0, 0.0));
    }
}
