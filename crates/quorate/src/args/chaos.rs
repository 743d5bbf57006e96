//! What is to fail, and on what.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// A week.
const MINUTES_MAX: f64 = 7.0 * 24.0 * 60.0;

#[derive(Args)]
#[command(
    about = "Let things fail on a cluster made for it, and check that nothing promised was broken",
    long_about = "Makes a cluster of its own, lets clients work on it while nodes die, hang, are cut \
        off and lose their disks, mends everything, and checks: nothing acknowledged is lost, all \
        nodes are equal byte for byte, transfers balance, no causal read was stale, and which \
        isolation anomalies were seen.\n\n\
        The cluster's hosts are network namespaces and its disks a file system of this command's \
        own, so it needs root; --loopback uses plain processes, whose networks and disks do not \
        fail. Nothing of it is left afterwards but the folder of results: histories, faults, \
        the nodes' logs, verdict.txt, timeline.svg, report.html.\n\n\
        Exit code 0: everything held. 2: something did not. 75: the nodes did not come back in \
        time, or nothing was acknowledged. 1: the run could not be carried out.\n\n\
        Examples:\n  quorate chaos --minutes 5\n  \
        quorate chaos --schedule all --workload set,bank --seed 7\n  \
        quorate chaos --nodes 2 --loggers 1 --learners 1\n  \
        quorate chaos --system galera --schedule all --set innodb_flush_log_at_trx_commit=0"
)]
pub struct Chaos {
    /// What replicates
    #[arg(long, value_enum, default_value = "quorate")]
    pub system: ChaosSystem,

    /// Decides everything the schedule leaves open; printed, so that a run can be repeated
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// How many servers
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub nodes: u16,

    /// Members besides with a log and a vote, and no database; they are numbered last
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=4))]
    pub loggers: u16,

    /// Servers besides without a vote
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=4))]
    pub learners: u16,

    /// How long things fail
    #[arg(long, value_name = "M", default_value_t = 5.0, value_parser = minutes)]
    pub minutes: f64,

    /// What clients do, see --list
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    pub workload: Vec<String>,

    /// What fails, see --list
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "every")]
    pub schedule: Vec<String>,

    /// Whether clients write to one node, or each to its own
    #[arg(long, value_enum, default_value = "all")]
    pub writers: ChaosWriters,

    /// The network: bare, lan, region, two-regions, three-regions, 10ms
    #[arg(long, value_name = "NAME", default_value = "lan")]
    pub preset: String,

    /// Where results go [default: chaos-SEED]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// A server option; wins over those that `quorate up` sets, too
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Options of the provider: `key=value;key=value`
    #[arg(long, value_name = "OPTIONS")]
    pub provider_options: Option<String>,

    /// Plain processes on 127.0.0.1, without networks and disks that fail
    #[arg(long)]
    pub loopback: bool,

    /// Name all workloads and schedules
    #[arg(long)]
    pub list: bool,

    /// Only run the checkers again, on the folder of an earlier run
    #[arg(long, value_name = "DIR")]
    pub check: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChaosSystem {
    Quorate,
    /// As installed; to see that the checkers notice
    Galera,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChaosWriters {
    One,
    All,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse::<f64>().ok();
    let minutes = minutes.filter(|minutes| *minutes > 0.0 && *minutes <= MINUTES_MAX);
    minutes.ok_or_else(|| format!("a number of minutes above 0, and at most {MINUTES_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_a_time_that_a_clock_can_tell() {
        assert_eq!(minutes("0.5"), Ok(0.5));
        assert_eq!(minutes("10080"), Ok(MINUTES_MAX));
        for bad in ["-1", "0", "nan", "inf", "10081", "1e300", "five", ""] {
            let refused = minutes(bad).unwrap_err();
            assert!(refused.ends_with("at most 10080"), "{bad}: {refused}");
        }
    }
}
