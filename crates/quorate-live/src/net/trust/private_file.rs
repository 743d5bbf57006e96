//! A file for its owner alone, in the directory of the log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub(super) const MODE: u32 = 0o600;

/// Makes the file, or puts another one in its place: whole or not at all, and durably.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    // What a crash left there may have another mode.
    match fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(new, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}
