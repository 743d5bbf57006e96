//! The primary is lost: how soon the others notice, take writes, and are whole again.
//!
//! Clients go on as behind a proxy: whoever is refused or not answered turns to the next member. A system
//! in which nobody takes the primary's place has the one failure that it survives by itself: a kill, and
//! the service manager that starts the server again.

use super::{replicates, Found, Scale, Site, Test};
use crate::drive::beside::beside;
use crate::drive::writers::{door, table, Client, Door, Writers};
use crate::fleet::Fleet;
use crate::plan::{Grid, Point};
use crate::record::Place;
use crate::system::{System, PEERS};
use anyhow::{ensure, Context, Result};
use mysql::Conn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub struct Failover;

/// What happens to the primary.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// kill -9, and it is started again at once.
    Kill,
    /// kill -9, and it is started again when the others write.
    Loss,
    /// SIGSTOP, until the others write.
    Stop,
    /// Its network is cut, until the others write.
    Cut,
}

const FAULTS: [(&str, Fault); 4] =
    [("kill", Fault::Kill), ("loss", Fault::Loss), ("stop", Fault::Stop), ("cut", Fault::Cut)];
/// Clients under `load`; else one asks now and then whether there is somebody who takes a write.
const IDLE: &str = "idle";
const LOAD: &str = "load";
const IDLE_PAUSE: Duration = Duration::from_millis(20);
/// After which a client gives a member up. Longer than a commit that waits for others, and so long that
/// those who wait do not use up a server's connections.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(1);
/// Of the writers: the table is emptied for each cell.
const RUN: u64 = 1;
const CALM: Duration = Duration::from_secs(2);
/// Nobody waits longer for a system that goes on by itself.
const WRITE_LIMIT: Duration = Duration::from_secs(120);
/// For a member to be back while clients write.
const BACK_LIMIT: Duration = Duration::from_secs(60);
/// For all to have the same when nobody writes; some have a backlog by then.
const LEVEL_LIMIT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(10);
/// What a cell takes, about: most systems have timeouts of some seconds.
const ABOUT: Duration = Duration::from_secs(15);

impl Test for Failover {
    fn name(&self) -> &'static str {
        "failover"
    }

    fn about(&self) -> &'static str {
        "the primary, idle and under load: killed and started again at once (kill) or later (loss), \
         stopped by SIGSTOP, cut off; until noticed, until writes go on, until whole"
    }

    fn points(&self, scale: &Scale) -> Vec<Point> {
        let loaded = scale.clients(&[16], &[16], &[16, 64]);
        let faults: &[(&str, Fault)] = match scale.grid {
            Grid::Quick => &FAULTS[..1],
            Grid::Default | Grid::Full => &FAULTS,
        };
        let of_fault = |(name, _): &(&str, Fault)| -> Vec<Point> {
            let point = |under: &str, clients| Point {
                members: 3,
                load: format!("{name} {under}"),
                clients,
            };
            let idle = (scale.grid != Grid::Quick).then(|| point(IDLE, 0));
            idle.into_iter().chain(loaded.iter().map(|clients| point(LOAD, *clients))).collect()
        };
        faults.iter().flat_map(of_fault).collect()
    }

    fn each(&self, _scale: &Scale, _point: &Point) -> Duration {
        ABOUT
    }

    fn fills(&self) -> bool {
        false
    }

    fn harms(&self) -> bool {
        true
    }

    fn moves_primary(&self, system: &dyn System) -> bool {
        system.fails_over()
    }

    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        let survives = system.fails_over() || fault(&place.load).is_ok_and(|it| it == Fault::Kill);
        replicates(system, place) && survives
    }

    fn usual_systems(&self) -> Option<&'static [&'static str]> {
        Some(&PEERS)
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found> {
        let (fleet, fault) = (site.fleet, fault(&place.load)?);
        let primary = fleet.primary()?;
        let mut connection = fleet.connect(primary)?;
        table::make_empty(&mut connection)?;
        fleet.wait_level(LEVEL_LIMIT)?;
        let writers = Writers::start(clients(fleet, primary, place.clients), RUN);
        thread::sleep(CALM);
        let failed = watched(fleet, primary, || fail(fleet, fault, primary, &writers));
        let acks = writers.stop();
        let (times, noticed) = failed?;
        ensure!(acks.rate(Duration::ZERO, CALM) > 0.0, "no row was acknowledged before the fault");
        let again = acks.first_sent_after(times.struck).context("no row was acknowledged again")?;

        let mut found = Found::default();
        for (name, time) in [
            ("detect_s", noticed.map(|noticed| noticed - times.begin)),
            ("write_again_s", Some(again - times.begin)),
        ] {
            found.figures.extend(time.map(|time| (name.to_owned(), time.as_secs_f64())));
        }
        found.set_back(times.back, BACK_LIMIT);
        fleet.wait_level(LEVEL_LIMIT)?;
        let (ids, mut lost) = (acks.ids(), 0);
        for member in fleet.members() {
            lost = lost.max(table::missing(&mut fleet.connect(member)?, &ids, RUN)?.len());
        }
        found.facts.insert("acknowledged rows lost".into(), lost.to_string());
        Ok(found)
    }
}

/// `kill` of `kill idle`.
fn fault(load: &str) -> Result<Fault> {
    let name = load.split_once(' ').map(|(name, _)| name);
    let known = FAULTS.iter().find(|(known, _)| Some(*known) == name);
    Ok(known.with_context(|| format!("{load:?} names no fault"))?.1)
}

/// They begin at the primary, and turn to the others where these may take its place.
fn clients(fleet: &Fleet, primary: usize, count: u32) -> Vec<Client> {
    let others = fleet.others(primary);
    let others = others.filter(|_| fleet.system().fails_over());
    let doors: Vec<Door> =
        std::iter::once(primary).chain(others).map(|member| door(&fleet.socket(member))).collect();
    let pause = if count == 0 { IDLE_PAUSE } else { Duration::ZERO };
    let patient = |client| Client { timeout: CLIENT_TIMEOUT, pause, ..client };
    Client::failing_over(&doors, count.max(1) as usize).into_iter().map(patient).collect()
}

struct Times {
    begin: Instant,
    /// What was sent after that cannot have been served before the fault.
    struck: Instant,
    /// Until all take part: from the fault on, or from the end of one that has an end. None: longer than
    /// [`BACK_LIMIT`].
    back: Option<Duration>,
}

/// Lets the fault happen, mends it, and waits until all members are whole, or for [`BACK_LIMIT`].
fn fail(fleet: &Fleet, fault: Fault, primary: usize, writers: &Writers) -> Result<Times> {
    let begin = Instant::now();
    match fault {
        Fault::Kill | Fault::Loss => fleet.strike(primary)?,
        Fault::Stop => fleet.pause(primary)?,
        Fault::Cut => fleet.network().isolate(primary),
    }
    let struck = Instant::now();
    let mut mended = begin;
    if fault != Fault::Kill {
        writers.wait_acked(struck, WRITE_LIMIT)?;
        mended = Instant::now();
    }
    match fault {
        Fault::Kill | Fault::Loss => {
            fleet.kill(primary)?;
            fleet.start_again(primary)?;
        }
        Fault::Stop => fleet.resume(primary)?,
        Fault::Cut => fleet.network().heal(),
    }
    writers.wait_acked(struck, WRITE_LIMIT)?;
    let all: Vec<usize> = fleet.members().collect();
    let back = fleet.rejoin(&all, BACK_LIMIT)?.then(|| mended.elapsed());
    Ok(Times { begin, struck, back })
}

/// Does it, and tells when the first of the other members saw its group change.
fn watched(
    fleet: &Fleet,
    primary: usize,
    act: impl FnOnce() -> Result<Times>,
) -> Result<(Times, Option<Instant>)> {
    let mut watched = Vec::new();
    for member in fleet.others(primary) {
        let mut connection = fleet.connect(member)?;
        let before = fleet.system().view(&mut connection)?;
        watched.push((connection, before));
    }
    let system = fleet.system();
    let watch = |(connection, before): (Conn, String)| {
        move |over: &AtomicBool| first_change(system, connection, &before, over)
    };
    let (times, noticed) = beside(watched.into_iter().map(watch), act);
    let noticed = noticed.into_iter().collect::<Result<Vec<_>>>()?;
    Ok((times?, noticed.into_iter().flatten().min()))
}

fn first_change(
    system: &dyn System,
    mut connection: Conn,
    before: &str,
    over: &AtomicBool,
) -> Result<Option<Instant>> {
    while !over.load(Ordering::Relaxed) {
        if system.view(&mut connection).context("watching a member")? != before {
            return Ok(Some(Instant::now()));
        }
        thread::sleep(POLL);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_name_faults() {
        assert_eq!(fault("kill idle").unwrap(), Fault::Kill);
        assert_eq!(fault("cut load").unwrap(), Fault::Cut);
        assert!(fault("kill").is_err() && fault("fire load").is_err());
    }
}
