//! A disk in memory that forgets what was not synced, breaks syncs, runs full, and dies in the
//! middle: for tests.

use super::{Disk, DiskFile};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) struct SimDisk {
    dir: PathBuf,
    world: Arc<Mutex<World>>,
}

/// What happens to the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Crash {
    /// The process dies; the kernel keeps what it was handed.
    Kill,
    /// Any part of what was not synced is lost, sector by sector.
    Power,
}

/// The faults to come.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    /// Dies at this many operations that change something.
    pub(crate) dies_after: Option<u64>,
    /// The sync after this many fails; what it should have written is lost without a trace.
    pub(crate) sync_fails_after: Option<u64>,
    /// Files can grow to this many bytes together.
    pub(crate) capacity: Option<u64>,
}

struct World {
    names: BTreeMap<String, Inode>,
    durable_names: BTreeMap<String, Inode>,
    name_changes: Vec<NameChange>,
    rng: fastrand::Rng,
    sector: usize,
    faults: Faults,
    dead: bool,
    operations: u64,
}

type Inode = Arc<Mutex<Content>>;

#[derive(Clone, Default)]
struct Content {
    cached: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
}

#[derive(Clone)]
enum NameChange {
    Create(String, Inode),
    Rename(String, String),
    Remove(String),
}

struct SimFile {
    world: Arc<Mutex<World>>,
    inode: Inode,
}

impl SimDisk {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let sector = [64, 512, 4096][rng.usize(..3)];
        let world = World {
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            name_changes: Vec::new(),
            rng,
            sector,
            faults: Faults::default(),
            dead: false,
            operations: 0,
        };
        SimDisk { dir: PathBuf::from("/sim"), world: Arc::new(Mutex::new(world)) }
    }

    pub(crate) fn inject(&self, faults: Faults) {
        self.world().faults = faults;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.world().dead
    }

    /// The disk as the next start finds it. Handles of this one stay dead.
    pub(crate) fn after(&self, crash: Crash) -> SimDisk {
        let mut world = self.world();
        world.dead = true;
        let mut next = World {
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            name_changes: Vec::new(),
            rng: world.rng.fork(),
            sector: world.sector,
            faults: Faults::default(),
            dead: false,
            operations: 0,
        };
        match crash {
            Crash::Kill => next.keep(&world),
            Crash::Power => next.lose(&mut world),
        }
        SimDisk { dir: self.dir.clone(), world: Arc::new(Mutex::new(next)) }
    }

    /// Changes a file behind everybody's back, durably.
    pub(crate) fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let world = self.world();
        let mut content = world.names[name].lock().unwrap();
        change(&mut content.cached);
        content.durable = content.cached.clone();
        content.dirty.clear();
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    fn file(&self, inode: Inode) -> Arc<dyn DiskFile> {
        Arc::new(SimFile { world: self.world.clone(), inode })
    }
}

impl World {
    /// Before each change. A dying disk takes the change or not, and then nothing more.
    fn change(&mut self) -> io::Result<()> {
        if self.dead {
            return Err(io::Error::other("the machine is off"));
        }
        self.operations += 1;
        if self.faults.dies_after.is_some_and(|n| self.operations > n) {
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

    fn bytes(&self) -> u64 {
        self.names.values().map(|i| i.lock().unwrap().cached.len() as u64).sum()
    }

    fn rename(names: &mut BTreeMap<String, Inode>, change: &NameChange) {
        match change {
            NameChange::Create(name, inode) => {
                names.insert(name.clone(), inode.clone());
            }
            NameChange::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
        }
    }

    fn keep(&mut self, old: &World) {
        let mut copies: Vec<(Inode, Inode)> = Vec::new();
        let mut copy = |inode: &Inode| match copies.iter().find(|(old, _)| Arc::ptr_eq(old, inode))
        {
            Some((_, new)) => new.clone(),
            None => {
                let new = Arc::new(Mutex::new(inode.lock().unwrap().clone()));
                copies.push((inode.clone(), new.clone()));
                new
            }
        };
        for (name, inode) in &old.names {
            self.names.insert(name.clone(), copy(inode));
        }
        for (name, inode) in &old.durable_names {
            self.durable_names.insert(name.clone(), copy(inode));
        }
        self.name_changes = old.name_changes.clone();
        for change in &mut self.name_changes {
            if let NameChange::Create(_, inode) = change {
                *inode = copy(inode);
            }
        }
    }

    fn lose(&mut self, old: &mut World) {
        // Each kind of loss is as likely as a mixture.
        let odds = [0.0, 0.1, 0.5, 0.9, 1.0][old.rng.usize(..5)];
        let mut names = old.durable_names.clone();
        for change in &old.name_changes {
            if old.rng.f64() < odds {
                World::rename(&mut names, change);
            }
        }
        for (name, inode) in names {
            let content = inode.lock().unwrap();
            let mut durable = content.durable.clone();
            for sector in &content.dirty {
                if old.rng.f64() < odds {
                    write_sector(&mut durable, &content.cached, *sector, old.sector);
                }
            }
            let content = Content { cached: durable.clone(), durable, dirty: BTreeSet::new() };
            let inode = Arc::new(Mutex::new(content));
            self.names.insert(name.clone(), inode.clone());
            self.durable_names.insert(name, inode);
        }
    }
}

fn write_sector(to: &mut Vec<u8>, from: &[u8], sector: usize, sector_bytes: usize) {
    let begin = sector * sector_bytes;
    let end = (begin + sector_bytes).min(from.len());
    if begin < end {
        if to.len() < end {
            to.resize(end, 0);
        }
        to[begin..end].copy_from_slice(&from[begin..end]);
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
        let inode = self.world().names.get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(inode))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut world = self.world();
        world.change()?;
        let inode = Inode::default();
        world.names.insert(name.into(), inode.clone());
        world.name_changes.push(NameChange::Create(name.into(), inode.clone()));
        world.survived()?;
        drop(world);
        Ok(self.file(inode))
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
        world.name_changes.clear();
        world.durable_names = world.names.clone();
        Ok(())
    }

    fn random(&self) -> io::Result<u128> {
        Ok(self.world().rng.u128(..))
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.inode.lock().unwrap().cached.len() as u64)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let content = self.inode.lock().unwrap();
        let begin = offset as usize;
        let bytes = content.cached.get(begin..begin + buf.len());
        buf.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut world = self.world.lock().unwrap();
        world.change()?;
        let end = offset as usize + buf.len();
        let grows = end.saturating_sub(self.inode.lock().unwrap().cached.len()) as u64;
        if world.faults.capacity.is_some_and(|max| grows > 0 && world.bytes() + grows > max) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut content = self.inode.lock().unwrap();
        if content.cached.len() < end {
            content.cached.resize(end, 0);
        }
        content.cached[offset as usize..end].copy_from_slice(buf);
        let sectors = offset as usize / world.sector..end.div_ceil(world.sector);
        content.dirty.extend(sectors);
        world.survived()
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut world = self.world.lock().unwrap();
        world.change()?;
        world.survived()?;
        let mut content = self.inode.lock().unwrap();
        let Content { cached, durable, dirty } = &mut *content;
        match &mut world.faults.sync_fails_after {
            Some(0) => {
                dirty.clear();
                return Err(io::Error::other("input/output error"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        for sector in std::mem::take(dirty) {
            write_sector(durable, cached, sector, world.sector);
        }
        Ok(())
    }

    fn will_need(&self, _offset: u64, _bytes: u64) {}
}
