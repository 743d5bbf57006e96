//! A model of the server's storage: rows with locks, and a redo log of which a crash keeps a prefix.
//!
//! A row is the list of all transactions that ever wrote it, and what is written says which list it
//! follows: so that it shows if somebody overwrites what it has not seen. As in InnoDB, the position of the
//! last write set is stored together with what it writes.

mod copy;

pub use self::copy::Copy;
use self::copy::Origin;
use crate::baton::installed;
use crate::oracle::{Oracle, Tag};
use parking_lot::Mutex as Plain;
use simulated_node::blocking::{now, Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub type Key = u8;
pub type Rows = BTreeMap<Key, Vec<Tag>>;

/// A row's new image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write {
    pub key: Key,
    /// The [`digest_of`] the row that was read.
    pub seen: u64,
    /// What is added to it.
    pub tag: Tag,
}

pub type Writes = Vec<Write>;

/// Who has a row's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A session's transaction, by the server's id.
    Local(u64),
    /// An ordered write set, by its seqno.
    Ordered(i64),
}

/// Why a session did not get a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoLock {
    Aborted,
    Timeout,
}

#[derive(Clone)]
struct Record {
    seqno: i64,
    writes: Writes,
}

/// What a server's disk has; outlives its processes.
#[derive(Default)]
pub struct Disk {
    origin: Origin,
    /// The copy that it began with has not been synced.
    unsynced: bool,
    /// What was committed after that.
    records: Vec<Record>,
    flushed: usize,
    /// DDL that was executed: durable at once, unlike the position that says so.
    schema: Vec<Tag>,
}

impl Disk {
    /// The server stopped cleanly.
    pub fn flush(&mut self) {
        self.flushed = self.records.len();
    }

    /// Keeps what was flushed and, by chance, some of what followed. Says how much is lost.
    pub fn crash(&mut self) -> usize {
        self.lose_unsynced_copy();
        let tail = self.records.len() - self.flushed;
        let kept = installed().random(|rng| match rng.index(3) {
            0 => 0,
            1 => tail,
            _ => rng.index(tail + 1),
        });
        self.records.truncate(self.flushed + kept);
        self.flushed = self.records.len();
        tail - kept
    }
}

struct Tables {
    rows: Rows,
    position: i64,
    locks: BTreeMap<Key, Owner>,
    /// Gaps between rows that sessions have locked; they share them with each other, but keep write
    /// sets out whose keys do not conflict with theirs.
    gaps: BTreeMap<Key, BTreeSet<u64>>,
}

impl Tables {
    fn take_in(&mut self, record: &Record) {
        for write in &record.writes {
            self.rows.entry(write.key).or_default().push(write.tag);
        }
        self.position = record.seqno;
    }

    /// A session that keeps this write set out.
    fn in_the_way(&self, seqno: i64, key: Key) -> Option<Owner> {
        let row = self.locks.get(&key).copied().filter(|owner| *owner != Owner::Ordered(seqno));
        let gap = self.gaps.get(&gap_of(key)).and_then(|holders| holders.first());
        row.or(gap.map(|id| Owner::Local(*id)))
    }
}

/// Stands for the table's definition.
pub const SCHEMA: Key = Key::MAX;

fn gap_of(key: Key) -> Key {
    key / 4
}

pub struct Engine {
    node: usize,
    disk: Arc<Plain<Disk>>,
    data_dir: PathBuf,
    tables: Mutex<Tables>,
    released: Condvar,
    oracle: Arc<Oracle>,
}

impl Engine {
    /// Recovers what the disk has.
    pub fn open(
        node: usize,
        disk: Arc<Plain<Disk>>,
        data_dir: PathBuf,
        oracle: Arc<Oracle>,
    ) -> Self {
        let (locks, gaps) = (BTreeMap::new(), BTreeMap::new());
        let mut tables = Tables { rows: Rows::new(), position: 0, locks, gaps };
        disk.lock().load(&mut tables);
        Self { node, disk, data_dir, tables: Mutex::new(tables), released: Condvar::new(), oracle }
    }

    pub fn position(&self) -> i64 {
        self.tables.lock().position
    }

    /// What all tables have, and the schema with them.
    pub fn rows(&self) -> Rows {
        let mut rows = self.tables.lock().rows.clone();
        rows.insert(SCHEMA, self.disk.lock().schema.clone());
        rows
    }

    /// What a session reads of a row, before it adds to it.
    pub fn read(&self, key: Key) -> u64 {
        self.tables.lock().rows.get(&key).map_or(digest_of(&[]), |row| digest_of(row))
    }

    /// A session's lock. It is given up when the session is aborted, or after `patience`.
    pub fn lock_local(
        &self,
        id: u64,
        key: Key,
        patience: Duration,
        with_gap: bool,
        aborted: impl Fn() -> bool,
    ) -> Result<(), NoLock> {
        let deadline: Instant = now() + patience;
        let mut tables = self.tables.lock();
        loop {
            if aborted() {
                return Err(NoLock::Aborted);
            }
            match tables.locks.get(&key) {
                Some(owner) if *owner != Owner::Local(id) => {}
                _ => {
                    tables.locks.insert(key, Owner::Local(id));
                    if with_gap {
                        tables.gaps.entry(gap_of(key)).or_default().insert(id);
                    }
                    return Ok(());
                }
            }
            if self.released.wait_until(&mut tables, deadline).timed_out() {
                return Err(NoLock::Timeout);
            }
        }
    }

    /// The lock of an ordered write set, which no session may keep from it: `abort` is asked to get a
    /// session out of the way, and where it may not be, its end is waited for.
    pub fn lock_ordered(&self, seqno: i64, key: Key, abort: impl Fn(u64)) {
        let mut tables = self.tables.lock();
        loop {
            match tables.in_the_way(seqno, key) {
                None => {
                    tables.locks.insert(key, Owner::Ordered(seqno));
                    return;
                }
                Some(Owner::Ordered(other)) => {
                    if other > seqno {
                        let text = format!(
                            "n{}: seqno {other} was let run before {seqno}, on whose row it depends",
                            self.node
                        );
                        self.oracle.fail(text);
                    }
                    self.released.wait(&mut tables);
                }
                Some(Owner::Local(id)) => {
                    drop(tables);
                    abort(id);
                    tables = self.tables.lock();
                    if tables.in_the_way(seqno, key) == Some(Owner::Local(id)) {
                        self.released.wait(&mut tables);
                    }
                }
            }
        }
    }

    pub fn unlock(&self, owner: Owner) {
        let mut tables = self.tables.lock();
        tables.locks.retain(|_, holder| *holder != owner);
        if let Owner::Local(id) = owner {
            tables.gaps.values_mut().for_each(|holders| {
                holders.remove(&id);
            });
        }
        drop(tables);
        self.released.notify_all();
    }

    /// Whoever waits for a lock looks again whether it still should.
    pub fn wake(&self) {
        self.released.notify_all();
    }

    /// Executes DDL, which nothing else may be beside, and which must not be repeated.
    pub fn execute(&self, seqno: i64, tag: Tag, keys: Key) -> std::io::Result<()> {
        self.check_turn(seqno, self.position());
        let mut disk = self.disk.lock();
        if disk.schema.contains(&tag) {
            self.oracle.fail(format!("n{} executes the DDL {tag:x} twice", self.node));
        }
        disk.schema.push(tag);
        disk.flush();
        self.oracle.executed(seqno, tag);
        self.oracle.tell(|| format!("n{} executes {tag:x} at {seqno}, {keys} rows", self.node));
        // A new definition file, by which the node knows that this has happened.
        let file = self.data_dir.join("db/t.frm");
        let new = file.with_extension("new");
        std::fs::write(&new, tag.to_le_bytes())?;
        std::fs::rename(&new, &file)
    }

    /// The place of a write set that failed here is passed without a trace.
    pub fn pass(&self, seqno: i64) {
        let mut tables = self.tables.lock();
        self.check_turn(seqno, tables.position);
        tables.position = seqno;
    }

    fn check_turn(&self, seqno: i64, position: i64) {
        if seqno != position + 1 {
            self.oracle
                .fail(format!("n{} is at {seqno} while its position is {position}", self.node));
        }
    }

    /// Commits at this position, inside commit order.
    pub fn commit(&self, seqno: i64, writes: &Writes) {
        let mut tables = self.tables.lock();
        self.check_turn(seqno, tables.position);
        for Write { key, seen, tag } in writes {
            let row = tables.rows.get(key).map_or(&[][..], Vec::as_slice);
            if digest_of(row) != *seen {
                self.oracle.fail(format!(
                    "n{} at seqno {seqno}: {tag:x} overwrites row {key}, {row:x?}, which it has not seen",
                    self.node
                ));
            }
        }
        let record = Record { seqno, writes: writes.clone() };
        tables.take_in(&record);
        let mut disk = self.disk.lock();
        disk.records.push(record);
        if installed().random(|rng| rng.chance(80)) {
            disk.flush();
        }
        drop(disk);
        let tags: Vec<Tag> = writes.iter().map(|write| write.tag).collect();
        self.oracle.tell(|| format!("n{} commits {seqno}: {tags:x?}", self.node));
        self.oracle.committed(self.node, seqno, digest(writes), writes);
    }
}

fn digest(writes: &Writes) -> u64 {
    hash(encode(writes).into_iter())
}

/// A row's content, as a number.
fn digest_of(row: &[Tag]) -> u64 {
    hash(row.iter().flat_map(|tag| tag.to_le_bytes()))
}

fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Of one row image.
const WRITE_LEN: usize = 17;

/// The row events of a write set.
pub fn encode(writes: &[Write]) -> Vec<u8> {
    let mut out = Vec::with_capacity(writes.len() * WRITE_LEN);
    for Write { key, seen, tag } in writes {
        out.push(*key);
        out.extend_from_slice(&seen.to_le_bytes());
        out.extend_from_slice(&tag.to_le_bytes());
    }
    out
}

/// What [`encode`] made; `None` if it is cut off.
pub fn decode(bytes: &[u8]) -> Option<Writes> {
    let images = bytes.chunks_exact(WRITE_LEN);
    if !images.remainder().is_empty() {
        return None;
    }
    images
        .map(|image| {
            let (key, rest) = image.split_first()?;
            let (seen, tag) = rest.split_first_chunk()?;
            let tag = Tag::from_le_bytes(tag.try_into().ok()?);
            Some(Write { key: *key, seen: u64::from_le_bytes(*seen), tag })
        })
        .collect()
}
