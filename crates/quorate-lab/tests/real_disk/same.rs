//! One program does the same on the lab's disk and on ext4: it gets the same answers and finds the
//! same files, also after a power cut that everything was synced before.

use crate::place::Place;
use anyhow::{ensure, Context, Result};
use rustix::fs::{fallocate, FallocateFlags};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const NAMES: u32 = 8;
const SIZE_MAX: u64 = 200_000;
/// Operations between two looks at everything.
const STRETCH: u64 = 40;

/// Files with their content, directories and links without one.
type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

pub fn both_do_the_same(places: [&dyn Place; 2], operations: u64, seed: u64) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    for operation in 0..operations {
        // Each takes the same draws.
        let draws = random.u64(..);
        let [one, other] = places.map(|place| {
            act(place.path(), &mut fastrand::Rng::with_seed(draws)).map_err(|e| e.raw_os_error())
        });
        ensure!(one == other, "seed {seed}, operation {operation}: {one:?}, and on ext4 {other:?}");
        if operation % STRETCH == STRETCH - 1 {
            compare(places).with_context(|| format!("seed {seed}, operation {operation}"))?;
            if random.u32(0..4) == 0 {
                places.into_iter().try_for_each(|place| {
                    sync_all(place.path())?;
                    place.cut_power()?;
                    place.power_on(Some(draws))
                })?;
                compare(places)
                    .with_context(|| format!("seed {seed}, a power cut at {operation}"))?;
            }
        }
    }
    Ok(())
}

/// One random operation; what it answers.
fn act(folder: &Path, random: &mut fastrand::Rng) -> io::Result<u64> {
    let file = |random: &mut fastrand::Rng| folder.join(format!("f{}", random.u32(0..NAMES)));
    let directory = |random: &mut fastrand::Rng| folder.join(format!("d{}", random.u32(0..3)));
    let path = match random.u32(0..5) {
        0 => directory(random).join("inner"),
        _ => file(random),
    };
    let (at, length) = (random.u64(0..SIZE_MAX), random.u64(1..40_000));
    // Pages are where mistakes are made.
    let (at, length) = match random.bool() {
        true => (at, length),
        false => (at.next_multiple_of(4096), length.next_multiple_of(4096)),
    };
    let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
    match random.u32(0..100) {
        0..10 => File::create_new(&path).map(|_| 0),
        10..45 => {
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            open(&path)?.write_at(&bytes, at).map(|written| written as u64)
        }
        45..55 => open(&path)?.set_len(at).map(|()| 0),
        55..75 => {
            const KEEP_SIZE: FallocateFlags = FallocateFlags::KEEP_SIZE;
            let modes = [
                FallocateFlags::empty(),
                KEEP_SIZE,
                FallocateFlags::PUNCH_HOLE | KEEP_SIZE,
                FallocateFlags::ZERO_RANGE,
                FallocateFlags::ZERO_RANGE | KEEP_SIZE,
            ];
            let mode = modes[random.usize(0..modes.len())];
            fallocate(open(&path)?, mode, at, length)?;
            Ok(0)
        }
        75..80 => fs::remove_file(&path).map(|()| 0),
        80..86 => fs::rename(&path, file(random)).map(|()| 0),
        86..88 => fs::rename(directory(random), directory(random)).map(|()| 0),
        88..92 => fs::hard_link(&path, file(random)).map(|()| 0),
        92..95 => fs::create_dir(directory(random)).map(|()| 0),
        95..97 => fs::remove_dir(directory(random)).map(|()| 0),
        _ => open(&path)?.sync_data().map(|()| 0),
    }
}

fn compare(places: [&dyn Place; 2]) -> Result<()> {
    let mut trees = [Tree::new(), Tree::new()];
    for (place, tree) in places.iter().zip(&mut trees) {
        read(place.path(), Path::new(""), tree)?;
    }
    let [one, other] = trees;
    let names = |tree: &Tree| tree.keys().cloned().collect::<Vec<_>>();
    ensure!(names(&one) == names(&other), "{:?}, and on ext4 {:?}", names(&one), names(&other));
    for (name, content) in &one {
        let length = |content: &Option<Vec<u8>>| content.as_ref().map(Vec::len);
        let (found, beside) = (length(content), length(&other[name]));
        ensure!(content == &other[name], "{}: {found:?} bytes, {beside:?} on ext4", name.display());
    }
    Ok(())
}

fn read(place: &Path, folder: &Path, tree: &mut Tree) -> Result<()> {
    for entry in fs::read_dir(place.join(folder))? {
        let entry = entry?;
        let name = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            // ext4 has it for its own use.
            if entry.file_name() != "lost+found" {
                read(place, &name, tree)?;
                tree.insert(name, None);
            }
        } else {
            tree.insert(name, Some(fs::read(entry.path())?));
        }
    }
    Ok(())
}

fn sync_all(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sync_all(&entry.path())?,
            false => File::open(entry.path())?.sync_all()?,
        }
    }
    File::open(folder)?.sync_all()
}
