//! The machine, for the record.

use crate::record::Machine;
use anyhow::{Context, Result};
use quorate_lab::leftovers::Folder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const SYNCS: usize = 101;
const BLOCK_BYTES: usize = 4096;
const BLOCKS: u64 = 1024;

/// What this machine is, and how fast it syncs where nodes have their data. Without its tools.
pub fn machine() -> Result<Machine> {
    let folder = Folder::new()?;
    let processors = fs::read_to_string("/proc/cpuinfo").context("reading /proc/cpuinfo")?;
    let memory = fs::read_to_string("/proc/meminfo").context("reading /proc/meminfo")?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("reading the mount table")?;
    let names = rustix::system::uname();
    let kernel =
        format!("{} {}", names.sysname().to_string_lossy(), names.release().to_string_lossy());
    Ok(Machine {
        processor: field(&processors, "model name").unwrap_or_default().to_owned(),
        processors: std::thread::available_parallelism()?.get(),
        memory_bytes: memory_bytes(&memory).context("no MemTotal in /proc/meminfo")?,
        kernel,
        disk: file_system(&mounts, folder.path()).unwrap_or_default().to_owned(),
        sync_us: sync_time(folder.path(), SYNCS)?.as_secs_f64() * 1e6,
        tools: BTreeMap::new(),
    })
}

/// Of `name  : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(label, _)| label.trim() == name).map(|(_, value)| value.trim())
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let kilobytes: u64 = field(meminfo, "MemTotal")?.strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The type of the file system that `path` is in, by a mount table (proc_pid_mountinfo(5)).
fn file_system<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mounts = mounts.lines().filter_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let point = Path::new(place.split(' ').nth(4)?);
        path.starts_with(point)
            .then(|| Some((point.components().count(), kind.split(' ').next()?)))?
    });
    // Of two at the same place the later one covers the earlier.
    mounts.max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}

/// Median time of overwriting 4 KiB and `fdatasync`, on the file system of `folder`.
pub fn sync_time(folder: &Path, count: usize) -> Result<Duration> {
    let path = folder.join("probe.tmp");
    let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
    let block = [0x5a; BLOCK_BYTES];
    for number in 0..BLOCKS {
        file.write_all_at(&block, number * BLOCK_BYTES as u64)?;
    }
    file.sync_all()?;
    let mut times = Vec::with_capacity(count);
    for number in 0..count as u64 {
        let begin = Instant::now();
        file.write_all_at(&block, number % BLOCKS * BLOCK_BYTES as u64)?;
        file.sync_data()?;
        times.push(begin.elapsed());
    }
    fs::remove_file(&path)?;
    times.sort_unstable();
    Ok(times[count / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_kernel_are_read() {
        let info = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n";
        assert_eq!(field(info, "model name"), Some("Some CPU @ 2 GHz"));
        assert_eq!(
            memory_bytes("MemTotal:       24606312 kB\nMemFree: 1 kB\n"),
            Some(25_196_863_488)
        );
        let mounts = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                      30 22 0:25 / /var/tmp rw shared:2 - tmpfs tmpfs rw\n\
                      31 22 0:26 / /var rw - xfs /dev/vdb rw\n";
        assert_eq!(file_system(mounts, Path::new("/var/tmp/a")), Some("tmpfs"));
        assert_eq!(file_system(mounts, Path::new("/var/lib")), Some("xfs"));
        assert_eq!(file_system(mounts, Path::new("/srv")), Some("ext4"));
    }
}
