//! What a commit costs beyond the network and the disk: three members on loopback, clients on the
//! leader or on a follower, beside a bare TCP round trip and a bare 4 KiB overwrite + fdatasync
//! measured in the same run.
//!
//! `cargo run --release -p quorate-live --example group_bench [SECONDS [BYTES [DIR]]]`

use bytes::Bytes;
use parking_lot::Mutex;
use quorate_consensus::{Index, MemberId, Term};
use quorate_live::{
    Committed, Frozen, Group, GroupError, GroupOptions, LogLevel, Observer, StateMachine,
};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let seconds: f64 = args.next().map_or(Ok(3.0), |arg| arg.parse())?;
    let bytes: usize = args.next().map_or(Ok(500), |arg| arg.parse())?;
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = dir.join(format!("group-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let run = run(&dir, Duration::from_secs_f64(seconds), bytes);
    std::fs::remove_dir_all(&dir)?;
    run
}

fn run(dir: &Path, time: Duration, bytes: usize) -> Result<(), Error> {
    let members = form_group(dir)?;
    let leader = find_leader(&members);
    let follower = (leader + 1) % members.len();

    println!("proposals of {bytes} bytes, {} s each; times in µs", time.as_secs_f64());
    println!("{:<28} {:>9} {:>7} {:>7} {:>7}", "", "per s", "p50", "p99", "max");
    let line = |what: &str, times: &Times| {
        println!(
            "{what:<28} {:>9.0} {:>7} {:>7} {:>7}",
            times.per_second,
            times.at(0.5),
            times.at(0.99),
            times.at(1.0)
        );
    };
    for (name, at) in [("leader", leader), ("follower", follower)] {
        // Measured right before what they are compared with: a disk's mood changes.
        let trip = ping_pong(time.min(Duration::from_secs(1)))?;
        let sync = overwrite_and_sync(dir, time.min(Duration::from_secs(1)))?;
        line("TCP round trip", &trip);
        line("overwrite 4 KiB + fdatasync", &sync);
        for clients in [1, 4, 16, 64] {
            let before = members[at].waiters.seen();
            let times = load(&members[at], clients, bytes, time)?;
            line(&format!("{clients} clients on the {name}"), &times);
            let (all, early) = members[at].waiters.seen();
            let share = (early - before.1) as f64 / (all - before.0).max(1) as f64;
            println!("  {:.1} % applied before the own disk had them", 100.0 * share);
            if clients == 1 {
                // A follower's proposal travels to the leader and the commit back to it.
                let trips = if at == leader { 1 } else { 2 };
                let budget = trips * trip.at(0.5) + sync.at(0.5);
                println!(
                    "  budget {trips} x round trip + sync = {budget} µs, rest {} µs",
                    times.at(0.5).saturating_sub(budget)
                );
            }
        }
    }
    for (name, at) in [("leader", leader), ("follower", follower)] {
        let patience = Duration::from_secs(10);
        let barrier = || members[at].group.barrier(patience).map(drop).map_err(io::Error::other);
        line(&format!("read point on the {name}"), &repeat(time, barrier)?);
    }
    let status = members[leader].group.status();
    println!(
        "leader's log: {} syncs, {:.0} µs each, {} µs at most",
        status.syncs, status.sync_us_avg, status.sync_us_max
    );
    members.iter().for_each(|member| member.group.close());
    Ok(())
}

/// Times of single operations, sorted, in microseconds.
struct Times {
    sorted: Vec<u64>,
    per_second: f64,
}

impl Times {
    fn new(mut times: Vec<u64>, elapsed: Duration) -> Self {
        times.sort_unstable();
        Self { per_second: times.len() as f64 / elapsed.as_secs_f64(), sorted: times }
    }

    fn at(&self, share: f64) -> u64 {
        let at = (self.sorted.len().saturating_sub(1) as f64 * share) as usize;
        self.sorted.get(at).copied().unwrap_or(0)
    }
}

fn repeat(time: Duration, mut once: impl FnMut() -> io::Result<()>) -> io::Result<Times> {
    let started = Instant::now();
    let mut times = Vec::new();
    while started.elapsed() < time {
        let begun = Instant::now();
        once()?;
        times.push(begun.elapsed().as_micros() as u64);
    }
    Ok(Times::new(times, started.elapsed()))
}

fn ping_pong(time: Duration) -> io::Result<Times> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let echo = thread::spawn(move || {
        let mut buffer = [0; 256];
        while far.read_exact(&mut buffer).is_ok() && far.write_all(&buffer).is_ok() {}
    });
    let mut buffer = [0; 256];
    let times = repeat(time, || {
        near.write_all(&buffer)?;
        near.read_exact(&mut buffer)
    });
    drop(near);
    echo.join().map_err(|_| io::Error::other("the echo thread panicked"))?;
    times
}

fn overwrite_and_sync(dir: &Path, time: Duration) -> io::Result<Times> {
    const LENGTH: u64 = 16 << 20;
    let path = dir.join("overwrite");
    let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    file.write_all_at(&vec![0; LENGTH as usize], 0)?;
    file.sync_all()?;
    let block = [1; 4096];
    let mut offset = 0;
    let times = repeat(time, || {
        file.write_all_at(&block, offset)?;
        offset = (offset + 4096) % LENGTH;
        file.sync_data()
    })?;
    std::fs::remove_file(path)?;
    Ok(times)
}

struct Node {
    group: Arc<Group>,
    waiters: Arc<Waiters>,
    serial: AtomicU64,
}

/// Clients that wait for their proposal to be applied on this member.
#[derive(Default)]
struct Waiters {
    own: Mutex<u128>,
    group: OnceLock<Weak<Group>>,
    applied: AtomicU64,
    /// Of those, before this member's own disk had them.
    early: AtomicU64,
    waiting: Mutex<HashMap<u64, (Thread, Arc<AtomicBool>)>>,
}

impl Waiters {
    fn seen(&self) -> (u64, u64) {
        (self.applied.load(Ordering::Relaxed), self.early.load(Ordering::Relaxed))
    }

    fn count(&self, index: Index) {
        let Some(group) = self.group.get().and_then(Weak::upgrade) else { return };
        let is_early = group.status().persisted_index < index;
        self.applied.fetch_add(1, Ordering::Relaxed);
        self.early.fetch_add(u64::from(is_early), Ordering::Relaxed);
    }
}

struct Machine {
    waiters: Arc<Waiters>,
}

impl StateMachine for Machine {
    fn is_brief(&self, _data: &Bytes) -> bool {
        true
    }

    fn apply(&mut self, entry: Committed) -> Result<(), String> {
        let Committed::Data { index, data, .. } = entry else { return Ok(()) };
        self.waiters.count(index);
        let (Some(member), Some(serial)) =
            (data.first_chunk::<16>(), data.get(16..24).and_then(|b| b.first_chunk::<8>()))
        else {
            return Ok(());
        };
        if u128::from_le_bytes(*member) == *self.waiters.own.lock() {
            let serial = u64::from_le_bytes(*serial);
            if let Some((thread, done)) = self.waiters.waiting.lock().remove(&serial) {
                done.store(true, Ordering::Release);
                thread.unpark();
            }
        }
        Ok(())
    }

    fn freeze(&mut self) -> Frozen {
        Box::new(Bytes::new)
    }

    fn restore(&mut self, _index: Index, _snapshot: Bytes) -> Result<(), String> {
        Ok(())
    }
}

struct Quiet;

impl Observer for Quiet {
    fn may_propose(&self, _member: MemberId, _proposal: &Bytes) -> bool {
        true
    }
    fn leader(&self, _term: Term, _leader: Option<MemberId>, _leads: bool) {}
    fn primary(&self, _primary: bool) {}
    fn fatal(&self, message: String) {
        eprintln!("{message}");
    }
    fn log(&self, level: LogLevel, message: String) {
        if level <= LogLevel::Warn {
            eprintln!("{message}");
        }
    }
}

fn form_group(dir: &Path) -> Result<Vec<Node>, Error> {
    let listeners: Vec<_> =
        (0..3).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let addrs: Vec<_> = listeners
        .iter()
        .map(|listener| listener.local_addr().map(|addr| addr.to_string()))
        .collect::<Result<_, _>>()?;
    drop(listeners);
    let mut members = Vec::new();
    for (at, addr) in addrs.iter().enumerate() {
        let mut options = GroupOptions::new(dir.join(at.to_string()), "bench", addr);
        options.seeds = addrs.clone();
        options.bootstrap = at == 0;
        members.push(open(options)?);
    }
    while members[0].group.status().voters.len() < members.len() {
        thread::sleep(Duration::from_millis(20));
    }
    // So that the last membership change is over everywhere.
    members[0].group.barrier(Duration::from_secs(10))?;
    Ok(members)
}

fn open(options: GroupOptions) -> Result<Node, GroupError> {
    let (group, info) = Group::open(options, Arc::new(Quiet))?;
    group.wait_joined(Duration::from_secs(10))?;
    let waiters = Arc::new(Waiters::default());
    *waiters.own.lock() = info.member.0;
    let group = Arc::new(group);
    waiters.group.get_or_init(|| Arc::downgrade(&group));
    group.start(Box::new(Machine { waiters: waiters.clone() }), &mut |_, _| true)?;
    Ok(Node { group, waiters, serial: AtomicU64::new(0) })
}

fn find_leader(members: &[Node]) -> usize {
    loop {
        if let Some(at) = members.iter().position(|node| node.group.status().is_leader) {
            return at;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn load(node: &Node, clients: usize, bytes: usize, time: Duration) -> Result<Times, Error> {
    let started = Instant::now();
    let times = thread::scope(|scope| {
        let clients: Vec<_> = (0..clients)
            .map(|_| scope.spawn(move || repeat(time, || commit(node, bytes))))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().map_err(|_| io::Error::other("a client panicked"))?)
            .collect::<io::Result<Vec<_>>>()
    })?;
    let all = times.into_iter().flat_map(|times| times.sorted).collect();
    Ok(Times::new(all, started.elapsed()))
}

/// Proposes, and waits until it is applied here.
fn commit(node: &Node, bytes: usize) -> io::Result<()> {
    let serial = node.serial.fetch_add(1, Ordering::Relaxed) + 1;
    let mut data = vec![0; bytes.max(24)];
    data[..16].copy_from_slice(&node.waiters.own.lock().to_le_bytes());
    data[16..24].copy_from_slice(&serial.to_le_bytes());
    let done = Arc::new(AtomicBool::new(false));
    node.waiters.waiting.lock().insert(serial, (thread::current(), done.clone()));
    node.group.propose(serial, data.into()).map_err(io::Error::other)?;
    while !done.load(Ordering::Acquire) {
        thread::park();
    }
    node.group.decided(serial);
    Ok(())
}
