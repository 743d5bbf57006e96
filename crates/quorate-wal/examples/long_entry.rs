//! How long one long entry takes to be on disk, and how long the disk seems to stand still
//! meanwhile: the longest time between two reports of the log.
//!
//! `cargo run --release -p quorate-wal --example long_entry -- DIR MEGABYTES...`

use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind};
use quorate_wal::{Wal, WalOptions};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("usage: long_entry DIR MEGABYTES...")?;
    for megabytes in args {
        let (took, still) = measure(Path::new(&dir), megabytes.parse()?)?;
        println!("{megabytes} MB: on disk after {took:.2?}, longest silence {still:.2?}");
    }
    Ok(())
}

fn measure(dir: &Path, megabytes: usize) -> Result<(Duration, Duration), Failure> {
    let dir = dir.join("log");
    let (send, reports) = channel();
    // Nobody listens any more at the end.
    let on_sync = Box::new(move |report| drop(send.send(report)));
    let (wal, _) = Wal::open(WalOptions::new(&dir), true, on_sync)?;
    let entry = |index, bytes| {
        let data = Bytes::from(vec![7; bytes]);
        Entry::new(index, 1, EntryKind::Data, data)
    };
    wal.append(&[entry(1, 100)]);
    reports.recv()??;
    let long = entry(2, megabytes << 20);
    let begun = Instant::now();
    let (mut before, mut still) = (begun, Duration::ZERO);
    wal.append(&[long]);
    loop {
        let index = reports.recv()??.index;
        still = still.max(before.elapsed());
        before = Instant::now();
        if index == 2 {
            break;
        }
    }
    let took = begun.elapsed();
    wal.close();
    std::fs::remove_dir_all(dir)?;
    Ok((took, still))
}
