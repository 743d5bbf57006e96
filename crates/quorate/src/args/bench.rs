//! What is to be measured.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
#[command(
    about = "Compare Quorate with other systems on this machine",
    long_about = "Starts each system anew on hosts and networks that are made for it, puts load on it, and writes one \
        report: charts, tables, the exact settings of each system, and the figures that others have \
        published for the same test. The systems take turns, and each figure is the median of several \
        rounds.\n\n\
        The hosts are network namespaces, so it needs root; the nodes' data is on the disk of \
        $QUORATE_LAB_DIR [default: /var/tmp]. All members share this machine: compare ratios, not \
        figures. Ctrl-C ends the run with a report of what is done, and the same command with the same --out \
        continues from there. Figures of another build, of servers of another version, or with other settings do not \
        go into the same --out: name another folder, or remove this one.\n\n\
        Results: DIR/report.html, DIR/cells.csv, DIR/results.json, DIR/summary.md, \
        DIR/throughput.svg.\n\n\
        Exit code 0: every cell has its figures. 1: some cells failed; the report says which, and why. A run that \
        is ended by a signal writes its report, and then ends by that signal (130 in a shell after Ctrl-C).\n\n\
        Examples:\n  quorate bench --quick                      a quarter of an hour\n  \
        quorate bench                              a night; --list says how long\n  \
        quorate bench oltp --networks lan,two-regions --systems quorate,galera\n  \
        quorate bench oltp latency --full --out full\n  \
        quorate bench report full more --out both  merge runs of one machine, and draw them again",
    args_conflicts_with_subcommands = true
)]
pub struct Bench {
    #[command(subcommand)]
    pub what: Option<BenchWhat>,

    /// The tests; --list shows them [default: all]
    #[arg(value_name = "NAME")]
    pub tests: Vec<String>,

    /// The systems; --list shows them [default: those that are installed, in the tests where they say something; with
    /// --full: in all tests; with --quick: without relaxed systems and servers alone. quorate-plain and quorate-sealed
    /// are measured only if they are named]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub systems: Vec<String>,

    /// The networks; --list shows them [default: lan and two-regions; for oltp, jitter and latency also region; for
    /// jitter also three-regions; with --full: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub networks: Vec<String>,

    /// One round, with fewer systems, cases and numbers of clients; clusters are used again
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,

    /// Everything that others have published, in the same sizes. This takes days
    #[arg(long)]
    pub full: bool,

    /// The number of rounds; the report has the medians [default: 3, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub rounds: Option<u32>,

    /// How long a steady load runs for each cell, in seconds [default: 10, with --quick 3, with --full 60]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(2..=3600))]
    pub seconds: Option<u32>,

    /// The numbers of clients, for tests that have several
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub clients: Vec<u32>,

    /// The number of tables, and of rows in each [default: 4x50000, with --quick 4x25000, with --full 16x10000000]
    #[arg(long, value_name = "TABLESxROWS", value_parser = parse_tables)]
    pub tables: Option<(u32, u32)>,

    /// Where MySQL is installed: a folder with a Debian that has mysql-server-core
    #[arg(
        long,
        value_name = "DIR",
        long_help = "Where MySQL is installed, for gr-eventual, gr-tuned and gr-after: a folder with a Debian of \
            its own. To make it:\n  \
            debootstrap --variant=minbase --include=mysql-server-core,mysql-client-core sid DIR"
    )]
    pub mysql_root: Option<PathBuf>,

    /// For oltp and latency, also write to DIR/profiles what uses the processor in a transaction; by function, if
    /// linux-perf is installed
    #[arg(long)]
    pub profile: bool,

    /// Where the results go. A run that is already there is continued, if its settings are the same
    #[arg(long, value_name = "DIR", default_value = "bench")]
    pub out: PathBuf,

    /// List all tests, systems and networks, and how long the tests take
    #[arg(long)]
    pub list: bool,
}

#[derive(Subcommand)]
pub enum BenchWhat {
    /// Merge the results of runs, and draw the report again
    Report {
        /// Folders of runs
        #[arg(value_name = "DIR", required = true)]
        runs: Vec<PathBuf>,

        /// Where the report goes and, for several runs, their merged results [default for one run: its folder]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

fn parse_tables(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once('x').and_then(|(tables, rows)| {
        let (tables, rows): (u32, u32) = (tables.parse().ok()?, rows.parse().ok()?);
        (tables > 0 && rows > 0).then_some((tables, rows))
    });
    numbers.ok_or_else(|| format!("{text:?} is not like 4x50000"))
}
