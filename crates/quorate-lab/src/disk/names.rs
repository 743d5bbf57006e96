//! Directories: names, owners, modes. Cloned as a whole when they become durable, so a clone must
//! be cheap: nodes are shared until changed.

use fuser::Errno;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

pub(super) type Ino = u64;

pub(super) const ROOT: Ino = 1;

#[derive(Clone)]
pub(super) enum Kind {
    File,
    Directory { entries: BTreeMap<OsString, Ino>, parent: Ino },
    Symlink(PathBuf),
}

#[derive(Clone)]
pub(super) struct Node {
    pub kind: Kind,
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
    pub links: u32,
}

#[derive(Clone)]
pub(super) struct Names {
    nodes: HashMap<Ino, Arc<Node>>,
}

impl Node {
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory { .. })
    }
}

impl Names {
    pub fn new() -> Names {
        let kind = Kind::Directory { entries: BTreeMap::new(), parent: ROOT };
        let root = Node { kind, mode: 0o755, uid: 0, gid: 0, links: 2 };
        Names { nodes: HashMap::from([(ROOT, Arc::new(root))]) }
    }

    pub fn node(&self, ino: Ino) -> Result<&Node, Errno> {
        self.nodes.get(&ino).map(Arc::as_ref).ok_or(Errno::ENOENT)
    }

    pub fn contains(&self, ino: Ino) -> bool {
        self.nodes.contains_key(&ino)
    }

    pub fn count(&self) -> u64 {
        self.nodes.len() as u64
    }

    pub fn change(&mut self, ino: Ino) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&ino).map(Arc::make_mut).ok_or(Errno::ENOENT)
    }

    pub fn lookup(&self, parent: Ino, name: &OsStr) -> Result<Ino, Errno> {
        match &self.node(parent)?.kind {
            Kind::Directory { entries, .. } => entries.get(name).copied().ok_or(Errno::ENOENT),
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub fn add(&mut self, parent: Ino, name: &OsStr, ino: Ino, node: Node) -> Result<(), Errno> {
        self.put(parent, name, ino)?;
        self.nodes.insert(ino, Arc::new(node));
        Ok(())
    }

    /// Another name for a file.
    pub fn link(&mut self, ino: Ino, parent: Ino, name: &OsStr) -> Result<(), Errno> {
        if self.node(ino)?.is_directory() {
            return Err(Errno::EPERM);
        }
        self.put(parent, name, ino)?;
        self.change(ino)?.links += 1;
        Ok(())
    }

    /// Takes a name away and returns what had it; its node stays until [`Names::forget`].
    pub fn remove(&mut self, parent: Ino, name: &OsStr, directory: bool) -> Result<Ino, Errno> {
        let ino = self.lookup(parent, name)?;
        match (&self.node(ino)?.kind, directory) {
            (Kind::Directory { .. }, false) => return Err(Errno::EISDIR),
            (Kind::Directory { entries, .. }, true) if !entries.is_empty() => {
                return Err(Errno::ENOTEMPTY)
            }
            (Kind::File | Kind::Symlink(_), true) => return Err(Errno::ENOTDIR),
            _ => {}
        }
        self.entries(parent)?.remove(name);
        let node = self.change(ino)?;
        node.links = if directory { 0 } else { node.links - 1 };
        Ok(ino)
    }

    /// Moves a name; returns what the new name had before.
    pub fn rename(
        &mut self,
        from: (Ino, &OsStr),
        to: (Ino, &OsStr),
        replace: bool,
    ) -> Result<Option<Ino>, Errno> {
        let ino = self.lookup(from.0, from.1)?;
        let replaced = match self.lookup(to.0, to.1) {
            Ok(same) if same == ino => return Ok(None),
            Ok(_) if !replace => return Err(Errno::EEXIST),
            Ok(_) => {
                let directory = self.node(ino)?.is_directory();
                Some(self.remove(to.0, to.1, directory)?)
            }
            Err(_) => None,
        };
        self.entries(from.0)?.remove(from.1);
        self.put(to.0, to.1, ino)?;
        if let Kind::Directory { parent, .. } = &mut self.change(ino)?.kind {
            *parent = to.0;
        }
        Ok(replaced)
    }

    /// Drops a node that has no name any more.
    pub fn forget(&mut self, ino: Ino) {
        self.nodes.remove(&ino);
    }

    /// Drops all nodes without a name: after a power cut nobody has them open.
    pub fn drop_nameless(&mut self) {
        self.nodes.retain(|ino, node| *ino == ROOT || node.links > 0);
    }

    fn put(&mut self, parent: Ino, name: &OsStr, ino: Ino) -> Result<(), Errno> {
        let entries = self.entries(parent)?;
        if entries.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        entries.insert(name.to_owned(), ino);
        Ok(())
    }

    fn entries(&mut self, ino: Ino) -> Result<&mut BTreeMap<OsString, Ino>, Errno> {
        match &mut self.change(ino)?.kind {
            Kind::Directory { entries, .. } => Ok(entries),
            _ => Err(Errno::ENOTDIR),
        }
    }
}
