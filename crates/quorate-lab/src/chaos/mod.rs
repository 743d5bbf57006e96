//! A whole run: clients work, things fail, everything is healed, and what was promised is checked.
//!
//! ```text
//! OUT/history-<workload>.txt  what clients did and were told, and the final reads
//! OUT/faults.txt              what was done to the cluster, when
//! OUT/node<n>/                each node's configuration and logs
//! OUT/verdict.txt             what was found
//! OUT/timeline.svg            throughput, with the faults marked
//! OUT/report.html             all of that on one page
//! ```

mod compare;
mod page;
mod report;
mod sample;
mod timeline;

pub use report::{Conclusion, Report};
pub use sample::{Live, Moment};

use crate::check::Finding;
use crate::history::{self, Operation, Outcome, Recorder, FINAL};
use crate::random::Random;
use crate::schedule::{Nemesis, Rounds};
use crate::target::Target;
use crate::workload::{self, Client, Site, Workload, Writers};
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SETUP_TIMEOUT: Duration = Duration::from_secs(60);
/// A read of everything, on a node that has just recovered.
const FINAL_TIMEOUT: Duration = Duration::from_secs(120);
/// For all nodes to be level after everything is mended, state transfers included.
const HEAL_LIMIT: Duration = Duration::from_secs(180);
/// Operations of one workload in a run, all its clients together. The nodes' disks are in memory,
/// and so are the histories when they are judged: however long the run and however fast the
/// machine, a few gigabytes must do.
const OPERATIONS_MAX: f64 = 300_000.0;
/// Numbers of clients of different workloads do not meet.
const PROCESSES_PER_WORKLOAD: u32 = 1000;

pub struct Options {
    pub workloads: Vec<String>,
    pub schedules: Vec<String>,
    pub seed: u64,
    pub duration: Duration,
    pub writers: Writers,
}

/// One workload in a run.
struct Job {
    workload: Box<dyn Workload>,
    recorder: Recorder,
}

/// Runs on a cluster whose nodes are Synced; `live` is told how it goes. An error means that the
/// run could not be carried out; what it found is in the report.
pub fn run(
    target: Box<dyn Target>,
    options: &Options,
    out: &Path,
    live: &(dyn Fn(&Live) + Sync),
) -> Result<Report> {
    let members = target.members();
    let (mut report, jobs) = harm(&*target, options, out, live)?;
    // Its disks are in memory, which the checkers may need.
    drop(target);
    live(&Live { doing: "checking", ..Live::default() });
    for job in &jobs {
        let history = finished(job, out)?;
        report.counts.push((job.workload.name(), report::Counts::of(&history)));
        report.findings.push((job.workload.name().to_owned(), job.workload.judge(&history)));
    }
    report.conclude();
    report.write(options, members, out)?;
    Ok(report)
}

/// All that needs the cluster; the histories are not judged yet.
fn harm(
    target: &dyn Target,
    options: &Options,
    out: &Path,
    live: &(dyn Fn(&Live) + Sync),
) -> Result<(Report, Vec<Job>)> {
    let begin = Instant::now();
    let rounds = Rounds::new(&options.schedules, options.seed, target.members(), target.means())
        .map_err(anyhow::Error::msg)?;
    let jobs = jobs(options, out, begin)?;
    set_up(target, &jobs)?;

    let primary = AtomicUsize::new(target.leader().unwrap_or(0));
    let stop = AtomicBool::new(false);
    let nemesis = Nemesis::new(target, &primary, &stop, begin, &out.join("faults.txt"))?;
    let moments = work(target, options, &jobs, rounds, &nemesis, (&primary, &stop), live)?;

    live(&Live { doing: "healing", ..Live::default() });
    let mut unhealed = nemesis.helped();
    if let Err(error) = nemesis.heal(HEAL_LIMIT) {
        unhealed.push(format!("{error:#}"));
    }
    // Whatever comes next, these are wanted.
    target.save_logs(out)?;
    let mut report = Report {
        conclusion: Conclusion::Held,
        unhealed,
        findings: Vec::new(),
        events: nemesis.events(),
        moments,
        counts: Vec::new(),
    };
    live(&Live { doing: "reading everything", ..Live::default() });
    // Without writes all this time, nodes that are Synced at all are level.
    let nodes: Vec<usize> = (0..target.nodes()).filter(|node| nemesis.is_synced(*node)).collect();
    read_finals(target, &nodes, &jobs)?;
    let tables = compare::tables(target, &nodes)?;
    report.findings.push(("all tables".to_owned(), tables));
    let certification = compare::certification(target, &nodes)?;
    report.findings.push(("certification".to_owned(), certification));
    Ok((report, jobs))
}

/// The checkers' findings on a history that an earlier run left.
pub fn judge_again(folder: &Path, workload: &str) -> Result<Option<Vec<Finding>>> {
    let path = history_path(folder, workload);
    if !path.exists() {
        return Ok(None);
    }
    let workload = workload::named(workload).context("no such workload")?;
    Ok(Some(workload.judge(&read_history(&path)?)))
}

fn jobs(options: &Options, out: &Path, start: Instant) -> Result<Vec<Job>> {
    options
        .workloads
        .iter()
        .map(|name| {
            let workload =
                workload::named(name).with_context(|| format!("there is no workload {name:?}"))?;
            let recorder = Recorder::create(&history_path(out, name), start)?;
            Ok(Job { workload, recorder })
        })
        .collect()
}

fn history_path(folder: &Path, workload: &str) -> std::path::PathBuf {
    folder.join(format!("history-{workload}.txt"))
}

fn set_up(target: &dyn Target, jobs: &[Job]) -> Result<()> {
    let mut connection = target.connect(0, SETUP_TIMEOUT).context("connecting to node1")?;
    connection.query_drop("CREATE DATABASE lab")?;
    connection.query_drop("USE lab")?;
    for statement in jobs.iter().flat_map(|job| job.workload.tables()) {
        connection.query_drop(&statement).with_context(|| statement.clone())?;
    }
    target.wait_level(SETUP_TIMEOUT)
}

/// Clients, nemesis and sampling, until the time is over.
fn work(
    target: &dyn Target,
    options: &Options,
    jobs: &[Job],
    mut rounds: Rounds,
    nemesis: &Nemesis,
    (primary, stop): (&AtomicUsize, &AtomicBool),
    live: &(dyn Fn(&Live) + Sync),
) -> Result<Vec<Moment>> {
    let sites: Vec<Site> = jobs
        .iter()
        .map(|job| Site {
            target,
            recorder: &job.recorder,
            writers: options.writers,
            primary,
            stop,
            session: job.workload.session(),
        })
        .collect();
    let mut random = Random::seeded(options.seed);
    thread::scope(|scope| {
        let mut clients = Vec::new();
        for (number, (job, site)) in jobs.iter().zip(&sites).enumerate() {
            let nodes = target.nodes();
            for client in 0..nodes * job.workload.clients_per_node() {
                let process = number as u32 * PROCESSES_PER_WORKLOAD + client as u32;
                let random = Random::seeded(random.below(u64::MAX));
                let mut client = Client::new(site, process, client % nodes, random);
                let clients_of_job = (nodes * job.workload.clients_per_node()) as f64;
                let pause = options.duration.mul_f64(clients_of_job / OPERATIONS_MAX);
                clients.push(scope.spawn(move || -> Result<()> {
                    while !stop.load(Ordering::Relaxed) {
                        let next = Instant::now() + pause;
                        job.workload.step(&mut client)?;
                        thread::sleep(next.saturating_duration_since(Instant::now()));
                    }
                    Ok(())
                }));
            }
        }
        let end = Instant::now() + options.duration;
        let troubles = scope.spawn(move || -> Result<()> {
            while Instant::now() < end && !stop.load(Ordering::Relaxed) {
                let (name, steps) = rounds.draw();
                nemesis.round(name, &steps)?;
            }
            Ok(())
        });
        let recorders: Vec<&Recorder> = jobs.iter().map(|job| &job.recorder).collect();
        let moments = sample::until(end, &recorders, nemesis, live);
        // Threads that ended with an error would leave the run going on without them.
        stop.store(true, Ordering::Relaxed);
        live(&Live { doing: "stopping clients", ..Live::default() });
        for thread in clients.into_iter().chain([troubles]) {
            thread.join().expect("a thread of the run panicked")?;
        }
        Ok(moments)
    })
}

fn read_finals(target: &dyn Target, nodes: &[usize], jobs: &[Job]) -> Result<()> {
    for node in nodes.iter().copied() {
        let mut connection = target
            .connect(node, FINAL_TIMEOUT)
            .with_context(|| format!("connecting to node{} for the final reads", node + 1))?;
        for job in jobs {
            let begin_us = job.recorder.now_us();
            let name = job.workload.name();
            let actions = job
                .workload
                .read_final(&mut connection)
                .with_context(|| format!("final read of {name} on node{}", node + 1))?;
            let who = (FINAL + node as u32 + 1, node as u16 + 1);
            for action in actions {
                job.recorder.ended(begin_us, who, Outcome::Ok, action, String::new())?;
            }
        }
    }
    Ok(())
}

fn finished(job: &Job, out: &Path) -> Result<Vec<Operation>> {
    job.recorder.flush()?;
    read_history(&history_path(out, job.workload.name()))
}

fn read_history(path: &Path) -> Result<Vec<Operation>> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    history::read(BufReader::new(file)).with_context(|| format!("in {}", path.display()))
}
