//! Keys certified a second on one core, beside two others that answer the same question for transactions that never
//! come from one server: who used the key last, in which way? The standard hash map over the same hashes, and the
//! standard hash map over the paths as they are, a string for each key.

use super::{transaction, Random};
use quorate_certify::*;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::rc::Rc;
use std::time::Instant;

const ROUNDS: u64 = 60_000;
const BATCH: u64 = 500;
const ROWS: u64 = 10;
const TABLES: u64 = 4;

pub fn keys_a_second() {
    println!(
        "{:<44} {:>9} {:>9} {:>9} {:>9}",
        "write sets of 10 random rows, a full window", "million", "ns", "worst", "memory,"
    );
    println!("{:<44} {:>9} {:>9} {:>9} {:>9}", "", "keys/s", "a key", "batch, µs", "MB");
    for spread in [200_000, 100_000_000] {
        let mut certifier = Certifier::new(WINDOW_DEFAULT);
        measure("this certifier", spread, |input| certifier.sequence(&input.write_set).seqno);
        let mut hashes = Plain::default();
        measure("HashMap of hashes", spread, |input| {
            hashes.sequence(&input.hashes, input.write_set.header().last_seen)
        });
        let mut strings = Plain::default();
        measure("HashMap of key strings", spread, |input| {
            strings.sequence(&input.paths, input.write_set.header().last_seen)
        });
    }
}

fn measure(name: &str, spread: u64, mut sequence: impl FnMut(&Input) -> Seqno) {
    let mut random = Random(4);
    let before = resident_mb();
    let (mut keys, mut ns, mut worst, mut seqno) = (0, 0, 0, 0);
    for round in 0..ROUNDS / BATCH {
        let make = |n| Input::new(&mut random, round * BATCH + n, seqno, spread);
        let batch: Vec<Input> = (0..BATCH).map(make).collect();
        let (start, busy) = (Instant::now(), on_a_core());
        for input in &batch {
            seqno = sequence(input);
        }
        worst = worst.max(start.elapsed().as_nanos() as u64);
        // The window is full.
        if round * BATCH > u64::from(WINDOW_DEFAULT) * 2 {
            ns += on_a_core() - busy;
            keys += batch.iter().map(|input| input.paths.len() as u64).sum::<u64>();
        }
    }
    let each = ns as f64 / keys as f64;
    println!(
        "{:<44} {:>9.1} {:>9.0} {:>9.0} {:>9.0}",
        format!("{name}, of {spread}"),
        1e3 / each,
        each,
        worst as f64 / 1e3,
        resident_mb() - before,
    );
}

struct Input {
    write_set: WriteSet,
    hashes: Vec<(u64, KeyType)>,
    paths: Vec<(Rc<str>, KeyType)>,
}

impl Input {
    fn new(random: &mut Random, serial: u64, seqno: Seqno, spread: u64) -> Input {
        let mut paths: Vec<(Rc<str>, KeyType)> =
            ["/", "/sbtest"].map(|path| (path.into(), KeyType::PREFIX)).into();
        let last_seen = (seqno - 64).max(0);
        let write_set =
            transaction(random, serial, last_seen, ROWS, TABLES, spread, |table, row| {
                let table = format!("/sbtest/sbtest{table}");
                let row = format!("{table}/{row:08x}");
                for path in [(table.into(), KeyType::PREFIX), (row.into(), KeyType::Update)] {
                    if !paths.contains(&path) {
                        paths.push(path);
                    }
                }
            });
        assert_eq!(write_set.keys().len(), paths.len());
        let hashes = write_set.keys().map(|key| (key.path(), key.key_type())).collect();
        Input { write_set, hashes, paths }
    }
}

/// The newest user of each path, by the type of its key, and which keys those in the window entered.
struct Plain<K> {
    users: HashMap<K, [Seqno; 4]>,
    window: VecDeque<Vec<(K, KeyType)>>,
    seqno: Seqno,
}

impl<K> Default for Plain<K> {
    fn default() -> Self {
        Plain { users: HashMap::new(), window: VecDeque::new(), seqno: 0 }
    }
}

impl<K: Hash + Eq + Clone> Plain<K> {
    fn sequence(&mut self, keys: &[(K, KeyType)], last_seen: Seqno) -> Seqno {
        self.seqno += 1;
        let conflicts = keys.iter().any(|(path, later)| {
            self.users.get(path).is_some_and(|users| {
                KeyType::ALL.into_iter().any(|earlier| {
                    users[earlier as usize] > last_seen
                        && relation(earlier, *later) == Relation::Conflict
                })
            })
        });
        let keys = if conflicts { Vec::new() } else { keys.to_vec() };
        for (path, key_type) in &keys {
            self.users.entry(path.clone()).or_default()[*key_type as usize] = self.seqno;
        }
        self.window.push_back(keys);
        if self.window.len() > WINDOW_DEFAULT as usize {
            let evicted = self.seqno - Seqno::from(WINDOW_DEFAULT);
            for (path, _) in self.window.pop_front().unwrap_or_default() {
                if self.users.get(&path).is_some_and(|users| users.iter().all(|by| *by <= evicted))
                {
                    self.users.remove(&path);
                }
            }
        }
        self.seqno
    }
}

/// Nanoseconds that this thread has had a core to itself.
pub fn on_a_core() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or_default()
}

/// What this process has of the machine's memory.
pub fn resident_mb() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.unwrap_or_default() * 4096.0 / 1e6
}
