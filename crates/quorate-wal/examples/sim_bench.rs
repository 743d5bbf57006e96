//! What the log costs a simulation: a thousand lives of one member, each of a hundred batches, a
//! power cut and the next start.
//!
//! `cargo run --profile sim -p quorate-wal --features sim --example sim_bench`

use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind, HardState};
use quorate_wal::sim::{self, Crash, Next, SimDisk};
use quorate_wal::{WalError, WalOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIVES: u32 = 1000;
const BATCHES: u64 = 100;

fn main() -> Result<(), Arc<WalError>> {
    let options = WalOptions {
        segment_bytes: 16 << 10,
        cache_bytes: 64 << 10,
        retain_bytes: 0,
        reserve_segments: 1,
        ..WalOptions::new("/sim")
    };
    let (mut opened, mut written, mut reopened) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for life in 0..LIVES {
        let disk = SimDisk::new(life.into());
        let begun = Instant::now();
        let (wal, mut steps, _) = sim::open(&disk, options.clone(), true)?;
        opened += begun.elapsed();
        let begun = Instant::now();
        for index in 1..=BATCHES {
            let data = Bytes::from(vec![7; 100]);
            wal.append(&[Entry::new(index, 1, EntryKind::Data, data)]);
            while !matches!(steps.next(), Next::Idle | Next::Mark) {
                steps.step()?;
            }
            while steps.has_recycling() {
                steps.recycle()?;
            }
        }
        wal.save_hard_state(HardState { term: 2, voted_for: None })?;
        written += begun.elapsed();
        let disk = disk.crash(Crash::Power);
        let begun = Instant::now();
        let (_, _, recovered) = sim::open(&disk, options.clone(), false)?;
        reopened += begun.elapsed();
        assert_eq!(recovered.last.index, BATCHES);
    }
    println!("open {:.1?}", opened / LIVES);
    println!("write and sync a batch {:.2?}", written / LIVES / BATCHES as u32);
    println!("open again {:.1?}", reopened / LIVES);
    Ok(())
}
