//! What ways there are to put a batch on disk, side by side: in turns within one run, on one file that is
//! preallocated and filled with zeros. Batches are whole pages, as those of the log are: it does the first.
//!
//! `cargo run --release -p quorate-wal --example disk_bench -- DIR [ROUNDS]`

use io_uring::{opcode, squeue::Flags, types::Fd, types::FsyncFlags, IoUring};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
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
    calls: Calls,
    times_us: Vec<f64>,
}

enum Calls {
    Write,
    WriteSync,
    /// Both in one call, by `io_uring`: the sync begins when the write is done.
    Linked(Box<IoUring>),
    /// The write by `io_uring`, into a file that syncs by itself.
    Queued(Box<IoUring>),
}

impl Way {
    fn put(&mut self, batch: &[u8], place: u64) -> io::Result<()> {
        let file = &self.file;
        match &mut self.calls {
            Calls::Write => file.write_all_at(batch, place),
            Calls::WriteSync => {
                file.write_all_at(batch, place)?;
                file.sync_data()
            }
            Calls::Linked(ring) => queued(ring, file, batch, place, true),
            Calls::Queued(ring) => queued(ring, file, batch, place, false),
        }
    }
}

fn queued(
    ring: &mut IoUring,
    file: &File,
    batch: &[u8],
    place: u64,
    syncs: bool,
) -> io::Result<()> {
    let fd = Fd(file.as_raw_fd());
    let flags = if syncs { Flags::IO_LINK } else { Flags::empty() };
    let write = opcode::Write::new(fd, batch.as_ptr(), batch.len() as u32).offset(place);
    let sync = opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build();
    {
        let mut queue = ring.submission();
        // SAFETY: the batch and the file outlive the calls, whose ends are waited for below.
        unsafe {
            queue.push(&write.build().flags(flags)).map_err(io::Error::other)?;
            if syncs {
                queue.push(&sync).map_err(io::Error::other)?;
            }
        }
    }
    let calls = 1 + usize::from(syncs);
    ring.submit_and_wait(calls)?;
    let results: Vec<i32> = ring.completion().map(|done| done.result()).collect();
    match (&results[..], batch.len() as i32) {
        ([written, synced @ ..], all)
            if *written == all && synced.iter().all(|code| *code == 0) =>
        {
            Ok(())
        }
        _ => Err(io::Error::other(format!("io_uring: {results:?}"))),
    }
}

fn compare(path: &Path, bytes: usize, rounds: usize) -> io::Result<()> {
    prepare(path)?;
    let way = |name, flags, calls| -> io::Result<Way> {
        let file = open(path, flags)?;
        Ok(Way { name, file, calls, times_us: Vec::new() })
    };
    let ring = || IoUring::new(2).map(Box::new);
    let direct = OFlags::DIRECT | OFlags::DSYNC;
    let mut ways = [
        way("write, fdatasync", OFlags::empty(), Calls::WriteSync)?,
        way("O_DSYNC", OFlags::DSYNC, Calls::Write)?,
        way("O_DIRECT, fdatasync", OFlags::DIRECT, Calls::WriteSync)?,
        way("O_DIRECT, O_DSYNC", direct, Calls::Write)?,
        way("io_uring", OFlags::empty(), Calls::Linked(ring()?))?,
        way("io_uring, O_DIRECT, O_DSYNC", direct, Calls::Queued(ring()?))?,
    ];
    let memory = vec![7; 2 * PAGE + bytes];
    let aligned = &memory[memory.as_ptr().align_offset(PAGE)..];
    let mut place = 0;
    for _ in 0..rounds {
        for way in &mut ways {
            let begun = Instant::now();
            way.put(&aligned[..bytes], place)?;
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
        "{:4} KiB  {name:28} p50 {:7.0} us  p99 {:7.0} us  mean {mean:7.0} us",
        bytes >> 10,
        at(0.5),
        at(0.99)
    );
}
