//! What is to fail, and on what.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// A week.
const MINUTES_MAX: f64 = 7.0 * 24.0 * 60.0;

#[derive(Args)]
#[command(
    about = "Make things fail on a cluster of its own, and check that every promise was kept",
    long_about = "Makes a cluster of its own. Clients work on it while nodes die, hang, are cut off and lose their \
        disks. Then it repairs everything, and checks that nothing acknowledged is lost, that all nodes are equal byte \
        for byte, that transfers balance, and that no causal read was stale. It also says which isolation anomalies it \
        saw.\n\n\
        The cluster's hosts are network namespaces, and its disks are in a file system of this command's own, so it \
        needs root. --loopback uses plain processes, whose networks and disks do not fail. Afterwards only the folder \
        of results is left: histories, faults, the nodes' logs, verdict.txt, timeline.svg, report.html.\n\n\
        Exit code 0: every promise was kept. 1: the run could not be carried out. 2: a promise was broken. 75: the \
        nodes did not come back in time, or nothing was acknowledged.\n\n\
        Examples:\n  quorate chaos --minutes 5\n  \
        quorate chaos --schedule all --workload set,bank --seed 7\n  \
        quorate chaos --nodes 2 --loggers 1 --learners 1\n  \
        quorate chaos --system galera --schedule all --set innodb_flush_log_at_trx_commit=0"
)]
pub struct Chaos {
    /// The system to test
    #[arg(long, value_enum, default_value = "quorate")]
    pub system: ChaosSystem,

    /// The seed of all random choices. It is printed, so that a run can be repeated
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// The number of servers
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub nodes: u16,

    /// The number of loggers, which have a log and a vote, but no database. They get the last numbers
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=4))]
    pub loggers: u16,

    /// The number of learners, which are more servers without a vote
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=4))]
    pub learners: u16,

    /// How long things fail, in minutes
    #[arg(long, value_name = "M", default_value_t = 5.0, value_parser = minutes)]
    pub minutes: f64,

    /// What the clients do; --list shows the names
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    pub workload: Vec<String>,

    /// What fails; --list shows the names
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "every")]
    pub schedule: Vec<String>,

    /// Whether all clients write to one node, or each to its own
    #[arg(long, value_enum, default_value = "all")]
    pub writers: ChaosWriters,

    /// The network: bare, lan, region, two-regions, three-regions, 10ms
    #[arg(long, value_name = "NAME", default_value = "lan")]
    pub preset: String,

    /// Where the results go [default: chaos-SEED]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// An option of the servers; it overrides those that `quorate up` sets, too
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Options of the provider: `key=value;key=value`
    #[arg(long, value_name = "OPTIONS")]
    pub provider_options: Option<String>,

    /// Use plain processes on 127.0.0.1, whose networks and disks do not fail
    #[arg(long)]
    pub loopback: bool,

    /// List all workloads and schedules
    #[arg(long)]
    pub list: bool,

    /// Only run the checkers again, on the folder of an earlier run
    #[arg(long, value_name = "DIR")]
    pub check: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChaosSystem {
    Quorate,
    /// As it is installed, to see that the checkers find something
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
