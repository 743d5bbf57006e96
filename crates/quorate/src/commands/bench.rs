//! `quorate bench`: what is asked for, how far it is, and the report.

use crate::args::{Bench, BenchWhat};
use crate::failure;
use anyhow::{bail, ensure, Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quorate_bench::drive::sysbench::Tables;
use quorate_bench::drive::tools::tools;
use quorate_bench::plan::{Grid, PUBLISHED};
use quorate_bench::record::{Invocation, Machine, Results, Run, Store};
use quorate_bench::run::{self, Live, Wish};
use quorate_bench::suite::{self, Scale, Test};
use quorate_bench::system::{self, Sources, System, PEERS, VARIANTS};
use quorate_bench::{meter, report};
use quorate_lab::cluster;
use quorate_lab::leftovers;
use quorate_lab::net::Topology;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub fn bench(args: &Bench) -> Result<u8> {
    match &args.what {
        Some(BenchWhat::Report { runs, out }) => draw(runs, out.as_ref().unwrap_or(&runs[0])),
        None if args.list => list(args),
        None => measure(args),
    }
}

fn measure(args: &Bench) -> Result<u8> {
    ensure!(rustix::process::geteuid().is_root(), "hosts are network namespaces: run it as root");
    let wish = wish(args)?;
    if let Some(absent) = meter::perf_is_absent().filter(|_| args.profile) {
        eprintln!("{absent}");
    }
    let mut about = Run {
        invocations: vec![Invocation {
            command: std::iter::once("quorate".to_owned())
                .chain(std::env::args().skip(1))
                .collect::<Vec<_>>()
                .join(" "),
            began: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            took_s: 0.0,
        }],
        settings: wish.settings(&build()?),
        machine: Machine { tools: tools(), ..meter::machine()? },
        ..Run::default()
    };
    let out = args.out.clone();
    leftovers::at_signal(move || {
        if let Err(error) = draw(std::slice::from_ref(&out), &out) {
            eprintln!("no report of what is done: {error:#}");
        }
    });
    let bar = progress()?;
    let measured = run::run(&wish, &mut about, &args.out, &|live| show(&bar, live));
    bar.iter().for_each(ProgressBar::finish_and_clear);
    let drawn = match measured.is_ok() || Store::exists(&args.out) {
        true => draw(std::slice::from_ref(&args.out), &args.out),
        false => Ok(failure::FAILED),
    };
    measured?;
    drawn
}

/// Of what is measured: this command, and Quorate's library where there is one.
fn build() -> Result<String> {
    let command = std::env::current_exe().context("finding this program's own path")?;
    let library = cluster::System::quorate().ok();
    let library = library.as_ref().map(cluster::System::provider);
    run::build_id(std::iter::once(command.as_path()).chain(library))
}

/// What the command line asks for.
fn wish(args: &Bench) -> Result<Wish> {
    let grid = match (args.quick, args.full) {
        (true, _) => Grid::Quick,
        (_, true) => Grid::Full,
        _ => Grid::Default,
    };
    let (seconds, rounds, tables, rows) = match grid {
        Grid::Quick => (3, 1, 4, 25_000),
        Grid::Default => (10, 3, 4, 50_000),
        Grid::Full => (60, 3, 16, 10_000_000),
    };
    let (count, rows) = args.tables.unwrap_or((tables, rows));
    let scale = Scale {
        grid,
        time: Duration::from_secs(args.seconds.unwrap_or(seconds).into()),
        clients: (!args.clients.is_empty()).then(|| args.clients.clone()),
        tables: Tables { count, rows },
        profiles: args.profile.then(|| args.out.join("profiles")),
    };
    let tests = tests(&args.tests)?;
    let networks = args.networks.iter().map(|name| name.parse());
    let networks: Vec<Topology> = networks.collect::<Result<_>>()?;
    let networks = (!networks.is_empty()).then_some(networks);
    let rounds = args.rounds.unwrap_or(rounds);
    let (systems, named) = (systems(args)?, !args.systems.is_empty());
    Ok(Wish { tests, systems, named, networks, rounds, scale, reuse: args.quick })
}

/// Those that were named; else all whose programs are installed.
fn tests(names: &[String]) -> Result<Vec<&'static dyn Test>> {
    let mut tests = Vec::new();
    for name in names {
        let test = suite::named(name)?;
        test.check()?;
        tests.push(test);
    }
    if names.is_empty() {
        for test in suite::ALL {
            match test.check() {
                Ok(()) => tests.push(test),
                Err(error) => eprintln!("without {}: {error:#}", test.name()),
            }
        }
    }
    Ok(tests)
}

/// Those that were named; else all of the grid that are installed, and Quorate in any case.
fn systems(args: &Bench) -> Result<Vec<Arc<dyn System>>> {
    let sources = Sources { provider: None, mysql_root: args.mysql_root.clone() };
    if !args.systems.is_empty() {
        let named = args.systems.iter().map(|name| system::named(name, &sources));
        let systems: Vec<Arc<dyn System>> = named.collect::<Result<_>>()?;
        systems.iter().try_for_each(|system| system.check())?;
        return Ok(systems);
    }
    let mut systems = Vec::new();
    // For the others the quick grid has no time.
    let of_grid = |system: &Arc<dyn System>| {
        !VARIANTS.contains(&system.name()) && (!args.quick || PEERS.contains(&system.name()))
    };
    for system in system::all(&sources).into_iter().filter(of_grid) {
        match system.check() {
            Ok(()) => systems.push(system),
            Err(error) if system.name() == "quorate" => return Err(error),
            Err(error) => eprintln!("without {}: {error:#}", system.name()),
        }
    }
    Ok(systems)
}

fn list(args: &Bench) -> Result<u8> {
    let takes = wish(args).map(|wish| (wish.takes(), wish.networks_take()));
    let (takes, networks_take) = takes.unwrap_or_else(|missing| {
        eprintln!("how long it takes is not known: {missing:#}");
        (BTreeMap::new(), Duration::ZERO)
    });
    println!("Tests, and about how long each takes as asked for:");
    for test in suite::ALL {
        let time = takes.get(test.name()).map_or_else(|| "-".into(), |time| minutes(*time));
        println!("  {:<14} {time:>9}  {}", test.name(), test.about());
    }
    println!("  {:<14} {:>9}", "", minutes(takes.values().sum::<Duration>() + networks_take));
    println!("Systems:");
    let sources = Sources { provider: None, mysql_root: args.mysql_root.clone() };
    for system in system::all(&sources) {
        println!("  {:<14} {}", system.name(), system.title());
    }
    println!("Networks:");
    for network in PUBLISHED {
        let [near, far, other] =
            [(0, 1), (0, 2), (1, 2)].map(|(a, b)| network.round_trip(a, b).as_secs_f64() * 1e3);
        println!("  {:<14} round trips {near}, {far}, {other} ms", network.to_string());
    }
    Ok(failure::OK)
}

fn minutes(time: Duration) -> String {
    let minutes = time.as_secs().div_ceil(60);
    format!("{} h {:02} m", minutes / 60, minutes % 60)
}

/// Writes the report of these runs to `out`, and the short table to the terminal.
fn draw(runs: &[PathBuf], out: &Path) -> Result<u8> {
    let results = Results::merge(runs)?;
    // The report is of the cells beside it, and what was measured is not written over.
    if !runs.iter().any(|run| run == out) {
        results.save(out)?;
    } else if runs.len() > 1 {
        bail!("what several runs have needs a folder of its own: name it with --out");
    }
    report::write(&results, out)?;
    print!("{}", report::terminal(&results));
    for warning in results.run.notes.iter().chain(&results.warnings) {
        eprintln!("{warning}");
    }
    println!("{}", out.join("report.html").display());
    let whole = results.cells.iter().all(|cell| cell.failed.is_none());
    Ok(if whole { failure::OK } else { failure::FAILED })
}

const TICK: Duration = Duration::from_secs(1);

/// None where nobody watches: lines are printed then.
fn progress() -> Result<Option<ProgressBar>> {
    if !std::io::stderr().is_terminal() {
        return Ok(None);
    }
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {elapsed}  {wide_msg}")
        .context("the template of the progress bar")?;
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
    // The time is seen to pass while a long cell lasts.
    bar.enable_steady_tick(TICK);
    Ok(Some(bar))
}

fn show(bar: &Option<ProgressBar>, live: &Live) {
    let left = minutes(live.all.saturating_sub(live.done));
    let Some(bar) = bar else {
        return eprintln!("about {left} left: {}", live.now);
    };
    bar.set_length(live.all.as_secs());
    bar.set_position(live.done.as_secs());
    bar.set_message(format!("about {left} left: {}", live.now));
}
