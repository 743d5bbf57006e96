//! Reading a server's error log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// At most this much of a log's end is read.
const READ_BYTES_MAX: u64 = 256 * 1024;
const ERRORS_MAX: usize = 8;

pub fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |meta| meta.len())
}

/// The last error lines that were written after `offset`; the last lines of any kind if the
/// server said nothing of errors.
pub fn errors_since(path: &Path, offset: u64) -> Vec<String> {
    let lines = read(path, offset);
    let bad = |line: &&String| line.contains("[ERROR]") || line.contains("[FATAL]");
    let errors: Vec<String> = lines.iter().filter(bad).cloned().collect();
    let chosen = if errors.is_empty() { lines } else { errors };
    last(chosen, ERRORS_MAX)
}

/// Whether a line that was written after `offset` contains `part`.
pub fn says_since(path: &Path, offset: u64, part: &str) -> bool {
    read(path, offset).iter().any(|line| line.contains(part))
}

/// The last `count` lines.
pub fn tail(path: &Path, count: usize) -> Vec<String> {
    last(read(path, 0), count)
}

fn read(path: &Path, offset: u64) -> Vec<String> {
    let start = offset.max(length(path).saturating_sub(READ_BYTES_MAX));
    let mut bytes = Vec::new();
    // A log that cannot be read has nothing to tell; the caller reports what led it here.
    if let Ok(mut file) = File::open(path) {
        if file.seek(SeekFrom::Start(start)).is_ok() {
            let _ = file.take(READ_BYTES_MAX).read_to_end(&mut bytes);
        }
    }
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}

fn last(mut lines: Vec<String>, count: usize) -> Vec<String> {
    lines.split_off(lines.len().saturating_sub(count))
}
