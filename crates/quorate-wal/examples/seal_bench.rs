//! What encryption costs: batches of one entry, written to a disk in memory in the clear and encrypted, in
//! turns; and read back. The difference is the cost, in time of one core.
//!
//! `cargo run --release -p quorate-wal --features sim --example seal_bench`

use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind};
use quorate_wal::sim::{self, Next, SimDisk};
use quorate_wal::{DiskKeys, WalError, WalOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: u64 = 40;

fn main() -> Result<(), Arc<WalError>> {
    for (bytes, entries) in [(100, 200), (4 << 10, 200), (64 << 10, 50), (1 << 20, 8)] {
        let (mut clear, mut sealed) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            clear.push(run(round, bytes, entries, DiskKeys::default())?);
            sealed.push(run(round, bytes, entries, DiskKeys::new(&[[7; 32]], true))?);
        }
        let total = bytes * entries as usize;
        print("write", bytes, total, entries, &clear, &sealed, |times| times.0);
        print("read", bytes, total, entries, &clear, &sealed, |times| times.1);
    }
    Ok(())
}

/// How long it takes to write so many batches of one entry, and to read them back.
fn run(
    seed: u64,
    bytes: usize,
    entries: u64,
    keys: DiskKeys,
) -> Result<(Duration, Duration), Arc<WalError>> {
    let disk = SimDisk::new(seed);
    let options = WalOptions { cache_bytes: 0, keys, ..WalOptions::new("/sim") };
    let (wal, mut steps, _) = sim::open(&disk, options, true)?;
    let data = Bytes::from(vec![7; bytes]);
    let begun = Instant::now();
    for index in 1..=entries {
        wal.append(&[Entry::new(index, 1, EntryKind::Data, data.clone())]);
        while matches!(steps.next(), Next::Write | Next::Sync) {
            steps.step()?;
        }
    }
    let written = begun.elapsed();
    let (begun, mut found) = (Instant::now(), Vec::new());
    while (found.len() as u64) < entries {
        let next = found.len() as u64 + 1;
        wal.read(next, 1 << 20, &mut found).expect("what was written is there");
    }
    Ok((written, begun.elapsed()))
}

fn print(
    what: &str,
    bytes: usize,
    total: usize,
    entries: u64,
    clear: &[(Duration, Duration)],
    sealed: &[(Duration, Duration)],
    time: impl Fn(&(Duration, Duration)) -> Duration,
) {
    // Others who use the machine only ever add to a time.
    let least = |times: &[(Duration, Duration)]| {
        times.iter().map(|t| time(t).as_secs_f64()).fold(f64::INFINITY, f64::min)
    };
    let (clear, sealed) = (least(clear), least(sealed));
    let (cost, each) = (sealed - clear, |seconds: f64| seconds * 1e6 / entries as f64);
    println!(
        "{what:5} {bytes:8} bytes: in the clear {:8.2} us, encrypted {:8.2} us; cost {:8.2} us, {:6.0} MB/s",
        each(clear),
        each(sealed),
        each(cost),
        total as f64 / cost / 1e6
    );
}
