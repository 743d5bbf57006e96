//! What a verdict costs: `cargo run --release -p quorate-certify --example cost`.

mod rivals;

use quorate_certify::*;
use std::time::{Duration, Instant};

const ROUNDS: u64 = 400_000;
const BATCH: u64 = 1000;

fn main() {
    idle();
    rivals::keys_a_second();
    println!(
        "{:<44} {:>9} {:>9} {:>9}",
        "write sets of random rows, three origins", "mean", "99.9 %", "keys in"
    );
    println!("{:<44} {:>9} {:>9} {:>9}", "", "ns each", "ns", "index");
    for (rows, tables, spread) in
        [(1, 4, 200_000), (10, 4, 200_000), (10, 4, 100_000_000), (100, 4, 200_000)]
    {
        verdicts(rows, tables, spread);
    }
    huge();
    build();
    snapshots(10);
    // As many keys as there can be.
    snapshots(190);
}

fn idle() {
    let before = rivals::resident_mb();
    let mut certifier = Certifier::new(WINDOW_DEFAULT);
    certifier.sequence_view([1, 2, 3].into_iter());
    println!("an idle certifier: {:.1} MB of memory", rivals::resident_mb() - before);
    drop(certifier);
}

/// Steady state: the window is full before the clock starts.
fn verdicts(rows: u64, tables: u64, spread: u64) {
    let mut random = Random(1);
    let mut certifier = Certifier::new(WINDOW_DEFAULT);
    let (mut times, mut passed, mut ns) = (Vec::new(), 0u64, 0);
    let rounds = ROUNDS / rows.max(4) * 4;
    for round in 0..rounds / BATCH + u64::from(WINDOW_DEFAULT) / BATCH + 1 {
        let warm = round > u64::from(WINDOW_DEFAULT) / BATCH;
        let batch: Vec<WriteSet> = (0..BATCH)
            .map(|n| {
                let last_seen = (certifier.seqno() + n as i64 - 64).max(0);
                let serial = round * BATCH + n;
                transaction(&mut random, serial, last_seen, rows, tables, spread, |_, _| {})
            })
            .collect();
        let busy = rivals::on_a_core();
        for write_set in &batch {
            let start = Instant::now();
            let verdict = certifier.sequence(write_set);
            let took = start.elapsed();
            if warm {
                times.push(took.as_nanos() as u64);
                passed += u64::from(verdict.outcome == Outcome::Ok);
            }
        }
        ns += if warm { rivals::on_a_core() - busy } else { 0 };
    }
    times.sort_unstable();
    let measured = times.len();
    println!(
        "{:<44} {:>9} {:>9} {:>9}",
        format!("{rows} rows of {spread}, {:.1} % pass", 100.0 * passed as f64 / measured as f64),
        ns / measured as u64,
        times[measured - measured / 1000 - 1],
        certifier.index_len(),
    );
}

/// About the largest transaction that keeps its rows, and what those pay whose arrival evicts it.
fn huge() {
    let mut random = Random(2);
    let mut certifier = Certifier::new(WINDOW_DEFAULT);
    let giant = transaction(&mut random, 0, 0, 500_000, 1, u64::MAX, |_, _| {});
    let start = Instant::now();
    certifier.sequence(&giant);
    println!("one write set of 500,000 rows: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let mut worst = Duration::ZERO;
    for serial in 1..100_000 {
        let seen = certifier.seqno();
        let write_set = transaction(&mut random, serial, seen, 10, 4, 200_000, |_, _| {});
        let start = Instant::now();
        certifier.sequence(&write_set);
        worst = worst.max(start.elapsed());
    }
    println!("worst of the 100,000 after it: {:.0} µs", worst.as_secs_f64() * 1e6);
}

fn build() {
    let mut builder = WriteSetBuilder::new();
    let row = vec![7u8; 200];
    let start = Instant::now();
    for serial in 0..ROUNDS {
        for n in 0..10u64 {
            let id = (serial * 10 + n).to_be_bytes();
            builder.append_key(&[b"sbtest", b"sbtest1", &id], KeyType::Update);
            builder.append_data(&row);
        }
        std::hint::black_box(builder.finish(&Header::transaction(1, serial, 0)));
    }
    let each = start.elapsed().as_nanos() as f64 / ROUNDS as f64;
    println!("building one of 10 rows, 2 KiB of data: {each:.0} ns");
}

/// What waits for a snapshot, and what its bytes cost another thread.
fn snapshots(rows: u64) {
    let mut random = Random(3);
    let mut state = Sequenced::beginning(Certifier::new(WINDOW_DEFAULT).limits(), 0);
    for serial in 0..20_000 {
        let seen = state.certifier.seqno();
        let spread = 100_000_000;
        let write_set = transaction(&mut random, serial, seen, rows, 4, spread, |_, _| {});
        state.certifier.sequence(&write_set);
    }
    let start = Instant::now();
    let frozen = state.freeze();
    let paused = start.elapsed();
    let start = Instant::now();
    let snapshot = frozen.encode();
    let wrote = start.elapsed();
    let start = Instant::now();
    let restored = Sequenced::restore(&snapshot).expect("own snapshot");
    let read = start.elapsed();
    assert_eq!(restored.certifier.digest(), state.certifier.digest());
    println!(
        "snapshot, {rows} rows each: taken in {:.3} ms; {:.2} MB, written in {:.1} ms, read in {:.1} ms",
        paused.as_secs_f64() * 1e3,
        snapshot.len() as f64 / 1e6,
        wrote.as_secs_f64() * 1e3,
        read.as_secs_f64() * 1e3,
    );
}

/// `touches` is told each table and row.
fn transaction(
    random: &mut Random,
    serial: u64,
    last_seen: Seqno,
    rows: u64,
    tables: u64,
    spread: u64,
    mut touches: impl FnMut(u64, u64),
) -> WriteSet {
    let mut builder = WriteSetBuilder::new();
    for _ in 0..rows {
        let (table, row) = (random.below(tables), random.below(spread));
        touches(table, row);
        let (table, id) = ([b"sbtest".as_slice(), &[table as u8]].concat(), row.to_be_bytes());
        builder.append_key(&[b"sbtest", &table, &id], KeyType::Update);
    }
    let origin = u128::from(random.below(3)) << 64;
    let bytes = builder.finish(&Header::transaction(origin, serial, last_seen));
    WriteSet::parse(bytes).expect("own bytes")
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((u128::from(mixed ^ (mixed >> 29)) * u128::from(bound)) >> 64) as u64
    }
}
