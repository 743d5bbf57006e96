//! The few file operations the log is made of.
//!
//! Two implementations: the file system ([`RealDisk`]), and one in memory that forgets what was
//! not synced (simulations, tests). Nothing above this module names a system call.

#[cfg(feature = "sim")]
pub mod sim;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One directory. Names are plain file names in it.
pub(crate) trait Disk: Send + Sync {
    fn dir(&self) -> &Path;
    fn list(&self) -> io::Result<Vec<String>>;
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates the file, or empties it.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Replaces `to` if it exists.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync_dir(&self) -> io::Result<()>;
    fn random(&self) -> io::Result<u128>;
    /// Since 1970.
    fn now(&self) -> Duration;

    /// An id for a new member.
    fn member_id(&self) -> io::Result<u128> {
        self.random()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }
}

pub(crate) trait DiskFile: Send + Sync {
    fn len(&self) -> io::Result<u64>;
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the file this long, with zeros, and takes the room for it. A file system that cannot
    /// says [`io::ErrorKind::Unsupported`].
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Writes zeros where room is taken, at most [`ZEROS_MAX`], at a place that is a multiple of it: so that a later
    /// sync, of this file or another, has little left to do for them. Goes slowly: others use the disk, too.
    fn write_zeros(&self, offset: u64, bytes: usize) -> io::Result<()>;
    /// Makes the contents (and the length) durable.
    fn sync_data(&self) -> io::Result<()>;
    /// A hint that this range is read soon.
    fn will_need(&self, offset: u64, bytes: u64);
}

/// What [`DiskFile::write_zeros`] writes at once.
pub(crate) const ZEROS_MAX: usize = 256 << 10;

/// As it has to be, to be written past the kernel's memory.
#[repr(align(4096))]
struct Aligned([u8; ZEROS_MAX]);

pub(crate) struct RealDisk {
    dir: PathBuf,
}

impl RealDisk {
    pub(crate) fn new(dir: &Path) -> Self {
        RealDisk { dir: dir.to_path_buf() }
    }
}

impl Disk for RealDisk {
    fn dir(&self) -> &Path {
        &self.dir
    }

    fn list(&self) -> io::Result<Vec<String>> {
        fs::read_dir(&self.dir)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(self.path(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.path(name);
        let mut options = OpenOptions::new();
        // Its owner's alone, whatever the directory is.
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        Ok(Arc::new(options.open(path)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    fn random(&self) -> io::Result<u128> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::from)?;
        Ok(u128::from_le_bytes(bytes))
    }

    fn now(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    /// Random, but for the first 32 bits: tenths of a second (they come round every 13 years).
    /// Servers number the members in the order of their ids, and derive `auto_increment_offset`
    /// from it: so the one that is added later counts last, and the others keep their numbers.
    fn member_id(&self) -> io::Result<u128> {
        let tenths = (self.now().as_millis() / 100) as u32;
        Ok(u128::from(tenths) << 96 | self.random()? >> 32)
    }
}

impl DiskFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buf, offset)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, buf, offset)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        use rustix::fs::{fallocate, FallocateFlags};
        Ok(fallocate(self, FallocateFlags::empty(), 0, len)?)
    }

    /// Past the kernel's memory, where the file system can: written there they would all be left to one sync.
    fn write_zeros(&self, offset: u64, bytes: usize) -> io::Result<()> {
        use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
        static ZEROS: Aligned = Aligned([0; ZEROS_MAX]);
        let zeros = &ZEROS.0[..bytes];
        let begun = Instant::now();
        let flags = fcntl_getfl(self)?;
        let mut done = fcntl_setfl(self, flags | OFlags::DIRECT).map_err(io::Error::from);
        if done.is_ok() {
            done = FileExt::write_all_at(self, zeros, offset);
            fcntl_setfl(self, flags)?;
        }
        match done {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                FileExt::write_all_at(self, zeros, offset)?;
                File::sync_data(self)?;
            }
            done => done?,
        }
        // As long again is left to the log.
        thread::sleep(begun.elapsed());
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        // Only a hint: a file system that does not know it reads as well without.
        let bytes = std::num::NonZeroU64::new(bytes);
        let _ = rustix::fs::fadvise(self, offset, bytes, rustix::fs::Advice::WillNeed);
    }
}
