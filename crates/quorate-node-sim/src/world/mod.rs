//! One world: servers, their group, what happens to them, and what is found at the end.

mod harm;
mod homes;

use self::homes::Home;
use crate::baton::{self, installed, Halt};
use crate::calls::Answered;
use crate::group::Network;
use crate::oracle::{Mark, Oracle};
use crate::plant::Plant;
use crate::server::{Load, Server, Surroundings};
use crate::transfer::Wire;
use parking_lot::Mutex as Plain;
use quorate_certify::{Codec, Packing};
use quorate_seeds::{caught, Coverage, Rng, Trace};
use simulated_node::flow::Limits;
use simulated_node::settings::{Consistency, ExitAction, ExitPlan, PartSizes};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const STEPS_MAX: u64 = 3_000_000;
/// After the last fault everything has to come to rest in this time.
const REST_MAX: Duration = Duration::from_secs(600);

/// What a seed showed.
#[derive(Clone, Default)]
pub struct Report {
    pub seed: u64,
    pub digest: u64,
    pub steps: u64,
    pub seqnos: i64,
    pub violation: Option<String>,
    pub marks: Coverage<Mark>,
    pub answers: BTreeMap<Answered, u64>,
    pub trace: Vec<String>,
}

/// Runs one seed.
pub fn run_seed(seed: u64, plant: Option<Plant>, trace: Trace) -> Report {
    let oracle = Arc::new(Oracle::new(trace));
    let ends = Arc::new(Plain::new((0, 0)));
    let (in_world, out) = (oracle.clone(), ends.clone());
    let world = move || {
        World::new(seed, plant, &in_world).live();
        *out.lock() = (installed().digest(), installed().steps());
    };
    if let Some(panic) = caught(|| baton::run(seed, STEPS_MAX, world)) {
        oracle.fail(panic);
    }
    let (digest, steps) = *ends.lock();
    Report {
        seed,
        digest,
        steps,
        seqnos: oracle.last_seqno(),
        violation: oracle.violation(),
        marks: oracle.marks(),
        answers: oracle.answers(),
        trace: oracle.trace(),
    }
}

struct World {
    around: Surroundings,
    homes: Vec<Home>,
    folder: Folder,
}

struct Folder(PathBuf);

impl Folder {
    fn new(seed: u64) -> Self {
        let shared = PathBuf::from("/dev/shm");
        let base = if shared.is_dir() { shared } else { std::env::temp_dir() };
        let thread = format!("{:?}", std::thread::current().id());
        let name = format!("quorate-node-sim-{}-{seed}-{thread}", std::process::id());
        Folder(base.join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing else is in it; what cannot be removed is not needed by anybody.
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

impl World {
    fn new(seed: u64, plant: Option<Plant>, oracle: &Arc<Oracle>) -> Self {
        let (load, nodes) = installed().random(|rng| (choose_load(rng), rng.range(2, 4) as usize));
        oracle.tell(|| format!("{nodes} servers, {load:?}"));
        let network = Network::new(nodes, oracle.clone(), plant);
        let wire = Arc::new(Wire::default());
        let around = Surroundings { network, wire, oracle: oracle.clone(), load, plant };
        Self { around, homes: (0..nodes).map(Home::new).collect(), folder: Folder::new(seed) }
    }

    fn oracle(&self) -> &Oracle {
        &self.around.oracle
    }

    fn network(&self) -> &Network {
        &self.around.network
    }

    fn live(mut self) {
        self.start_all();
        let faults = installed().random(|rng| rng.range(0, 12));
        for _ in 0..faults {
            let time = installed().random(|rng| rng.millis(1, 500));
            self.rest(time);
            if self.is_over() {
                break;
            }
            self.collect();
            self.harm();
        }
        if !self.is_over() {
            self.heal();
        }
        self.end();
    }

    fn is_over(&self) -> bool {
        self.oracle().violation().is_some() || installed().halted().is_some()
    }

    /// Lets time pass, as long as nothing is wrong.
    fn rest(&self, time: Duration) {
        let until = installed().elapsed() + time;
        while installed().elapsed() < until && !self.is_over() {
            let left = until.saturating_sub(installed().elapsed());
            installed().sleep(left.min(Duration::from_millis(20)));
        }
    }

    /// Ends all faults and all work, and compares what everybody has.
    fn heal(&mut self) {
        self.network().steady();
        self.repair();
        (0..self.homes.len()).for_each(|number| self.network().set_lag(number, Duration::ZERO));
        self.rest(Duration::from_millis(500));
        let deadline = installed().elapsed() + REST_MAX;
        while !self.is_over() && !self.is_at_rest() {
            if installed().elapsed() > deadline {
                let waiting = installed().waiting().join("; ");
                self.oracle().fail(format!("it does not come to rest: {waiting}"));
            }
            self.rest(Duration::from_millis(50));
            self.collect();
            self.start_all();
        }
        if self.is_over() {
            return;
        }
        let servers = self.servers();
        let first = servers[0].engine.rows();
        for server in &servers {
            let rows = server.engine.rows();
            if rows != first {
                self.oracle().fail(format!("n{} has other rows than n0 at the end", server.number));
            }
            self.oracle().check_end(server.number, &rows);
        }
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        self.homes.iter().filter_map(|home| home.server.clone()).collect()
    }

    /// All servers run, have ended their work, and have all of the log.
    fn is_at_rest(&self) -> bool {
        let servers = self.servers();
        servers.iter().for_each(|server| server.stop_sessions());
        servers.len() == self.homes.len()
            && servers.iter().all(|server| server.is_at_rest(self.network()))
            && !self.network().has_open_parts(&servers[0].load.constants())
    }

    fn end(self) {
        match installed().halted() {
            Some(Halt::Stuck) => {
                let waiting = installed().waiting().join("; ");
                self.oracle().fail(format!("everybody waits for ever: {waiting}"));
            }
            Some(Halt::Endless) => self.oracle().fail("somebody runs in circles"),
            None => {}
        }
        for home in &self.homes {
            if let Some(server) = &home.server {
                installed().kill(server.process);
                server.forget();
            }
        }
        self.network().end();
    }
}

fn choose_load(rng: &mut Rng) -> Load {
    Load {
        clients: rng.range(1, 4),
        appliers: rng.range(1, 4),
        rows: rng.range(1, 12) as u8,
        think_ms: [8, 30, 100][rng.index(3)],
        statement_ms: [0, 3, 20][rng.index(3)],
        queue_bytes: [1, 300, 1 << 20][rng.index(3)],
        window: [16, 64, 16384][rng.index(3)],
        streams: [0, 100, 400][rng.index(3)],
        write_set_bytes_max: [u64::MAX, u64::MAX, u64::MAX, 156][rng.index(4)],
        parts: choose_parts(rng),
        packing: choose_packing(rng),
        exit: choose_exit(rng),
        consistency: choose_consistency(rng),
        flow: choose_flow(rng),
    }
}

fn choose_consistency(rng: &mut Rng) -> Consistency {
    let after = |at_least| Consistency::After { at_least };
    [Consistency::Eventual, Consistency::Eventual, after(None), after(Some(2))][rng.index(4)]
}

fn choose_flow(rng: &mut Rng) -> Option<Limits> {
    let limits = Limits { certified: rng.range(0, 20), applied: rng.range(0, 20) };
    rng.chance(300).then_some(limits)
}

fn choose_packing(rng: &mut Rng) -> Option<Packing> {
    let codec = [None, Some(Codec::Lz4), Some(Codec::Zstd)][rng.index(3)]?;
    Some(Packing { codec, from: rng.range(0, 40) as usize })
}

/// One write takes 17 bytes: what has two or more may be large, and a part ends within a write.
fn choose_parts(rng: &mut Rng) -> PartSizes {
    let from = [usize::MAX, 30, 50][rng.index(3)];
    PartSizes { from, part: rng.range(7, 30) as usize, window: [1, 200, 1000][rng.index(3)] }
}

fn choose_exit(rng: &mut Rng) -> Option<ExitPlan> {
    let action = [ExitAction::ReadOnly, ExitAction::Offline, ExitAction::Abort][rng.index(3)];
    let (timeout, interval) = (rng.millis(0, 300), rng.millis(10, 150));
    let plan = ExitPlan { timeout, tries: rng.range(0, 3) as u32, interval, action };
    rng.chance(500).then_some(plan)
}
