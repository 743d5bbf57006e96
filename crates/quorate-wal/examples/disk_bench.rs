//! What ways there are to put a batch on disk, side by side: in turns within one run, on one file that is
//! preallocated and filled with zeros. Batches are whole pages, as those of the log are: it does the first.
//!
//! `cargo run --release -p quorate-wal --example disk_bench -- DIR [ROUNDS]`

use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{channel, Sender};
use std::thread;
use std::time::Instant;

const FILE_BYTES: u64 = 64 << 20;
const PAGE: usize = 4096;
const BATCHES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = || io::Error::other("usage: disk_bench DIR [ROUNDS]");
    let dir = args.next().ok_or_else(usage)?;
    let rounds: usize = args.next().map_or(Ok(1000), |n| n.parse()).map_err(|_| usage())?;
    let path = Path::new(&dir).join("disk_bench");
    let done = BATCHES.into_iter().try_for_each(|bytes| compare(&path, bytes, rounds));
    fs::remove_file(path)?;
    done
}

/// One way to write a batch, and the times that it took.
struct Way {
    name: &'static str,
    file: File,
    syncs: bool,
    times_us: Vec<f64>,
}

fn compare(path: &Path, bytes: usize, rounds: usize) -> io::Result<()> {
    prepare(path)?;
    let way = |name, flags, syncs| -> io::Result<Way> {
        let file = open(path, flags)?;
        Ok(Way { name, file, syncs, times_us: Vec::new() })
    };
    let mut ways = [
        way("write, fdatasync", OFlags::empty(), true)?,
        way("O_DSYNC", OFlags::DSYNC, false)?,
        way("O_DIRECT, fdatasync", OFlags::DIRECT, true)?,
        way("O_DIRECT, O_DSYNC", OFlags::DIRECT | OFlags::DSYNC, false)?,
    ];
    let memory = vec![7; 2 * PAGE + bytes];
    let aligned = &memory[memory.as_ptr().align_offset(PAGE)..];
    let mut place = 0;
    for _ in 0..rounds {
        for way in &mut ways {
            let begun = Instant::now();
            way.file.write_all_at(&aligned[..bytes], place)?;
            if way.syncs {
                way.file.sync_data()?;
            }
            way.times_us.push(begun.elapsed().as_secs_f64() * 1e6);
            place = (place + bytes as u64) % FILE_BYTES;
        }
    }
    for way in &mut ways {
        print(bytes, way.name, &mut way.times_us);
    }
    two_in_flight(path, bytes, 2 * rounds)
}

/// Of two batches that are under way at a time: from one that is done to the next.
fn two_in_flight(path: &Path, bytes: usize, count: usize) -> io::Result<()> {
    let (send, done) = channel();
    let half = FILE_BYTES / 2;
    let writer = |file: File, from: u64, done: Sender<io::Result<()>>| {
        move || {
            let buf = vec![7; bytes];
            for number in 0..count as u64 / 2 {
                let place = from + number * bytes as u64 % half;
                let synced = file.write_all_at(&buf, place).and_then(|()| file.sync_data());
                // Who measures is gone only after an error.
                let _ = done.send(synced);
            }
        }
    };
    let mut times_us = Vec::new();
    thread::scope(|scope| {
        let (first, second) = (open(path, OFlags::empty())?, open(path, OFlags::empty())?);
        scope.spawn(writer(first, 0, send.clone()));
        scope.spawn(writer(second, half, send));
        let mut begun = Instant::now();
        for synced in done {
            synced?;
            times_us.push(begun.elapsed().as_secs_f64() * 1e6);
            begun = Instant::now();
        }
        Ok::<_, io::Error>(())
    })?;
    print(bytes, "the first, two in flight", &mut times_us);
    Ok(())
}

fn prepare(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    let zeros = vec![0; 1 << 20];
    for place in (0..FILE_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, place)?;
    }
    file.sync_all()
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    OpenOptions::new().write(true).custom_flags(flags.bits() as i32).open(path)
}

fn print(bytes: usize, name: &str, times_us: &mut [f64]) {
    times_us.sort_by(f64::total_cmp);
    let at = |share: f64| times_us[((times_us.len() - 1) as f64 * share) as usize];
    let mean = times_us.iter().sum::<f64>() / times_us.len() as f64;
    println!(
        "{:4} KiB  {name:26} p50 {:7.0} us  p99 {:7.0} us  mean {mean:7.0} us",
        bytes >> 10,
        at(0.5),
        at(0.99)
    );
}
