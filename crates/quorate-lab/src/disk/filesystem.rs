//! The FUSE side: each request passes the gate, is carried out on the store, and is answered.
//!
//! Nobody changes the disk but the kernel through this mount, so the kernel may cache names and
//! attributes for ever; a power cut unmounts, which drops its caches.

use super::attributes::Entry;
use super::content::PAGE;
use super::gate::{Gate, State, Target};
use super::names::{Kind, Node};
use fuser::{
    Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const FOR_EVER: Duration = Duration::from_secs(1 << 20);
const WRITE_BYTES_MAX: u32 = 1 << 20;
const NAME_BYTES_MAX: u32 = 255;

pub(super) struct Mounted {
    gate: Arc<Gate>,
    mount: u64,
    /// What open directories held when they were opened.
    directories: Mutex<HashMap<u64, Vec<Entry>>>,
    handles: AtomicU64,
}

impl Mounted {
    pub fn new(gate: Arc<Gate>, mount: u64) -> Mounted {
        Mounted { gate, mount, directories: Mutex::default(), handles: AtomicU64::new(1) }
    }

    fn enter(&self) -> Result<MutexGuard<'_, State>, Errno> {
        self.gate.enter(self.mount)
    }

    /// For operations that write; `EIO` if writes fail.
    fn enter_to_write(&self) -> Result<MutexGuard<'_, State>, Errno> {
        let state = self.enter()?;
        if state.faults.writes_fail {
            return Err(Errno::EIO);
        }
        Ok(state)
    }

    /// Makes a node and returns its attributes; the kernel then refers to it.
    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        kind: Kind,
        mode: u32,
    ) -> Result<FileAttr, Errno> {
        let mut state = self.enter_to_write()?;
        let links = if matches!(kind, Kind::Directory { .. }) { 2 } else { 1 };
        let mode = (mode & 0o7777) as u16;
        let node = Node { kind, mode, uid: request.uid(), gid: request.gid(), links };
        let ino = state.store.create(parent.0, name, node)?;
        state.entry(ino)
    }
}

fn answer(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn answer_entry(reply: ReplyEntry, found: Result<FileAttr, Errno>) {
    match found {
        Ok(attributes) => reply.entry(&FOR_EVER, &attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Mounted {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // The kernel may offer less; then it sends smaller requests, one at a time.
        let _ = config.set_max_write(WRITE_BYTES_MAX);
        let _ =
            config.add_capabilities(InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_PARALLEL_DIROPS);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.enter().and_then(|mut state| {
            let ino = state.store.names.lookup(parent.0, name)?;
            state.entry(ino)
        });
        answer_entry(reply, found);
    }

    fn forget(&self, _request: &Request, ino: INodeNo, count: u64) {
        let mut state = self.gate.state();
        // References of an earlier mount went with it.
        if state.is_mounted(self.mount) {
            state.store.forget(ino.0, count);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.enter().and_then(|state| state.attributes(ino.0)) {
            Ok(attributes) => reply.attr(&FOR_EVER, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changed = self.enter_to_write().and_then(|mut state| {
            if mode.is_some() || uid.is_some() || gid.is_some() {
                state.store.set_owner(ino.0, mode, uid, gid)?;
            }
            if let Some(size) = size {
                state.store.truncate(ino.0, size)?;
            }
            if let Some(time) = mtime {
                state.store.file_mut(ino.0)?.modified = match time {
                    TimeOrNow::SpecificTime(time) => time,
                    TimeOrNow::Now => SystemTime::now(),
                };
            }
            state.attributes(ino.0)
        });
        match changed {
            Ok(attributes) => reply.attr(&FOR_EVER, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        let state = match self.enter() {
            Ok(state) => state,
            Err(error) => return reply.error(error),
        };
        match state.store.names.node(ino.0).map(|node| &node.kind) {
            Ok(Kind::Symlink(target)) => reply.data(target.as_os_str().as_encoded_bytes()),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let kind = Kind::Directory { entries: BTreeMap::new(), parent: parent.0 };
        answer_entry(reply, self.make(request, parent, name, kind, mode & !umask));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let kind = Kind::Symlink(target.to_owned());
        answer_entry(reply, self.make(request, parent, name, kind, 0o777));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        match self.make(request, parent, name, Kind::File, mode & !umask) {
            Ok(attributes) => reply.created(
                &FOR_EVER,
                &attributes,
                Generation(0),
                FileHandle(0),
                FopenFlags::FOPEN_KEEP_CACHE,
            ),
            Err(error) => reply.error(error),
        }
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done =
            self.enter_to_write().and_then(|mut state| state.store.remove(parent.0, name, false));
        answer(reply, done);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done =
            self.enter_to_write().and_then(|mut state| state.store.remove(parent.0, name, true));
        answer(reply, done);
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            return reply.error(Errno::EINVAL);
        }
        let replace = !flags.contains(RenameFlags::RENAME_NOREPLACE);
        let done = self.enter_to_write().and_then(|mut state| {
            state.store.rename((parent.0, name), (new_parent.0, new_name), replace)
        });
        answer(reply, done);
    }

    fn link(
        &self,
        _request: &Request,
        ino: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        let linked = self.enter_to_write().and_then(|mut state| {
            state.store.link(ino.0, parent.0, name)?;
            state.entry(ino.0)
        });
        answer_entry(reply, linked);
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.enter() {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.enter().and_then(|state| match state.faults.reads_fail {
            true => Err(Errno::EIO),
            false => Ok(state.store.file(ino.0)?.content.read(offset, size as usize)),
        });
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written =
            self.enter_to_write().and_then(|mut state| state.store.write(ino.0, offset, bytes));
        match written {
            Ok(()) => reply.written(bytes.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    /// Closing a file syncs nothing; told once, the kernel does not ask again.
    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _data: bool, reply: ReplyEmpty) {
        self.gate.sync(self.mount, Target::File(ino.0), reply);
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _data: bool, reply: ReplyEmpty) {
        self.gate.sync(self.mount, Target::Directory, reply);
    }

    fn opendir(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.enter().and_then(|state| state.listing(ino.0)) {
            Ok(entries) => {
                let handle = self.handles.fetch_add(1, Ordering::Relaxed);
                self.directories.lock().insert(handle, entries);
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let directories = self.directories.lock();
        let entries = directories.get(&handle.0).map_or(&[][..], Vec::as_slice);
        for (at, (ino, kind, name)) in entries.iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(*ino), at as u64 + 1, *kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.directories.lock().remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let state = match self.enter() {
            Ok(state) => state,
            Err(error) => return reply.error(error),
        };
        let store = &state.store;
        let free = match store.full {
            true => 0,
            false => store.capacity_pages().saturating_sub(store.used_pages()),
        };
        let (pages, files) = (store.capacity_pages(), store.names.count());
        let page = PAGE as u32;
        reply.statfs(pages, free, free, files + free, free, page, NAME_BYTES_MAX, page);
    }

    fn fallocate(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        // As in linux/falloc.h.
        const KEEP_SIZE: i32 = 1;
        const PUNCH_HOLE: i32 = 2;
        const ZERO_RANGE: i32 = 16;
        let range = offset..offset + length;
        let grow = mode & KEEP_SIZE == 0;
        let done = self.enter_to_write().and_then(|mut state| match mode & !KEEP_SIZE {
            0 => state.store.allocate(ino.0, range, grow),
            PUNCH_HOLE => state.store.punch(ino.0, range),
            ZERO_RANGE => state.store.zero(ino.0, range, grow),
            _ => Err(Errno::EOPNOTSUPP),
        });
        answer(reply, done);
    }
}
