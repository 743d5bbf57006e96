//! What is on the disk, and what of it is durable. No FUSE in here.
//!
//! Invariant: a file's content exists as long as a name (now, or after a power cut) or the kernel
//! refers to it.

use super::content::{Content, PAGE};
use super::names::{Ino, Kind, Names, Node, ROOT};
use super::{Loss, Lost};
use fuser::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::time::SystemTime;

pub(super) struct Store {
    pub names: Names,
    durable: Names,
    names_changed: bool,
    files: HashMap<Ino, File>,
    /// Nodes without a name now that may have one after a power cut, or that are open.
    nameless: Vec<Ino>,
    next: Ino,
    capacity_pages: u64,
    used_pages: u64,
    /// Whatever needs space fails.
    pub full: bool,
}

pub(super) struct File {
    pub content: Content,
    pub modified: SystemTime,
    /// The kernel's references.
    lookups: u64,
}

impl Store {
    pub fn new(capacity: u64) -> Store {
        let mut store = Store {
            names: Names::new(),
            durable: Names::new(),
            names_changed: false,
            files: HashMap::new(),
            nameless: Vec::new(),
            next: ROOT + 1,
            capacity_pages: capacity / PAGE as u64,
            used_pages: 0,
            full: false,
        };
        store.files.insert(ROOT, File::new());
        store
    }

    pub fn file(&self, ino: Ino) -> Result<&File, Errno> {
        self.files.get(&ino).ok_or(Errno::ENOENT)
    }

    pub fn file_mut(&mut self, ino: Ino) -> Result<&mut File, Errno> {
        self.files.get_mut(&ino).ok_or(Errno::ENOENT)
    }

    pub fn capacity_pages(&self) -> u64 {
        self.capacity_pages
    }

    pub fn used_pages(&self) -> u64 {
        self.used_pages
    }

    /// Makes a node and its name.
    pub fn create(&mut self, parent: Ino, name: &OsStr, node: Node) -> Result<Ino, Errno> {
        self.require_space(0)?;
        let ino = self.next;
        self.names.add(parent, name, ino, node)?;
        self.next += 1;
        self.files.insert(ino, File::new());
        self.changed(parent);
        Ok(ino)
    }

    pub fn link(&mut self, ino: Ino, parent: Ino, name: &OsStr) -> Result<(), Errno> {
        self.names.link(ino, parent, name)?;
        self.changed(parent);
        Ok(())
    }

    pub fn remove(&mut self, parent: Ino, name: &OsStr, directory: bool) -> Result<(), Errno> {
        let ino = self.names.remove(parent, name, directory)?;
        self.changed(parent);
        self.unnamed(ino);
        Ok(())
    }

    pub fn rename(
        &mut self,
        from: (Ino, &OsStr),
        to: (Ino, &OsStr),
        replace: bool,
    ) -> Result<(), Errno> {
        let replaced = self.names.rename(from, to, replace)?;
        self.changed(from.0);
        self.changed(to.0);
        if let Some(ino) = replaced {
            self.unnamed(ino);
        }
        Ok(())
    }

    pub fn set_owner(
        &mut self,
        ino: Ino,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> Result<(), Errno> {
        let node = self.names.change(ino)?;
        node.mode = mode.map_or(node.mode, |mode| (mode & 0o7777) as u16);
        node.uid = uid.unwrap_or(node.uid);
        node.gid = gid.unwrap_or(node.gid);
        self.names_changed = true;
        Ok(())
    }

    pub fn write(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.with_space(ino, offset..offset + bytes.len() as u64, |content, _| {
            content.write(offset, bytes);
        })
    }

    pub fn allocate(&mut self, ino: Ino, range: Range<u64>, grow: bool) -> Result<(), Errno> {
        self.with_space(ino, range, |content, range| content.allocate(range, grow))
    }

    /// Makes `range` zeros and allocates it; changes nothing if there is no room.
    pub fn zero(&mut self, ino: Ino, range: Range<u64>, grow: bool) -> Result<(), Errno> {
        self.with_space(ino, range, |content, range| {
            content.punch(range);
            content.allocate(range, grow);
        })
    }

    pub fn punch(&mut self, ino: Ino, range: Range<u64>) -> Result<(), Errno> {
        self.change(ino, |content| content.punch(&range))
    }

    pub fn truncate(&mut self, ino: Ino, size: u64) -> Result<(), Errno> {
        self.change(ino, |content| content.truncate(size))
    }

    /// Makes a file durable, and with it all names.
    pub fn sync(&mut self, ino: Ino) -> Result<(), Errno> {
        self.file_mut(ino)?.content.sync();
        self.commit_names();
        Ok(())
    }

    pub fn fail_sync(&mut self, ino: Ino) -> Result<(), Errno> {
        self.file_mut(ino)?.content.fail_sync();
        Ok(())
    }

    pub fn sync_all(&mut self) {
        for file in self.files.values_mut() {
            file.content.sync();
        }
        self.commit_names();
    }

    /// The kernel has got a reference.
    pub fn refer(&mut self, ino: Ino) {
        if let Some(file) = self.files.get_mut(&ino) {
            file.lookups += 1;
        }
    }

    /// The kernel has dropped references.
    pub fn forget(&mut self, ino: Ino, count: u64) {
        if let Some(file) = self.files.get_mut(&ino) {
            file.lookups = file.lookups.saturating_sub(count);
            if file.lookups == 0 {
                self.drop_unused();
            }
        }
    }

    pub fn cut(&mut self, loss: Loss) -> Lost {
        let mut lost = Lost { names: self.names_changed, ..Lost::default() };
        for file in self.files.values().filter(|file| file.content.is_dirty()) {
            lost.files += 1;
            lost.bytes += file.content.dirty_bytes();
        }
        let mut random = fastrand::Rng::with_seed(match loss {
            Loss::All => 0,
            Loss::TornLast { seed } | Loss::Scattered { seed } => seed,
        });
        if matches!(loss, Loss::Scattered { .. }) && random.bool() {
            self.commit_names();
            lost.names = false;
        }
        self.names = self.durable.clone();
        self.names.drop_nameless();
        self.durable = self.names.clone();
        self.names_changed = false;
        self.nameless.clear();
        self.files.retain(|ino, _| self.names.contains(*ino));
        // In an order that the seed alone decides.
        let mut files: Vec<(&Ino, &mut File)> = self.files.iter_mut().collect();
        files.sort_by_key(|(ino, _)| **ino);
        for (_, file) in files {
            file.lookups = 0;
            file.content.cut(loss, &mut random);
        }
        self.used_pages = self.files.values().map(|file| file.content.pages()).sum();
        lost
    }

    /// Makes all names durable.
    pub fn commit_names(&mut self) {
        if std::mem::take(&mut self.names_changed) {
            self.durable = self.names.clone();
            self.drop_unused();
        }
    }

    /// Drops content that nothing refers to any more.
    fn drop_unused(&mut self) {
        let Store { names, durable, files, nameless, used_pages, .. } = self;
        nameless.retain(|ino| {
            let open = files.get(ino).is_some_and(|file| file.lookups > 0);
            let named = durable.node(*ino).is_ok_and(|node| node.links > 0);
            if !open && !named {
                *used_pages -= files.remove(ino).map_or(0, |file| file.content.pages());
            }
            if !open {
                names.forget(*ino);
            }
            open || named
        });
    }

    fn unnamed(&mut self, ino: Ino) {
        if self.names.node(ino).is_ok_and(|node| node.links == 0) {
            self.nameless.push(ino);
            self.drop_unused();
        }
    }

    fn changed(&mut self, directory: Ino) {
        self.names_changed = true;
        if let Some(directory) = self.files.get_mut(&directory) {
            directory.modified = SystemTime::now();
        }
    }

    fn with_space(
        &mut self,
        ino: Ino,
        range: Range<u64>,
        change: impl FnOnce(&mut Content, &Range<u64>),
    ) -> Result<(), Errno> {
        let missing = self.file(ino)?.content.missing(&range);
        if missing > 0 {
            self.require_space(missing)?;
        }
        self.change(ino, |content| change(content, &range))
    }

    fn require_space(&self, pages: u64) -> Result<(), Errno> {
        if self.full || self.used_pages + pages > self.capacity_pages {
            return Err(Errno::ENOSPC);
        }
        Ok(())
    }

    fn change(&mut self, ino: Ino, change: impl FnOnce(&mut Content)) -> Result<(), Errno> {
        if !matches!(self.names.node(ino)?.kind, Kind::File) {
            return Err(Errno::EISDIR);
        }
        let file = self.file_mut(ino)?;
        let before = file.content.pages();
        change(&mut file.content);
        file.modified = SystemTime::now();
        let after = file.content.pages();
        self.used_pages = self.used_pages + after - before;
        Ok(())
    }
}

impl File {
    fn new() -> File {
        File { content: Content::default(), modified: SystemTime::now(), lookups: 0 }
    }
}
