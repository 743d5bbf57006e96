//! Files for their owners alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{fchown, MetadataExt, OpenOptionsExt};
use std::path::Path;

pub(crate) const MODE: u32 = 0o600;

/// Makes the file, or puts another one in its place: whole or not at all, and durably.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    put(path, content, MODE, None)
}

/// Puts another one in the place of a file that is there, of the same owner and mode.
pub(crate) fn replace_alike(path: &Path, content: &[u8]) -> io::Result<()> {
    let there = fs::metadata(path)?;
    put(path, content, there.mode() & 0o777, Some((there.uid(), there.gid())))
}

fn put(path: &Path, content: &[u8], mode: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    // What a crash left there may have another mode.
    match fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(new)?;
    let (user, group) = owner.unzip();
    let done = fchown(&file, user, group).and_then(|()| {
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(new, path)
    });
    if done.is_err() {
        // Under its own name the file is as it was; the error is what counts.
        let _left = fs::remove_file(new);
    }
    done?;
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
