//! Making the files of segments: new ones that take their room, and used ones that begin a new life.

use crate::disk::{Disk, DiskFile};
use crate::error::{IoContext, WalError};
use crate::seal::DiskKeys;
use crate::segment::{file_name, Segment, SegmentHeader};
use quorate_consensus::MemberId;
use std::io;
use std::sync::Arc;

/// Zero-filling goes in steps of this, each synced, so that the log's own syncs do not queue
/// behind the whole of it.
const ZERO_STEP: usize = 256 << 10;

pub(crate) struct SegmentFiles {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) member: MemberId,
    pub(crate) keys: DiskKeys,
}

impl SegmentFiles {
    /// A full-sized file, new or from the stock, gets a new header, and then its name.
    pub(crate) fn make(
        &self,
        sequence: u64,
        size: u64,
        spare: Option<String>,
        fill: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
    ) -> Result<Arc<Segment>, WalError> {
        let name = spare.clone().map_or_else(|| self.new_name(), Ok)?;
        let path = self.disk.path(&name);
        let file = match spare {
            Some(_) => self.disk.open(&name).doing("open", &path)?,
            None => self.new_file(&name, fill)?,
        };
        let nonce = self.number()?;
        let member = self.member;
        let mut header = SegmentHeader { sequence, size, nonce, member, envelope: None };
        let key = header.seal(&self.keys, &*self.disk);
        let key = key.doing("draw random numbers for", &path)?;
        file.write_all_at(&header.encode(), 0).doing("write", &path)?;
        file.sync_data().doing("sync", &path)?;
        self.disk.rename(&name, &file_name(sequence)).doing("rename", &path)?;
        self.disk.sync_dir().doing("sync", self.disk.dir())?;
        Ok(Arc::new(Segment::new(&*self.disk, header, key, file)))
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

    fn new_file(
        &self,
        name: &str,
        fill: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
    ) -> Result<Arc<dyn DiskFile>, WalError> {
        let path = self.disk.path(name);
        let file = self.disk.create(name).doing("create", &path)?;
        if let Err(error) = fill(&*file) {
            // What was filled so far would only take space; the error is what counts.
            let _ = self.disk.remove(name);
            return Err(error).doing("write", &path);
        }
        Ok(file)
    }

    pub(crate) fn new_spare(&self, bytes: u64) -> Result<String, WalError> {
        let (name, spare) = (self.new_name()?, spare_name(self.number()?));
        let file = self.new_file(&name, |file| allocate(file, bytes))?;
        file.sync_data().doing("sync", &self.disk.path(&name))?;
        self.disk.rename(&name, &spare).doing("rename", &self.disk.path(&name))?;
        Ok(spare)
    }
}

/// Fills a file with zeros. If there is not enough room, that is known before any of it is filled.
pub(crate) fn fill(file: &dyn DiskFile, size: u64, give_up: impl Fn() -> bool) -> io::Result<()> {
    match file.allocate(size) {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
        _ => zero_fill(file, size, give_up),
    }
}

/// Takes the room for a file at once, where the file system can.
pub(crate) fn allocate(file: &dyn DiskFile, size: u64) -> io::Result<()> {
    match file.allocate(size) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => zero_fill(file, size, || false),
        done => done,
    }
}

fn zero_fill(file: &dyn DiskFile, size: u64, give_up: impl Fn() -> bool) -> io::Result<()> {
    static ZEROS: [u8; ZERO_STEP] = [0; ZERO_STEP];
    let mut at = 0;
    while at < size {
        if give_up() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let step = (size - at).min(ZERO_STEP as u64);
        file.write_all_at(&ZEROS[..step as usize], at)?;
        file.sync_data()?;
        at += step;
    }
    Ok(())
}

pub(crate) fn spare_name(number: u64) -> String {
    format!("{SPARE_PREFIX}{number:016x}")
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
