//! Threads write to the same files at once, buffered and directly, punch, zero and allocate, and sync
//! what others write, on a disk that gets full and loses its power. Each block must be found with
//! what it held when the last sync of its file began, or with something that was written later.

use crate::place::Place;
use anyhow::{ensure, Context, Result};
use parking_lot::Mutex;
use rustix::fs::{fallocate, FallocateFlags, OFlags};
use std::fs::{File, OpenOptions};

use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const BLOCK: usize = 4096;
/// What a disk writes whole.
const SECTOR: usize = 512;
const FILES: usize = 3;
const THREADS: usize = 4;
/// Of one thread's, in each file.
const OWN: usize = 24;
const MS: Duration = Duration::from_millis(1);

/// What a block may hold. Numbers grow with time; zeros have a number, too.
#[derive(Clone, Copy, PartialEq)]
struct Version {
    number: u64,
    /// Each of its words.
    word: u64,
}

/// What one block may hold now, and after a power cut.
struct Block {
    /// More than one after an operation that failed, or did a part.
    now: Vec<Version>,
    /// All since the last sync, with what that made durable.
    kept: Vec<Version>,
}

struct Kept {
    place_file: Vec<[File; 2]>,
    blocks: Vec<Vec<Mutex<Block>>>,
    numbers: AtomicU64,
    /// Syncs of each file that failed: what they should have written may be lost.
    failures: Vec<AtomicU64>,
    /// The disk was full once: what is read may then be older than what was written, until a sync
    /// has said whether it found room.
    was_full: AtomicBool,
    /// What a sync says from now on comes too late to count: ext4 that is shut down may still call
    /// one a success.
    cut: AtomicBool,
    figures: [AtomicU64; 3],
}

/// Rounds of work and power cuts; returns how many operations succeeded, how many failed, and syncs.
pub fn keep_what_was_synced(place: &dyn Place, rounds: u64, seed: u64) -> Result<[u64; 3]> {
    let mut sums = [0; 3];
    for round in 0..rounds {
        let seed = seed.wrapping_mul(1 << 20).wrapping_add(round);
        let kept = Kept::new(place)?;
        let stop = AtomicBool::new(false);
        let mut random = fastrand::Rng::with_seed(seed);
        thread::scope(|scope| -> Result<()> {
            let workers: Vec<_> = (0..THREADS)
                .map(|own| {
                    let (kept, stop) = (&kept, &stop);
                    let random = fastrand::Rng::with_seed(seed ^ (own as u64 + 1) << 32);
                    scope.spawn(move || kept.work(own, random, stop))
                })
                .collect();
            let acts = || -> Result<()> {
                thread::sleep(MS * random.u32(20..150));
                kept.was_full.store(true, Ordering::SeqCst);
                place.fill()?;
                thread::sleep(MS * random.u32(20..150));
                if random.bool() {
                    place.make_room()?;
                    thread::sleep(MS * random.u32(20..150));
                }
                kept.cut.store(true, Ordering::SeqCst);
                place.cut_power()
            };
            let acted = { acts }();
            stop.store(true, Ordering::Relaxed);
            let worked = workers.into_iter().map(|worker| worker.join().expect("no panic"));
            worked.fold(acted, Result::and)
        })
        .with_context(|| format!("seed {seed}, before the power cut"))?;
        let Kept { place_file, blocks, figures, .. } = kept;
        drop(place_file);
        place.power_on(Some(seed))?;
        check(place, &blocks).with_context(|| format!("seed {seed}, after the power cut"))?;
        for (sum, figure) in sums.iter_mut().zip(figures) {
            *sum += figure.into_inner();
        }
    }
    Ok(sums)
}

impl Kept {
    /// Empty files of their full size.
    fn new(place: &dyn Place) -> Result<Kept> {
        let open = |file: usize, direct: OFlags| {
            OpenOptions::new()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .custom_flags(direct.bits() as i32)
                .open(place.path().join(format!("file{file}")))
        };
        let mut place_file = Vec::new();
        for file in 0..FILES {
            let buffered = open(file, OFlags::empty())?;
            buffered.set_len(0)?;
            buffered.set_len((THREADS * OWN * BLOCK) as u64)?;
            buffered.sync_all()?;
            place_file.push([buffered, open(file, OFlags::DIRECT)?]);
        }
        let empty = Version { number: 0, word: 0 };
        let block = || Mutex::new(Block { now: vec![empty], kept: vec![empty] });
        let blocks = (0..FILES).map(|_| (0..THREADS * OWN).map(|_| block()).collect()).collect();
        Ok(Kept {
            place_file,
            blocks,
            numbers: AtomicU64::new(1),
            failures: (0..FILES).map(|_| AtomicU64::new(0)).collect(),
            was_full: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            figures: Default::default(),
        })
    }

    fn work(&self, own: usize, mut random: fastrand::Rng, stop: &AtomicBool) -> Result<()> {
        // Aligned, for direct writes.
        let mut buffer = vec![0; 9 * BLOCK];
        let start = buffer.as_ptr().align_offset(BLOCK);
        while !stop.load(Ordering::Relaxed) {
            let file = random.usize(0..FILES);
            let count = random.usize(1..=8);
            let first = own * OWN + random.usize(0..=OWN - count);
            let bytes = &mut buffer[start..start + count * BLOCK];
            match random.u32(0..100) {
                0..12 => self.sync(file, random.bool()),
                12..30 => self.read(file, first, bytes, random.bool())?,
                kind => self.change(kind, file, first, bytes, random.bool()),
            }
        }
        Ok(())
    }

    /// Writes, or makes zeros.
    fn change(&self, kind: u32, file: usize, first: usize, bytes: &mut [u8], direct: bool) {
        let count = bytes.len() / BLOCK;
        let (at, length) = ((first * BLOCK) as u64, bytes.len() as u64);
        let handle = &self.place_file[file][usize::from(direct)];
        let number = self.numbers.fetch_add(1, Ordering::SeqCst);
        let word = if kind < 80 { number << 8 | 0x51 } else { 0 };
        let new = Version { number, word };
        let blocks = &self.blocks[file][first..first + count];
        if kind >= 95 {
            // Changes no content.
            let done = fallocate(handle, FallocateFlags::empty(), at, length);
            return self.count(done.is_ok());
        }
        for block in blocks {
            block.lock().kept.push(new);
        }
        let failures = self.failures[file].load(Ordering::SeqCst);
        let done = match kind {
            0..80 => {
                bytes
                    .chunks_exact_mut(8)
                    .for_each(|part| part.copy_from_slice(&word.to_le_bytes()));
                handle.write_at(bytes, at).unwrap_or(0)
            }
            80..88 => whole(fallocate(handle, PUNCH, at, length), bytes.len()),
            _ => whole(fallocate(handle, FallocateFlags::ZERO_RANGE, at, length), bytes.len()),
        };
        self.count(done == bytes.len());
        for (nth, block) in blocks.iter().enumerate() {
            let mut block = block.lock();
            if failures != self.failures[file].load(Ordering::SeqCst) {
                block.now = block.kept.clone();
            } else if (nth + 1) * BLOCK <= done {
                block.now = vec![new];
            } else if word == 0 {
                // ext4 forgets what it has not written out yet before it looks for room.
                block.now = block.kept.clone();
            } else {
                block.now.push(new);
            }
        }
    }

    fn sync(&self, file: usize, data_only: bool) {
        let oldest = |block: &Mutex<Block>| block.lock().now.iter().map(|v| v.number).min();
        let before: Vec<u64> = self.blocks[file].iter().filter_map(oldest).collect();
        let handle = &self.place_file[file][0];
        let done = if data_only { handle.sync_data() } else { handle.sync_all() };
        if self.cut.load(Ordering::SeqCst) {
            return;
        }
        if done.is_ok() {
            self.figures[2].fetch_add(1, Ordering::Relaxed);
            for (block, before) in self.blocks[file].iter().zip(before) {
                block.lock().kept.retain(|version| version.number >= before);
            }
        } else {
            self.failures[file].fetch_add(1, Ordering::SeqCst);
            for block in &self.blocks[file] {
                let mut block = block.lock();
                block.now = block.kept.clone();
            }
        }
    }

    fn read(&self, file: usize, first: usize, bytes: &mut [u8], direct: bool) -> Result<()> {
        let handle = &self.place_file[file][usize::from(direct)];
        if handle.read_exact_at(bytes, (first * BLOCK) as u64).is_err() {
            // Without power.
            return Ok(());
        }
        for (nth, found) in bytes.chunks_exact(BLOCK).enumerate() {
            let block = self.blocks[file][first + nth].lock();
            let was_full = self.was_full.load(Ordering::SeqCst);
            holds_one_of(found, if was_full { &block.kept } else { &block.now })
                .with_context(|| format!("file {file}, block {}, direct: {direct}", first + nth))?;
        }
        Ok(())
    }

    fn count(&self, done: bool) {
        self.figures[usize::from(!done)].fetch_add(1, Ordering::Relaxed);
    }
}

const PUNCH: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

fn whole(done: rustix::io::Result<()>, length: usize) -> usize {
    done.map_or(0, |()| length)
}

fn check(place: &dyn Place, blocks: &[Vec<Mutex<Block>>]) -> Result<()> {
    for (file, blocks) in blocks.iter().enumerate() {
        let found = std::fs::read(place.path().join(format!("file{file}")))?;
        ensure!(found.len() == blocks.len() * BLOCK, "file {file} has {} bytes", found.len());
        for (nth, (found, block)) in found.chunks_exact(BLOCK).zip(blocks).enumerate() {
            holds_one_of(found, &block.lock().kept)
                .with_context(|| format!("file {file}, block {nth}"))?;
        }
    }
    Ok(())
}

/// Each sector is whole, and of one of these.
fn holds_one_of(found: &[u8], versions: &[Version]) -> Result<()> {
    for (nth, sector) in found.chunks_exact(SECTOR).enumerate() {
        let words =
            || sector.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        let word = words().next().unwrap_or_default();
        ensure!(words().all(|other| other == word), "sector {nth} is torn");
        ensure!(
            versions.iter().any(|version| version.word == word),
            "sector {nth} holds {word:#x}, not one of {:x?}",
            versions.iter().map(|version| version.word).collect::<Vec<_>>()
        );
    }
    Ok(())
}
