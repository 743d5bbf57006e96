//! What is told of each test: which figure is compared, which stand beside it, and how it is drawn.

use crate::record::figure;
use crate::record::figure::{Figure, COMMIT_PARTS, COSTS, LAB, SWITCHES};
use crate::record::Place;

/// A test in the report.
#[derive(Clone, Copy, Debug)]
pub struct Chapter {
    pub test: &'static str,
    pub title: &'static str,
    /// What is done.
    pub what: &'static str,
    /// Where the clients are connected.
    pub clients: &'static str,
    /// The figure by which systems are compared. None: they are by a fact.
    pub main: Option<&'static str>,
    /// What has a table of its own, too, with Quorate beside each system; not counted in the headline.
    pub too: &'static [&'static str],
    /// What else is shown, besides the costs.
    pub beside: &'static [&'static str],
    pub drawn: Drawn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// A line for each system over numbers of clients.
    OverClients,
    OverMembers,
    /// Throughput from second to second.
    OverTime,
    Bars,
    /// Bars, of parts where the parts are known.
    Parts,
    /// It has no numbers.
    No,
}

const BEHIND: &str = "behind_s";
const CONFLICTS: &str = "conflicts_per_1000_trx";

use Drawn::{Bars, No, OverClients, OverMembers, OverTime, Parts};

pub const CHAPTERS: &[Chapter] = &[
    Chapter {
        test: "oltp",
        title: "Throughput by clients and networks",
        what: "sysbench, clients beside the primary. The throughput is what the clients see; beside it stands how long \
               the members need for the rest once the load has ended.",
        clients: "at the primary",
        main: Some("tps"),
        too: &[],
        beside: &["avg_ms", "p95_ms", BEHIND, CONFLICTS],
        drawn: OverClients,
    },
    Chapter {
        test: "jitter",
        title: "Steadiness",
        what: "Throughput of each second but the first under one steady load, with clients at the primary and \
               spread over all members that take writes.",
        clients: "at the primary, or spread over all members",
        main: Some("cv_percent"),
        too: &["worst_over_median", "tps"],
        beside: &["p95_ms", BEHIND, CONFLICTS],
        drawn: OverTime,
    },
    Chapter {
        test: "failover",
        title: "Loss of the primary",
        what: "The primary is killed, stopped or cut off, idle and under load.",
        clients: "at the primary, then at whoever answers",
        main: Some("write_again_s"),
        too: &["back_to_three_s"],
        beside: &["detect_s"],
        drawn: Bars,
    },
    Chapter {
        test: "secondary",
        title: "Loss and return of a secondary",
        what: "A secondary is killed (at second 10; in the quick grid at second 3); one that was killed is started; one is \
               stopped; an empty one joins.",
        clients: "at the primary",
        main: Some("dip_s"),
        too: &["dip_depth_percent"],
        beside: &["gap_s", "back_to_three_s", "tps"],
        drawn: OverTime,
    },
    Chapter {
        test: "rpo",
        title: "Is what was committed kept?",
        what: "Followers are held before they apply, the primary commits one row and is lost for good, \
               followers crash one after the other and come back.",
        clients: "at the primary",
        main: None,
        too: &[],
        beside: &[],
        drawn: No,
    },
    Chapter {
        test: "replay",
        title: "How far replicas are behind",
        what: "A load of a given length, with replicas that apply, and with applying held back and let go.",
        clients: "at the primary",
        main: Some("replay_s"),
        too: &["lag_p99_ms"],
        beside: &["lag_p50_ms", "lag_max_ms", "apply_over_write", "tps", CONFLICTS],
        drawn: Bars,
    },
    Chapter {
        test: "scale",
        title: "More members",
        what: "The best rate at which no member's lag grows.",
        clients: "at the primary",
        main: Some("best_tps"),
        too: &[],
        beside: &["trx_per_cpu_s", "avg_ms", CONFLICTS],
        drawn: OverMembers,
    },
    Chapter {
        test: "tpcc",
        title: "TPC-C",
        what: "32 clients at the primary; a history table with a key.",
        clients: "at the primary",
        main: Some("tps"),
        too: &["replica_elapsed_s"],
        beside: &["first_replica_s", "transactions", "tpm", "avg_ms", "replica_tps", CONFLICTS],
        drawn: Bars,
    },
    Chapter {
        test: "latency",
        title: "Where the time of a commit goes",
        what: "One client, from the leader, from a near member and from a far one. The parts are medians of \
               commits that the kernel traced; the own log is synced while the others answer.",
        clients: "where the load says",
        main: Some("commit_us"),
        too: &[],
        beside: COMMIT_PARTS,
        drawn: Parts,
    },
    Chapter {
        test: "large",
        title: "Large transactions beside small ones",
        what: "One large transaction while small ones go on.",
        clients: "spread over all members that take writes",
        main: Some("primary_gap_s"),
        too: &["gap_s", "p99_ms"],
        beside: &["large_s", "small_failed", "primary_memory_mb", "memory_mb"],
        drawn: Bars,
    },
    Chapter {
        test: "persistence",
        title: "What the sync of the log costs",
        what: "Systems in which the group has a log: as they are, and with all syncs of the servers taken away from \
               outside.",
        clients: "at the primary",
        main: Some("tps"),
        too: &[],
        beside: &["avg_ms", "p95_ms", BEHIND, CONFLICTS],
        drawn: OverClients,
    },
    Chapter {
        test: "conflicts",
        title: "Writes to the same rows everywhere",
        what: "Clients of all members that take writes update the same hot rows. With a single primary, all are \
               clients of that, and wait for each other's locks.",
        clients: "spread over all members that take writes",
        main: Some("goodput_tps"),
        too: &[],
        beside: &["cert_failures", "avg_ms"],
        drawn: Bars,
    },
    Chapter {
        test: "flow",
        title: "A slow secondary",
        what: "Thresholds of flow control, where a system has it. A primary that slows down less is further ahead of \
               its secondary: throughput and lag belong together, and these points are not counted in the headline.",
        clients: "at the primary",
        main: Some("tps"),
        too: &["lag_p99_ms"],
        beside: &["worst_tps", "lag_p50_ms", "lag_max_ms", BEHIND, CONFLICTS],
        drawn: Bars,
    },
];

impl Chapter {
    pub fn main(&self) -> Option<&'static Figure> {
        self.main.and_then(figure::named)
    }

    /// Whether a point counts for the run as a whole: not where nobody syncs, and not where throughput is bought with
    /// lag.
    pub fn counts(&self, place: &Place) -> bool {
        let is_relaxed = ["unsynced", "relaxed"].iter().any(|how| place.load.ends_with(how));
        !is_relaxed && self.test != "flow"
    }

    /// All figures, the compared one first.
    pub fn figures(&self) -> impl Iterator<Item = &'static Figure> + '_ {
        self.main
            .iter()
            .chain(self.too)
            .chain(self.beside)
            .chain(COSTS)
            .chain(LAB)
            .chain(SWITCHES)
            .filter_map(|name| figure::named(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_figure() {
        for chapter in CHAPTERS {
            let names = chapter.main.iter().chain(chapter.too).chain(chapter.beside);
            let count = names.count() + COSTS.len() + LAB.len() + SWITCHES.len();
            assert_eq!(chapter.figures().count(), count, "{}", chapter.test);
        }
    }
}
