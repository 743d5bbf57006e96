//! The log beside the bare disk: synced appends of 4 KiB against overwriting 4 KiB and fdatasync, in
//! turns within one run, on the same file system.
//!
//! `cargo run --release -p quorate-wal --example wal_bench -- --dir D [--seconds 5] [--check]`

use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind, LogPosition};
use quorate_wal::{Wal, WalError, WalOptions};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BATCH_BYTES: usize = 4096;
const FILE_BYTES: u64 = 64 << 20;
/// Bare disk and log take turns this often, so that both meet the same moods of the disk.
const ROUNDS: u32 = 50;
/// `--check`: the log reaches at least this share of the bare loop.
const SHARE_MIN: f64 = 0.8;
const PIPELINE: u64 = 16;
/// Entries between two calls of `release`: as on a node that takes snapshots, segments come back.
const RELEASE_EVERY: u64 = 4096;

type Failure = Box<dyn std::error::Error>;

struct Args {
    dir: PathBuf,
    seconds: f64,
    check: bool,
}

fn main() -> ExitCode {
    let args = match parse_args() {
        Ok(args) => args,
        Err(message) => {
            eprintln!("{message}\nusage: wal_bench --dir DIR [--seconds N] [--check]");
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(share) if args.check && share < SHARE_MIN => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wal_bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn parse_args() -> Result<Args, String> {
    let mut args = Args { dir: PathBuf::new(), seconds: 5.0, check: false };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let mut value = || given.next().ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "--dir" => args.dir = value()?.into(),
            "--seconds" => {
                args.seconds = value()?.parse().map_err(|e| format!("--seconds: {e}"))?;
            }
            "--check" => args.check = true,
            _ => return Err(format!("unknown option {name}")),
        }
    }
    if args.dir.as_os_str().is_empty() {
        return Err("--dir is missing".into());
    }
    Ok(args)
}

/// Measures and prints; returns the log's share of the bare loop's rate.
fn run(args: &Args) -> Result<f64, Failure> {
    std::fs::create_dir_all(&args.dir)?;
    let bare_path = args.dir.join("bare");
    let mut bare = Bare::create(&bare_path)?;
    let mut log = Log::open(args.dir.join("log"))?;
    let turn = Duration::from_secs_f64(args.seconds / f64::from(ROUNDS));

    let (mut bare_us, mut log_us, mut piped_us) = (Vec::new(), Vec::new(), Vec::new());
    let mut shares = Vec::new();
    for _ in 0..ROUNDS {
        let (bare_before, log_before) = (bare_us.len(), log_us.len());
        repeat(turn, &mut bare_us, || bare.overwrite())?;
        repeat(turn, &mut log_us, || log.append_and_wait(1))?;
        shares.push(mean(&bare_us[bare_before..]) / mean(&log_us[log_before..]));
    }
    repeat(turn * ROUNDS, &mut piped_us, || log.append_and_wait(PIPELINE))?;
    print("bare overwrite + fdatasync, 4 KiB", &mut bare_us, 1);
    print("log, append 4 KiB, wait, repeat", &mut log_us, 1);
    print("log, 16 appends of 4 KiB in flight", &mut piped_us, PIPELINE);
    // The median of the rounds: one that met somebody else's work does not count for more.
    shares.sort_by(f64::total_cmp);
    let share = shares[shares.len() / 2];
    println!("log / bare: {:.1} % of the rate, median of {ROUNDS} rounds", share * 100.0);
    let stats = log.wal.stats();
    println!("log: {} entries in {} syncs", stats.entries, stats.syncs);
    log.wal.close();
    std::fs::remove_file(bare_path)?;
    std::fs::remove_dir_all(args.dir.join("log"))?;
    Ok(share)
}

/// What the log is measured against.
struct Bare {
    file: File,
    offset: u64,
}

impl Bare {
    fn create(path: &PathBuf) -> std::io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        let zeros = vec![0; 1 << 20];
        for offset in (0..FILE_BYTES).step_by(zeros.len()) {
            file.write_all_at(&zeros, offset)?;
        }
        file.sync_all()?;
        Ok(Bare { file, offset: 0 })
    }

    fn overwrite(&mut self) -> Result<(), Failure> {
        self.file.write_all_at(&[7; BATCH_BYTES], self.offset)?;
        self.offset = (self.offset + BATCH_BYTES as u64) % FILE_BYTES;
        Ok(self.file.sync_data()?)
    }
}

struct Log {
    wal: Wal,
    synced: Receiver<Result<LogPosition, Arc<WalError>>>,
    data: Bytes,
    last: u64,
    released: u64,
}

impl Log {
    fn open(dir: PathBuf) -> Result<Self, Failure> {
        let options = WalOptions { retain_bytes: 128 << 20, ..WalOptions::new(dir) };
        let (send, synced) = channel();
        let on_sync = Box::new(move |report| {
            // Nobody listens any more at the end.
            let _ = send.send(report);
        });
        let (wal, recovered) = Wal::open(options, true, on_sync)?;
        let data = Bytes::from(vec![7; BATCH_BYTES]);
        Ok(Log { wal, synced, data, last: recovered.last.index, released: 0 })
    }

    /// `count` appends, each queued by itself, then waits for the last.
    fn append_and_wait(&mut self, count: u64) -> Result<(), Failure> {
        for _ in 0..count {
            self.last += 1;
            let data = self.data.clone();
            self.wal.append(&[Entry::new(self.last, 1, EntryKind::Data, data)]);
        }
        if self.last >= self.released + RELEASE_EVERY {
            self.wal.release(self.last - count, u64::MAX);
            self.released = self.last;
        }
        while self.synced.recv()??.index < self.last {}
        Ok(())
    }
}

fn repeat(
    turn: Duration,
    times_us: &mut Vec<f64>,
    mut once: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let end = Instant::now() + turn;
    let mut begun = Instant::now();
    while begun < end {
        once()?;
        let now = Instant::now();
        times_us.push((now - begun).as_secs_f64() * 1e6);
        begun = now;
    }
    Ok(())
}

fn mean(times_us: &[f64]) -> f64 {
    times_us.iter().sum::<f64>() / times_us.len() as f64
}

fn print(what: &str, times_us: &mut [f64], each: u64) {
    times_us.sort_by(f64::total_cmp);
    let at = |share: f64| times_us[((times_us.len() - 1) as f64 * share) as usize];
    let rate = each as f64 * 1e6 / mean(times_us);
    println!("{what:36} {rate:8.0} /s   p50 {:6.1} us   p99 {:6.1} us", at(0.5), at(0.99));
}
