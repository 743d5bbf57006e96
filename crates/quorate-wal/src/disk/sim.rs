//! A disk in memory that does what disks do, all of it from a seed: it forgets what was not synced
//! (any part of it, in any order), gives errors, runs full, rots, dies in the middle of an
//! operation, and can be set back to an older image.

mod content;

use super::{Disk, DiskFile};
use content::Content;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A handle: clones are of the same disk.
#[derive(Clone)]
pub struct SimDisk {
    dir: PathBuf,
    world: Arc<Mutex<World>>,
}

/// What happens to the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// The process dies; the kernel keeps what it was handed.
    Kill,
    /// Any part of what was not synced is lost, sector by sector and name by name.
    Power,
}

/// The faults to come, counted from [`SimDisk::inject`] on.
#[derive(Clone, Default, Debug)]
pub struct Faults {
    /// Dies at the operation after so many that change something, before or after it took effect.
    pub dies_after: Option<u64>,
    /// The same, but whoever carries it out panics, as if by a bug.
    pub panics_after: Option<u64>,
    /// The sync after this many fails; what it should have written is lost without a trace.
    pub sync_fails_after: Option<u64>,
    /// Files can grow to this many bytes together.
    pub capacity: Option<u64>,
    /// Overwriting needs room, too, as on a file system that copies on write.
    pub copies_on_write: bool,
    /// Whatever reads, writes or syncs gives an error.
    pub broken: bool,
    /// Only syncs of the directory do.
    pub directory_broken: bool,
    /// Syncs of the directory find no room.
    pub directory_full: bool,
}

/// What was durable at some time.
#[derive(Clone)]
pub struct Image {
    dir: PathBuf,
    sector: usize,
    files: BTreeMap<String, Content>,
}

struct World {
    files: Vec<Content>,
    names: BTreeMap<String, FileId>,
    durable_names: BTreeMap<String, FileId>,
    name_changes: Vec<NameChange>,
    rng: fastrand::Rng,
    sector: usize,
    faults: Faults,
    dead: bool,
    operations: u64,
    /// When the faults were injected.
    begun: u64,
    now: Duration,
}

/// Place in `World::files`.
type FileId = usize;

#[derive(Clone)]
enum NameChange {
    Create(String, FileId),
    Rename(String, String),
    Remove(String),
}

struct SimFile {
    world: Arc<Mutex<World>>,
    id: FileId,
}

/// Some time in 2025; [`SimDisk::set_time`] moves it.
const BEGIN: Duration = Duration::from_secs(1_750_000_000);

impl SimDisk {
    /// An empty one, with sectors of 64, 512 or 4096 bytes.
    pub fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let sector = [64, 512, 4096][rng.usize(..3)];
        Self::of(PathBuf::from("/sim"), World::new(rng, sector, BEGIN))
    }

    fn of(dir: PathBuf, world: World) -> Self {
        SimDisk { dir, world: Arc::new(Mutex::new(world)) }
    }

    /// Replaces the faults that were to come.
    pub fn inject(&self, faults: Faults) {
        let mut world = self.world();
        world.begun = world.operations;
        world.faults = faults;
    }

    /// It died as injected, or [`Self::crash`] was called. Nothing can be done with it.
    pub fn is_dead(&self) -> bool {
        self.world().dead
    }

    /// Operations so far that changed something.
    pub fn operations(&self) -> u64 {
        self.world().operations
    }

    /// The disk as the next start finds it, without faults. Handles of this one stay dead.
    pub fn crash(&self, crash: Crash) -> SimDisk {
        let mut world = self.world();
        world.dead = true;
        let next = match crash {
            Crash::Kill => world.kept(),
            Crash::Power => world.lose(),
        };
        Self::of(self.dir.clone(), next)
    }

    /// What is durable now. Changes nothing.
    pub fn image(&self) -> Image {
        let world = self.world();
        let durable = |id: &FileId| world.files[*id].after_power_cut(world.sector, || false);
        let files = world.durable_names.iter().map(|(name, id)| (name.clone(), durable(id)));
        Image { dir: self.dir.clone(), sector: world.sector, files: files.collect() }
    }

    /// A disk with that on it: a machine that was set back.
    pub fn restore(image: &Image, seed: u64) -> SimDisk {
        let mut world = World::new(fastrand::Rng::with_seed(seed), image.sector, BEGIN);
        for (name, content) in &image.files {
            world.names.insert(name.clone(), world.files.len());
            world.files.push(content.clone());
        }
        world.durable_names = world.names.clone();
        Self::of(image.dir.clone(), world)
    }

    /// Names and lengths in bytes.
    pub fn files(&self) -> Vec<(String, u64)> {
        let world = self.world();
        world.names.iter().map(|(name, id)| (name.clone(), world.files[*id].len())).collect()
    }

    /// A sector (of 512 bytes) of a file reads as garbage from now on. False: there is none.
    pub fn rot(&self, name: &str, sector: u64) -> bool {
        let mut world = self.world();
        let garbage = world.rng.u8(1..);
        world.sector_of(name, sector).map(|content| content.rot(sector, garbage)).is_some()
    }

    /// A sector (of 512 bytes) gives an error when it is read, until it is written.
    pub fn set_unreadable(&self, name: &str, sector: u64) -> bool {
        let mut world = self.world();
        world.sector_of(name, sector).map(|content| content.set_unreadable(sector)).is_some()
    }

    /// What the clock says, since 1970.
    pub fn set_time(&self, now: Duration) {
        self.world().now = now;
    }

    /// Changes a file behind everybody's back, durably.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut world = self.world();
        let id = world.names[name];
        let mut bytes = world.files[id].to_vec();
        change(&mut bytes);
        world.files[id].replace(&bytes);
    }

    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    fn file(&self, id: FileId) -> Arc<dyn DiskFile> {
        Arc::new(SimFile { world: self.world.clone(), id })
    }
}

/// A panic that was injected leaves nothing half done here.
fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken() -> io::Error {
    io::Error::other("input/output error")
}

impl World {
    fn new(rng: fastrand::Rng, sector: usize, now: Duration) -> World {
        World {
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            name_changes: Vec::new(),
            rng,
            sector,
            faults: Faults::default(),
            dead: false,
            operations: 0,
            begun: 0,
            now,
        }
    }

    /// Before each change. A dying disk takes the change or not, and then nothing more.
    fn change(&mut self) -> io::Result<()> {
        if self.dead {
            return Err(io::Error::other("the machine is off"));
        }
        self.operations += 1;
        let since = self.operations - self.begun;
        if self.faults.panics_after.is_some_and(|n| since > n) {
            panic!("an injected bug");
        }
        if self.faults.dies_after.is_some_and(|n| since > n) {
            self.dead = true;
            if self.rng.bool() {
                return Err(io::Error::other("the machine went off"));
            }
        }
        Ok(())
    }

    fn survived(&self) -> io::Result<()> {
        if self.dead {
            return Err(io::Error::other("the machine went off"));
        }
        Ok(())
    }

    /// Whether files may grow by so much.
    fn room(&self, grows: u64) -> io::Result<()> {
        let Some(capacity) = self.faults.capacity.filter(|_| grows > 0) else { return Ok(()) };
        let used: u64 = self.names.values().map(|id| self.files[*id].len()).sum();
        if used + grows > capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn sector_of(&mut self, name: &str, sector: u64) -> Option<&mut Content> {
        let content = &mut self.files[*self.names.get(name)?];
        (sector * content::BAD_BYTES < content.len()).then_some(content)
    }

    fn rename(names: &mut BTreeMap<String, FileId>, change: &NameChange) {
        match change {
            NameChange::Create(name, id) => {
                names.insert(name.clone(), *id);
            }
            NameChange::Rename(from, to) => {
                if let Some(id) = names.remove(from) {
                    names.insert(to.clone(), id);
                }
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
        }
    }

    fn kept(&mut self) -> World {
        let mut next = World::new(self.rng.fork(), self.sector, self.now);
        next.files = self.files.clone();
        next.names = self.names.clone();
        next.durable_names = self.durable_names.clone();
        next.name_changes = self.name_changes.clone();
        next
    }

    fn lose(&mut self) -> World {
        let mut next = World::new(self.rng.fork(), self.sector, self.now);
        // Each kind of loss is as likely as a mixture.
        let odds = [0.0, 0.1, 0.5, 0.9, 1.0][self.rng.usize(..5)];
        let rng = &mut self.rng;
        let mut names = self.durable_names.clone();
        for change in &self.name_changes {
            if rng.f64() < odds {
                World::rename(&mut names, change);
            }
        }
        for (name, id) in names {
            let left = self.files[id].after_power_cut(self.sector, || rng.f64() < odds);
            next.names.insert(name, next.files.len());
            next.files.push(left);
        }
        next.durable_names = next.names.clone();
        next
    }
}

impl Disk for SimDisk {
    fn dir(&self) -> &Path {
        &self.dir
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.world().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let id = self.world().names.get(name).copied().ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(id))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut world = self.world();
        world.change()?;
        let id = world.files.len();
        world.files.push(Content::default());
        world.names.insert(name.into(), id);
        world.name_changes.push(NameChange::Create(name.into(), id));
        world.survived()?;
        drop(world);
        Ok(self.file(id))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.world();
        world.change()?;
        assert!(world.names.contains_key(from), "{from} exists");
        let change = NameChange::Rename(from.into(), to.into());
        World::rename(&mut world.names, &change);
        world.name_changes.push(change);
        world.survived()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.world();
        world.change()?;
        world.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        world.name_changes.push(NameChange::Remove(name.into()));
        world.survived()
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut world = self.world();
        world.change()?;
        world.survived()?;
        if world.faults.broken || world.faults.directory_broken {
            return Err(broken());
        }
        if world.faults.directory_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if !std::mem::take(&mut world.name_changes).is_empty() {
            world.durable_names = world.names.clone();
        }
        Ok(())
    }

    fn random(&self) -> io::Result<u128> {
        Ok(self.world().rng.u128(..))
    }

    fn now(&self) -> Duration {
        self.world().now
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.world).files[self.id].len())
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let world = lock(&self.world);
        if world.faults.broken {
            return Err(broken());
        }
        world.files[self.id].read(buf, offset)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut world = lock(&self.world);
        world.change()?;
        if world.faults.broken {
            return Err(broken());
        }
        let bytes = buf.len() as u64;
        let grows = (offset + bytes).saturating_sub(world.files[self.id].len());
        world.room(if world.faults.copies_on_write { bytes } else { grows })?;
        let sector = world.sector;
        world.files[self.id].write(buf, offset, sector);
        world.survived()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut world = lock(&self.world);
        world.change()?;
        world.room(len.saturating_sub(world.files[self.id].len()))?;
        world.files[self.id].extend(len);
        world.survived()
    }

    fn write_zeros(&self, offset: u64, bytes: usize) -> io::Result<()> {
        DiskFile::write_all_at(self, &vec![0; bytes], offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut world = lock(&self.world);
        world.change()?;
        world.survived()?;
        let fails = world.faults.broken || world.faults.sync_fails_after == Some(0);
        if let Some(left) = &mut world.faults.sync_fails_after {
            *left = left.saturating_sub(1);
        }
        let content = &mut world.files[self.id];
        if fails {
            content.forget_dirty();
            return Err(broken());
        }
        content.sync();
        Ok(())
    }

    fn will_need(&self, _offset: u64, _bytes: u64) {}
}
