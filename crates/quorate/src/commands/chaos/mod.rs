//! `quorate chaos`: clients work while things fail, and what was promised is checked.

mod loopback;

pub use loopback::Loopback;

use crate::args::{Chaos, ChaosSystem, ChaosWriters};
use crate::failure::{Failure, MISSING_SOFTWARE, OK, TIMED_OUT, USAGE, VIOLATED};
use anyhow::{Context, Result};
use quorate_lab::chaos::{self, Conclusion, Live, Options};
use quorate_lab::cluster::{Cluster, Plan, System};
use quorate_lab::schedule::{Means, Rounds};
use quorate_lab::target::Target;
use quorate_lab::workload::Writers;
use quorate_lab::{schedule, workload};
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where nobody watches a terminal, the live line is printed this seldom.
const SECONDS_BETWEEN_LINES: u64 = 10;

pub fn chaos(args: &Chaos) -> Result<u8> {
    if args.list {
        print!("{}", list());
        return Ok(OK);
    }
    if let Some(folder) = &args.check {
        return check_again(folder);
    }
    let seed = args.seed.unwrap_or_else(fresh_seed);
    // Said before anything is made: which names there are does not depend on the cluster.
    let means = if args.loopback { Means::NONE } else { Means::ALL };
    let members = args.nodes + args.loggers + args.learners;
    Rounds::new(&args.schedule, seed, usize::from(members), means)
        .map_err(|message| Failure::new(USAGE, format!("{message}; see quorate chaos --list")))?;
    let options = Options {
        workloads: workloads(args)?,
        schedules: args.schedule.clone(),
        seed,
        duration: Duration::from_secs_f64(args.minutes * 60.0),
        writers: match args.writers {
            ChaosWriters::One => Writers::One,
            ChaosWriters::All => Writers::Everywhere,
        },
    };
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("chaos-{seed}")));
    fs::create_dir_all(&out).with_context(|| format!("making {}", out.display()))?;
    println!("seed {seed}; results in {}", out.display());

    let target = target(args)?;
    let report = chaos::run(target, &options, &out, &show)?;
    println!("{}", report.text(&options, members.into()));
    println!("{}", out.join("report.html").display());
    Ok(match report.conclusion {
        Conclusion::Held => OK,
        Conclusion::Violated => VIOLATED,
        Conclusion::NotHealed | Conclusion::Empty => TIMED_OUT,
    })
}

fn target(args: &Chaos) -> Result<Box<dyn Target>> {
    let server_options: String = args.set.iter().map(|option| format!("{option}\n")).collect();
    if args.loopback {
        if args.loggers + args.learners > 0 {
            let message = "--loggers and --learners need the lab: leave out --loopback";
            return Err(Failure::new(USAGE, message).into());
        }
        if args.system != ChaosSystem::Quorate {
            let message = "--loopback knows Quorate only: leave it out for other systems";
            return Err(Failure::new(USAGE, message).into());
        }
        let text = format!("[mariadbd]\n{server_options}");
        let provider_options = args.provider_options.as_deref();
        return Ok(Box::new(Loopback::start(args.nodes, &text, provider_options)?));
    }
    if args.system != ChaosSystem::Quorate && args.loggers + args.learners > 0 {
        let message = "--loggers and --learners are roles that only Quorate knows";
        return Err(Failure::new(USAGE, message).into());
    }
    let system = match args.system {
        ChaosSystem::Quorate => System::Quorate(crate::server::find_provider(None)?),
        ChaosSystem::Galera => System::galera()
            .map_err(|error| Failure::new(MISSING_SOFTWARE, format!("{error:#}")))?,
    };
    let plan = Plan {
        nodes: usize::from(args.nodes),
        learners: args.learners.into(),
        loggers: args.loggers.into(),
        logger_program: std::env::current_exe().context("finding this program's own file")?,
        topology: args.preset.parse().map_err(|e| Failure::new(USAGE, format!("{e:#}")))?,
        server_options,
        provider_options: args.provider_options.clone().unwrap_or_default(),
        clocks: wants_clocks(&args.schedule) && Cluster::clocks_can_be_set(),
        ..Plan::new(system)
    };
    Ok(Box::new(Cluster::start(&plan)?))
}

/// Servers whose clocks can be set ask for the time another way, so only where it is wanted.
fn wants_clocks(schedules: &[String]) -> bool {
    schedules.iter().any(|name| ["every", "random", "clocks"].contains(&name.as_str()))
}

fn workloads(args: &Chaos) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in &args.workload {
        match name.as_str() {
            "all" => names.extend(workload::NAMES.iter().map(|(name, _)| (*name).to_owned())),
            name if workload::named(name).is_some() => names.push(name.to_owned()),
            name => {
                let message = format!("there is no workload {name:?}; see quorate chaos --list");
                return Err(Failure::new(USAGE, message).into());
            }
        }
    }
    Ok(names)
}

/// The checkers once more, on what an earlier run left.
fn check_again(folder: &Path) -> Result<u8> {
    let mut code = OK;
    for (name, _) in workload::NAMES {
        let Some(findings) = chaos::judge_again(folder, name)? else { continue };
        println!("{name}: {} findings", findings.len());
        for finding in findings {
            println!("{}, {} times:\n{}", finding.anomaly, finding.count, finding.evidence);
            if finding.anomaly.is_violation() {
                code = VIOLATED;
            }
        }
    }
    Ok(code)
}

fn list() -> String {
    let lines = |names: &[(&str, &str)]| -> String {
        names.iter().map(|(name, what)| format!("  {name:<12} {what}\n")).collect()
    };
    format!(
        "Workloads:\n  {:<12} all of these at once\n{}\nSchedules:\n  {:<12} all of these in turn\n  \
         {:<12} any of these, drawn anew each round\n{}",
        "all",
        lines(&workload::NAMES),
        "every",
        "random",
        lines(&schedule::NAMES)
    )
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 % 1_000_000_000
}

/// The live line: rewritten on a terminal, now and then elsewhere.
fn show(live: &Live) {
    let text = if live.doing.is_empty() {
        let faults = if live.faults.is_empty() { "all well" } else { &live.faults };
        format!(
            "{:>5} s left  {:>6} ok/s  {:>8} ok  {:>6} refused  {:>5} unknown  {faults}",
            live.left.as_secs(),
            live.rate,
            live.total.ok,
            live.total.failed,
            live.total.unknown
        )
    } else {
        format!("{} ...", live.doing)
    };
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
        // A line that does not show at once is no loss.
        let _ = std::io::stderr().flush();
    } else if !live.doing.is_empty() || live.left.as_secs() % SECONDS_BETWEEN_LINES == 0 {
        eprintln!("{text}");
    }
}
