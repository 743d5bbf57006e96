//! Making the files of segments: new ones that take their room, and used ones that begin a new life.

use crate::disk::{Disk, DiskFile, ZEROS_MAX};
use crate::error::{IoContext, WalError};
use crate::seal::DiskKeys;
use crate::segment::{file_name, Segment, SegmentHeader};
use quorate_consensus::MemberId;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

pub(crate) struct SegmentFiles {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) member: MemberId,
    pub(crate) keys: DiskKeys,
}

impl SegmentFiles {
    /// A full-sized file, new or from the stock, gets a new header, and then its name. If this fails, `spare` says
    /// whether there is still one under that name; of a new file nothing is left but what already is the segment's.
    pub(crate) fn make(
        &self,
        sequence: u64,
        size: u64,
        spare: &mut Option<String>,
        fill: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
    ) -> Result<Arc<Segment>, WalError> {
        let segment = match spare.as_deref() {
            Some(name) => {
                let file = self.disk.open(name).doing("open", &self.disk.path(name))?;
                self.begin(sequence, size, name, file)?
            }
            None => {
                let name = self.new_name()?;
                self.new_file(&name, |file| {
                    fill(&*file).doing("write", &self.disk.path(&name))?;
                    self.begin(sequence, size, &name, file)
                })?
            }
        };
        *spare = None;
        self.disk.sync_dir().doing("sync", self.disk.dir())?;
        Ok(Arc::new(segment))
    }

    /// The file called `name` gets a header that is on disk, and then the name of its segment.
    fn begin(
        &self,
        sequence: u64,
        size: u64,
        name: &str,
        file: Arc<dyn DiskFile>,
    ) -> Result<Segment, WalError> {
        let path = self.disk.path(name);
        let (nonce, member) = (self.number()?, self.member);
        let mut header = SegmentHeader { sequence, size, nonce, member, envelope: None };
        let key = header.seal(&self.keys, &*self.disk);
        let key = key.doing("draw random numbers for", &path)?;
        file.write_all_at(&header.encode(), 0).doing("write", &path)?;
        file.sync_data().doing("sync", &path)?;
        self.disk.rename(name, &file_name(sequence)).doing("rename", &path)?;
        Ok(Segment::new(&*self.disk, header, key, file))
    }

    /// Never used before. Of changes of names that are not durable yet a power cut may keep any: of a name that
    /// was used twice, that it once was another file's, and got its present one.
    fn new_name(&self) -> Result<String, WalError> {
        Ok(format!("{NEW_PREFIX}{:016x}", self.number()?))
    }

    fn number(&self) -> Result<u64, WalError> {
        let drawn = self.disk.random().doing("draw a random number for", self.disk.dir())?;
        Ok(drawn as u64)
    }

    /// Creates a file, of which `finish` makes something under another name.
    fn new_file<T>(
        &self,
        name: &str,
        finish: impl FnOnce(Arc<dyn DiskFile>) -> Result<T, WalError>,
    ) -> Result<T, WalError> {
        let file = self.disk.create(name).doing("create", &self.disk.path(name))?;
        finish(file).inspect_err(|_| {
            // Half made it would only take space, and be one more at each try; the error is what counts.
            let _ = self.disk.remove(name);
        })
    }

    pub(crate) fn new_spare(&self, bytes: u64) -> Result<String, WalError> {
        let (name, spare) = (self.new_name()?, spare_name(self.number()?));
        let path = self.disk.path(&name);
        self.new_file(&name, |file| {
            allocate(&*file, bytes).doing("write", &path)?;
            file.sync_data().doing("sync", &path)?;
            self.disk.rename(&name, &spare).doing("rename", &path)
        })?;
        Ok(spare)
    }
}

/// How a fill is to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fill {
    Steadily,
    /// The log waits for the file.
    AtOnce,
    /// Nobody wants it any more.
    GiveUp,
}

/// Fills a file with zeros. If there is not enough room, that is known before any of it is filled.
///
/// Zeros only make it fast: what a file has taken room for, and what nobody has written to yet, costs the log's
/// syncs an update of the file system each. It reads as zeros all the same, and of a used file the log
/// tells its own records from whatever else is there ([`crate::record`]). So if the log waits, the rest is left.
pub(crate) fn fill(file: &dyn DiskFile, size: u64, how: impl Fn() -> Fill) -> io::Result<()> {
    match file.allocate(size) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => zero_fill(file, size, how),
        Err(error) => Err(error),
        Ok(()) => {
            for at in (0..size).step_by(ZEROS_MAX) {
                match how() {
                    Fill::Steadily => {
                        file.write_zeros(at, (size - at).min(ZEROS_MAX as u64) as usize)?;
                    }
                    Fill::AtOnce => break,
                    Fill::GiveUp => return Err(io::ErrorKind::Interrupted.into()),
                }
            }
            Ok(())
        }
    }
}

/// Takes the room for a file at once, where the file system can.
pub(crate) fn allocate(file: &dyn DiskFile, size: u64) -> io::Result<()> {
    match file.allocate(size) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            zero_fill(file, size, || Fill::AtOnce)
        }
        done => done,
    }
}

/// Where room cannot be taken in another way: all of it. Each step is synced, because the kernel would else put off
/// writing, and the log's next sync might have to wait for the whole of it.
fn zero_fill(file: &dyn DiskFile, size: u64, how: impl Fn() -> Fill) -> io::Result<()> {
    static ZEROS: [u8; ZEROS_MAX] = [0; ZEROS_MAX];
    for at in (0..size).step_by(ZEROS_MAX) {
        if how() == Fill::GiveUp {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let step = (size - at).min(ZEROS_MAX as u64) as usize;
        file.write_all_at(&ZEROS[..step], at)?;
        file.sync_data()?;
    }
    Ok(())
}

pub(crate) fn spare_name(number: u64) -> String {
    format!("{SPARE_PREFIX}{number:016x}")
}

/// Makes room on the disk of a log whose process is about to end: one of its prepared segments less. False: there is
/// none.
pub fn give_up_prepared(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_spare_name) {
            fs::remove_file(entry.path())?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// A segment file without content, to be used again.
pub(crate) fn is_spare_name(name: &str) -> bool {
    name.starts_with(SPARE_PREFIX)
}

/// That, or a segment whose making was interrupted.
pub(crate) fn is_leftover_name(name: &str) -> bool {
    is_spare_name(name) || name.starts_with(NEW_PREFIX)
}

const SPARE_PREFIX: &str = "spare-";
const NEW_PREFIX: &str = "new-";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use std::cell::Cell;

    const SIZE: u64 = 3 * ZEROS_MAX as u64 + 4096;

    /// On the file system of the tests, after so many steps.
    fn filled(steps: usize, then: Fill) -> (io::Result<()>, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(dir.path());
        let file = disk.create("file").unwrap();
        let left = Cell::new(steps);
        let done = fill(&*file, SIZE, || match left.replace(left.get().saturating_sub(1)) {
            0 => then,
            _ => Fill::Steadily,
        });
        // As the log writes it then.
        file.write_all_at(&[7; 100], 4096).unwrap();
        file.sync_data().unwrap();
        (done, std::fs::read(disk.path("file")).unwrap())
    }

    #[test]
    fn a_file_is_whole_and_all_zeros_however_long_its_filling_went_on() {
        for steps in [0, 1, 2, 100] {
            let (done, mut found) = filled(steps, Fill::AtOnce);
            done.unwrap();
            assert_eq!(found.len() as u64, SIZE);
            assert!(found.drain(4096..4196).all(|byte| byte == 7));
            assert!(found.iter().all(|byte| *byte == 0));
        }
        assert!(filled(1, Fill::GiveUp).0.is_err());
    }
}
