//! What the kernel is told of a node: its attributes, and what a directory holds.

use super::content::PAGE;
use super::gate::State;
use super::names::{Ino, Kind, Node};
use fuser::{Errno, FileAttr, FileType, INodeNo};
use std::ffi::OsString;
use std::time::SystemTime;

/// A name in a directory.
pub(super) type Entry = (Ino, FileType, OsString);

impl State {
    pub fn attributes(&self, ino: Ino) -> Result<FileAttr, Errno> {
        let node = self.store.names.node(ino)?;
        let file = self.store.file(ino)?;
        let size = match &node.kind {
            Kind::Symlink(target) => target.as_os_str().len() as u64,
            _ => file.content.size(),
        };
        Ok(FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: file.content.pages() * (PAGE as u64 / 512),
            atime: file.modified,
            mtime: file.modified,
            ctime: file.modified,
            crtime: SystemTime::UNIX_EPOCH,
            kind: file_type(node),
            perm: node.mode,
            nlink: node.links,
            uid: node.uid,
            gid: node.gid,
            rdev: 0,
            blksize: PAGE as u32,
            flags: 0,
        })
    }

    /// Attributes for an answer that gives the kernel a reference.
    pub fn entry(&mut self, ino: Ino) -> Result<FileAttr, Errno> {
        let attributes = self.attributes(ino)?;
        self.store.refer(ino);
        Ok(attributes)
    }

    /// What a directory holds, with itself and the one it stands in.
    pub fn listing(&self, ino: Ino) -> Result<Vec<Entry>, Errno> {
        let names = &self.store.names;
        let Kind::Directory { entries, parent } = &names.node(ino)?.kind else {
            return Err(Errno::ENOTDIR);
        };
        let own = [(ino, ".".into()), (*parent, "..".into())];
        let others = entries.iter().map(|(name, ino)| (*ino, name.clone()));
        own.into_iter()
            .chain(others)
            .map(|(ino, name)| Ok((ino, file_type(names.node(ino)?), name)))
            .collect()
    }
}

pub(super) fn file_type(node: &Node) -> FileType {
    match node.kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory { .. } => FileType::Directory,
        Kind::Symlink(_) => FileType::Symlink,
    }
}
