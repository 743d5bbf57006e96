//! Carries out steps on a cluster.
//!
//! A step that cannot be carried out (a node is already gone, say) is told in its event and is no
//! error: what matters is what the checkers say in the end.

use super::{Harm, Step, Victims};
use crate::disk::{Faults, Loss};
use crate::net::Quality;
use crate::random::Random;
use crate::target::Target;
use anyhow::{Context, Result};
use parking_lot::Mutex;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Longer than any node should need, state transfer included; the round goes on without it then.
const SETTLE_LIMIT: Duration = Duration::from_secs(90);
const SYNC_DELAY: Duration = Duration::from_millis(300);
/// Of one processor.
const STARVED: f64 = 0.05;

/// One fault, as the timeline shows it.
#[derive(Clone, Debug)]
pub struct Event {
    pub round: String,
    pub harm: Harm,
    pub nodes: Vec<usize>,
    pub begin: Duration,
    /// When it was mended.
    pub end: Option<Duration>,
}

pub struct Nemesis<'a> {
    target: &'a dyn Target,
    primary: &'a AtomicUsize,
    stop: &'a AtomicBool,
    start: Instant,
    log: Mutex<File>,
    events: Mutex<Vec<Event>>,
    /// Nodes that did not come back by themselves: what was done for each, in order.
    helped: Mutex<Vec<(usize, String)>>,
}

impl<'a> Nemesis<'a> {
    /// Writes what it does to `log`, with times from `start` on.
    pub fn new(
        target: &'a dyn Target,
        primary: &'a AtomicUsize,
        stop: &'a AtomicBool,
        start: Instant,
        log: &Path,
    ) -> Result<Nemesis<'a>> {
        let file = File::create(log).with_context(|| format!("making {}", log.display()))?;
        let (log, events, helped) = (Mutex::new(file), Mutex::default(), Mutex::default());
        Ok(Nemesis { target, primary, stop, start, log, events, helped })
    }

    pub fn events(&self) -> Vec<Event> {
        self.events.lock().clone()
    }

    /// What had to be done for nodes that did not come back by themselves.
    pub fn helped(&self) -> Vec<String> {
        self.helped.lock().iter().map(|(_, text)| text.clone()).collect()
    }

    /// What is broken now, for the live line.
    pub fn now(&self) -> String {
        let events = self.events.lock();
        let open = events.iter().filter(|event| event.end.is_none());
        let texts: Vec<String> =
            open.map(|event| format!("{} {}", event.harm, shown(&event.nodes))).collect();
        texts.join(", ")
    }

    /// Carries out one round; returns early when the run is stopped, and mends all then.
    pub fn round(&self, name: &str, steps: &[Step]) -> Result<()> {
        let first = self.events.lock().len();
        for step in steps {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            match step {
                Step::Hurt(harm, victims) => self.hurt(name, *harm, *victims)?,
                Step::Mend(number) => self.mend(first + number)?,
                Step::Wait(time) => self.wait(*time),
                Step::Settle => self.settle()?,
            }
        }
        let open: Vec<usize> = {
            let events = self.events.lock();
            (first..events.len()).filter(|number| events[*number].end.is_none()).collect()
        };
        open.into_iter().try_for_each(|event| self.mend(event))
    }

    /// Makes everything whole, whatever state it is in, and waits until all nodes are level.
    pub fn heal(&self, limit: Duration) -> Result<()> {
        if let Some(network) = self.target.network() {
            network.heal();
        }
        for node in 0..self.target.members() {
            if let Some(disk) = self.target.disk(node) {
                disk.set_faults(Faults::default());
            }
            if self.target.is_running(node) {
                self.target.resume(node)?;
            }
        }
        self.target.start_all()?;
        let end = Instant::now() + limit;
        loop {
            let level = self.target.wait_level(end.saturating_duration_since(Instant::now()));
            if level.is_ok() || !self.restart_those_that_ask()? || Instant::now() >= end {
                return level;
            }
        }
    }

    /// What a service manager does for a server that ended because its donor failed, say. True if
    /// there was one.
    fn restart_those_that_ask(&self) -> Result<bool> {
        let mut any = false;
        for node in (0..self.target.nodes()).filter(|node| self.target.wants_restart(*node)) {
            any = true;
            let begin = self.start.elapsed();
            let result = self.target.start_node(node);
            let text = format!("node{} ended and asked for a restart: started", node + 1);
            self.note(&text, begin, result)?;
        }
        Ok(any)
    }

    fn hurt(&self, round: &str, harm: Harm, victims: Victims) -> Result<()> {
        let nodes = self.find(victims);
        let begin = self.start.elapsed();
        let number = {
            let mut events = self.events.lock();
            let round = round.to_owned();
            events.push(Event { round, harm, nodes: nodes.clone(), begin, end: None });
            events.len() - 1
        };
        let result = self.do_harm(harm, &nodes, number as u64);
        self.note(&format!("{round}: {harm} {}", shown(&nodes)), begin, result)
    }

    fn mend(&self, number: usize) -> Result<()> {
        let (harm, nodes) = {
            let mut events = self.events.lock();
            events[number].end = Some(self.start.elapsed());
            (events[number].harm, events[number].nodes.clone())
        };
        let begin = self.start.elapsed();
        let result = self.undo(harm, &nodes);
        self.note(&format!("mended: {harm} {}", shown(&nodes)), begin, result)
    }

    fn do_harm(&self, harm: Harm, nodes: &[usize], seed: u64) -> Result<()> {
        let target = self.target;
        let running: Vec<usize> =
            nodes.iter().copied().filter(|node| target.is_running(*node)).collect();
        match harm {
            Harm::Kill => target.kill(&running),
            Harm::PowerCut => target.cut_power(nodes, Loss::TornLast { seed }).map(drop),
            Harm::Pause => running.iter().try_for_each(|node| target.pause(*node)),
            Harm::Stop => running.iter().try_for_each(|node| target.stop(*node, STOP_LIMIT)),
            Harm::Wipe => {
                target.kill(&running)?;
                nodes.iter().try_for_each(|node| target.wipe(*node))
            }
            Harm::Isolate | Harm::Deaf | Harm::Mute | Harm::Lossy => {
                self.cut_links(harm, nodes);
                Ok(())
            }
            Harm::FreezeDisk => self.set_disks(nodes, Faults { frozen: true, ..Faults::default() }),
            Harm::FillDisk => self.set_disks(nodes, Faults { full: true, ..Faults::default() }),
            Harm::FailSync => {
                self.set_disks(nodes, Faults { sync_fails: true, ..Faults::default() })
            }
            Harm::SlowSync => {
                self.set_disks(nodes, Faults { sync_delay: SYNC_DELAY, ..Faults::default() })
            }
            Harm::ClockJump => {
                let mut random = Random::seeded(seed);
                nodes.iter().try_for_each(|node| target.set_clock(*node, jump(&mut random)))
            }
            Harm::Starve => running.iter().try_for_each(|node| target.starve(*node, Some(STARVED))),
        }
    }

    /// Between the victims and the others; links among the victims stay.
    fn cut_links(&self, harm: Harm, nodes: &[usize]) {
        let Some(network) = self.target.network() else { return };
        for victim in nodes {
            for other in (0..self.target.members()).filter(|other| !nodes.contains(other)) {
                match harm {
                    Harm::Deaf => network.cut_one_way(other, *victim),
                    Harm::Mute => network.cut_one_way(*victim, other),
                    Harm::Lossy => {
                        for (from, to) in [(*victim, other), (other, *victim)] {
                            network.set_quality(from, to, bad(network.quality(from, to)));
                        }
                    }
                    _ => network.cut(*victim, other),
                }
            }
        }
    }

    fn mend_links(&self, harm: Harm, nodes: &[usize]) {
        let Some(network) = self.target.network() else { return };
        for victim in nodes {
            for other in (0..self.target.members()).filter(|other| !nodes.contains(other)) {
                if harm == Harm::Lossy {
                    for (from, to) in [(*victim, other), (other, *victim)] {
                        network.set_quality(from, to, good(network.quality(from, to)));
                    }
                } else {
                    network.mend(*victim, other);
                }
            }
        }
    }

    fn set_disks(&self, nodes: &[usize], faults: Faults) -> Result<()> {
        for node in nodes {
            self.target
                .disk(*node)
                .context("this node has no disk that can fail")?
                .set_faults(faults);
        }
        Ok(())
    }

    fn undo(&self, harm: Harm, nodes: &[usize]) -> Result<()> {
        let target = self.target;
        if harm.needs_network() {
            self.mend_links(harm, nodes);
        } else if harm == Harm::Pause {
            return nodes
                .iter()
                .filter(|node| target.is_running(**node))
                .try_for_each(|node| target.resume(*node));
        } else if harm == Harm::ClockJump {
            return nodes.iter().try_for_each(|node| target.set_clock(*node, 0));
        } else if harm == Harm::Starve {
            return nodes
                .iter()
                .filter(|node| target.is_running(**node))
                .try_for_each(|node| target.starve(*node, None));
        } else if harm.needs_disk() && harm != Harm::PowerCut {
            self.set_disks(nodes, Faults::default())?;
        }
        if !harm.ends_server() {
            return Ok(());
        }
        if matches!(harm, Harm::FillDisk | Harm::FailSync) {
            // Such a failure is final for the member: it must be started anew.
            let running: Vec<usize> =
                nodes.iter().copied().filter(|node| target.is_running(*node)).collect();
            target.kill(&running)?;
        }
        if (0..target.members()).all(|node| !target.is_running(node)) {
            return target.start_all();
        }
        // All that are to start do so at once.
        thread::scope(|scope| {
            let starts: Vec<_> = nodes
                .iter()
                .filter(|node| !target.is_running(**node))
                .map(|node| scope.spawn(|| target.start_node(*node)))
                .collect();
            starts.into_iter().try_for_each(|start| start.join().expect("a starter panicked"))
        })
    }

    fn find(&self, victims: Victims) -> Vec<usize> {
        let members = self.target.members();
        let primary = self.primary.load(Ordering::Relaxed);
        let all: Vec<usize> = (0..members).collect();
        let voters = all.iter().filter(|member| !self.target.is_learner(**member)).count();
        match victims {
            Victims::Node(node) => vec![node],
            Victims::Minority(draw) => Random::seeded(draw).choose(&all, (voters - 1) / 2),
            Victims::Leader => vec![self.target.leader().unwrap_or(primary)],
            Victims::Primary => vec![primary],
            Victims::Follower(draw) => {
                let leader = self.target.leader().unwrap_or(primary);
                let others: Vec<usize> = all.into_iter().filter(|node| *node != leader).collect();
                Random::seeded(draw).choose(&others, 1)
            }
            Victims::All => all,
        }
    }

    fn settle(&self) -> Result<()> {
        let begin = self.start.elapsed();
        let mut limit = begin + SETTLE_LIMIT;
        while !self.stop.load(Ordering::Relaxed) {
            let away: Vec<usize> =
                (0..self.target.members()).filter(|node| !self.is_synced(*node)).collect();
            if away.is_empty() {
                return self.note("all Synced", begin, Ok(()));
            }
            self.restart_those_that_ask()?;
            if self.start.elapsed() > limit {
                away.into_iter().try_for_each(|node| self.help(node))?;
                limit = self.start.elapsed() + SETTLE_LIMIT;
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// What an operator would do for a node that is not back by itself: start it again; if that
    /// was done before, have it fetch the state from the others.
    fn help(&self, node: usize) -> Result<()> {
        let begin = self.start.elapsed();
        let again = self.helped.lock().iter().any(|(helped, _)| *helped == node);
        let what = if again { "emptied and restarted" } else { "restarted" };
        let text = format!("node{} was not Synced for long: {what}", node + 1);
        self.helped.lock().push((node, text.clone()));
        let mut result = Ok(());
        if self.target.is_running(node) {
            result = self.target.kill(&[node]);
        }
        if again {
            result = result.and_then(|()| self.target.wipe(node));
        }
        self.note(&text, begin, result.and_then(|()| self.target.start_node(node)))
    }

    pub fn is_synced(&self, node: usize) -> bool {
        if node >= self.target.nodes() {
            return self.target.has_vote(node);
        }
        self.target.status(node).is_ok_and(|status| {
            let learns = status.get("wsrep_quorate_role") == Some("Learner");
            status.is_synced() && (self.target.is_learner(node) || !learns)
        })
    }

    fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.stop.load(Ordering::Relaxed) {
            thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
        }
    }

    fn note(&self, what: &str, begin: Duration, result: Result<()>) -> Result<()> {
        let took = self.start.elapsed() - begin;
        let failed = result.err().map(|error| format!(": {error:#}")).unwrap_or_default();
        let (at, took) = (begin.as_secs_f64(), took.as_secs_f64());
        writeln!(self.log.lock(), "{at:9.3} s  {what} ({took:.3} s){failed}")
            .context("writing the log of faults")
    }
}

/// 100 ms and 5 % loss on top of what it is.
fn bad(quality: Quality) -> Quality {
    Quality { delay: quality.delay + LOSSY_DELAY, loss: LOSS, ..quality }
}

fn good(quality: Quality) -> Quality {
    Quality { delay: quality.delay.saturating_sub(LOSSY_DELAY), loss: 0.0, ..quality }
}

/// Seconds by which a clock jumps, either way.
fn jump(random: &mut Random) -> i64 {
    let most = [5, 120, 3_600, 86_400][random.below(4) as usize];
    let by = 1 + random.below(most) as i64;
    if random.below(2) == 0 {
        by
    } else {
        -by
    }
}

const LOSSY_DELAY: Duration = Duration::from_millis(50);
const LOSS: f64 = 0.05;

fn shown(nodes: &[usize]) -> String {
    let names: Vec<String> = nodes.iter().map(|node| format!("node{}", node + 1)).collect();
    names.join(", ")
}
