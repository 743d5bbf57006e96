//! Runs MariaDB's test suites with this provider and with Debian's Galera on this machine, and
//! prints what passes where. Results are kept, so that one provider can be run again alone.

use anyhow::{bail, ensure, Context, Result};
use clap::Parser;
use quorate_lab::leftovers::clear;
use quorate_tests::cluster::library_path;
use quorate_tests::mtr::results::{Outcome, Results};
use quorate_tests::mtr::runner::Run;
use quorate_tests::mtr::table::{Comparison, Verdict};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const GALERA: &str = "/usr/lib/galera/libgalera_smm.so";

#[derive(Parser)]
struct Args {
    #[arg(long, value_delimiter = ',', default_value = "wsrep,galera_sr,galera")]
    suites: Vec<String>,
    /// Only these tests (suite.test)
    #[arg(long, value_delimiter = ',')]
    tests: Vec<String>,
    /// Which to run: quorate, galera; the other's kept results are compared with
    #[arg(long, value_delimiter = ',', default_value = "quorate,galera")]
    providers: Vec<String>,
    /// Tests at once
    #[arg(long, default_value_t = 2)]
    parallel: u16,
    /// How often a failed test is tried again
    #[arg(long, default_value_t = 1)]
    retry: u32,
    /// Run the tests that this file lists, with this provider alone; all have to pass
    #[arg(long)]
    list: Option<PathBuf>,
    /// Take the results of a provider from a runner's log instead: galera=FILE
    #[arg(long, value_delimiter = ',')]
    read_log: Vec<String>,
    /// Only compare what is kept
    #[arg(long)]
    compare: bool,
    #[arg(long, default_value = "docs/compatibility.md")]
    document: PathBuf,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let dir = Directory::find()?;
    if let Some(list) = &args.list {
        return quick(&args, &dir, list);
    }
    for pair in &args.read_log {
        let (provider, log) = pair.split_once('=').context("--read-log takes PROVIDER=FILE")?;
        read_log(&dir, provider, Path::new(log))?;
    }
    if !args.compare && args.read_log.is_empty() {
        for provider in &args.providers {
            let whole: &[String] = if args.tests.is_empty() { &args.suites } else { &[] };
            let keep = |newer: &Results, whole| {
                let mut kept = Results::load(&dir.kept(provider))?;
                kept.update(newer.clone(), whole);
                kept.save(&dir.kept(provider))
            };
            let mut newer = run(&args, &dir, provider, &args.suites, &args.tests)?;
            // Of hours; the second run may come to nothing.
            keep(&newer, whole)?;
            run_again(&args, &dir, provider, &args.tests, AGAIN, &mut newer)?;
            keep(&newer, &[])?;
        }
    }
    compare(&args, &dir)
}

fn compare(args: &Args, dir: &Directory) -> Result<ExitCode> {
    let ours = Results::load(&dir.kept("quorate"))?;
    let galera = Results::load(&dir.kept("galera"))?;
    let documented = fs::read_to_string(&args.document)
        .with_context(|| format!("reading {}", args.document.display()))?;
    let comparison = Comparison { ours: &ours, galera: &galera, documented: &documented };
    let (table, verdict) = comparison.show(&args.suites);
    println!("\n{table}");
    match verdict {
        Verdict::Good => Ok(ExitCode::SUCCESS),
        Verdict::Bad(reasons) => {
            println!("Not good enough:\n{}", reasons.join("\n"));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The chosen few, for every change: no comparison, nothing may fail or be skipped.
fn quick(args: &Args, dir: &Directory, list: &Path) -> Result<ExitCode> {
    let text = fs::read_to_string(list).with_context(|| format!("reading {}", list.display()))?;
    let tests: Vec<String> = text
        .lines()
        .map(|line| line.split_once("# ").map_or(line, |(test, _)| test).trim())
        .filter(|test| !test.is_empty())
        .map(str::to_owned)
        .collect();
    let mut results = run(args, dir, "quorate", &suites_of(&tests), &tests)?;
    run_again(args, dir, "quorate", &tests, AGAIN_QUICK, &mut results)?;
    let of = |wanted| results.0.iter().filter(move |(_, row)| row.outcome == wanted);
    for outcome in [Outcome::Unstable, Outcome::Skipped, Outcome::InDoubt, Outcome::Failed] {
        of(outcome).for_each(|(test, _)| println!("{}: {test}", outcome.name()));
    }
    let passed = results.0.values().filter(|row| row.outcome.passed()).count();
    let bad = results.0.len() - passed;
    let good = passed > 0 && bad == 0;
    println!("test result: {}. {passed} passed; {bad} failed", if good { "ok" } else { "FAILED" });
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Each once.
fn suites_of(tests: &[String]) -> Vec<String> {
    let suites = tests.iter().filter_map(|test| test.split_once('.'));
    let suites: BTreeSet<&str> = suites.map(|(suite, _)| suite).collect();
    suites.into_iter().map(str::to_owned).collect()
}

/// The runner itself tries tests again that fail, but not those that its servers' warnings leave in doubt.
const AGAIN: &[Outcome] = &[Outcome::InDoubt];
/// Nor does it where it finds a warning in an error log, such as that the disk stood still while a compiler wrote
/// beside it: of the chosen few, those are tried again, too.
const AGAIN_QUICK: &[Outcome] = &[Outcome::InDoubt, Outcome::Failed];

/// Runs those of `first` once more that ended in one of these ways, where `tests` were run. What they wrote the first
/// time stays.
fn run_again(
    args: &Args,
    dir: &Directory,
    provider: &str,
    tests: &[String],
    how: &[Outcome],
    first: &mut Results,
) -> Result<()> {
    let again = first.ended(how);
    if args.retry == 0 || again.is_empty() {
        return Ok(());
    }
    let wrote = dir.run(provider, tests);
    let stays = dir.mtr.join(format!("{provider}-first"));
    let wrote = if wrote == dir.run(provider, &again) {
        clear(&stays)?;
        fs::rename(&wrote, &stays)?;
        stays
    } else {
        wrote
    };
    println!("again: {}; what they wrote is in {}", again.join(", "), wrote.display());
    first.run_again(run(args, dir, provider, &suites_of(&again), &again)?);
    Ok(())
}

fn run(
    args: &Args,
    dir: &Directory,
    provider: &str,
    suites: &[String],
    tests: &[String],
) -> Result<Results> {
    let path = match provider {
        "quorate" => library_path(),
        "galera" => PathBuf::from(GALERA),
        other => bail!("provider {other}: neither quorate nor galera"),
    };
    println!(
        "{provider}: {} of {}",
        if tests.is_empty() { "all" } else { "some" },
        suites.join(", ")
    );
    let run_dir = dir.run(provider, tests);
    fs::create_dir_all(&run_dir)?;
    let run = Run {
        provider: &path,
        suites,
        tests,
        parallel: args.parallel,
        retry: args.retry,
        dir: &run_dir,
    };
    run.results(|line| println!("{line}"))
}

fn read_log(dir: &Directory, provider: &str, log: &Path) -> Result<()> {
    let text = fs::read(log).with_context(|| format!("reading {}", log.display()))?;
    let mut results = Results::default();
    String::from_utf8_lossy(&text).lines().for_each(|line| {
        results.read_line(line);
    });
    ensure!(!results.0.is_empty(), "{} tells of no test", log.display());
    let mut kept = Results::load(&dir.kept(provider))?;
    kept.update(results, &[]);
    kept.save(&dir.kept(provider))
}

/// What runs leave, beside the build.
struct Directory {
    mtr: PathBuf,
}

impl Directory {
    fn find() -> Result<Directory> {
        let own = std::env::current_exe()?;
        let build = own.parent().context("this program has no directory")?;
        let mtr = build.parent().context("the build has no directory")?.join("mtr");
        fs::create_dir_all(&mtr).with_context(|| format!("creating {}", mtr.display()))?;
        Ok(Directory { mtr })
    }

    /// Of one run. What a whole run wrote of its failures is still there after some of them were run again.
    fn run(&self, provider: &str, tests: &[String]) -> PathBuf {
        self.mtr.join(if tests.is_empty() {
            provider.to_owned()
        } else {
            format!("{provider}-some")
        })
    }

    fn kept(&self, provider: &str) -> PathBuf {
        self.mtr.join(format!("{provider}.tsv"))
    }
}
