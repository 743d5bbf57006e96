//! A model of the server's storage: rows with locks, and a redo log of which a crash keeps a prefix.
//!
//! A row is the list of all transactions that ever wrote it, and what is written says which list it
//! follows: so that it shows if somebody overwrites what it has not seen. As in InnoDB, the position of the
//! last write set is stored together with what it writes; and fragments of streaming transactions are rows
//! of a table (`mysql.wsrep_streaming_log`), so that a start finds those that are open.

mod copy;
mod disk;
mod locks;
mod rows;
mod tables;

pub use self::copy::Copy;
pub use self::disk::{Beside, Disk};
pub use self::rows::{decode, encode, table_of, Key, Rows, Write, Writes, SCHEMA, TABLE};

use self::disk::Record;
use self::rows::{digest, digest_of};
use self::tables::Tables;
use crate::baton::installed;
use crate::oracle::{Oracle, Tag};
use parking_lot::Mutex as Plain;
use simulated_node::blocking::{Condvar, Mutex};
use std::path::PathBuf;
use std::sync::Arc;

/// A streaming transaction, on all servers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StreamId {
    /// The process that began it.
    pub origin: u128,
    pub trx: u64,
}

/// Who has a row's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A session's transaction, by the server's id.
    Local(u64),
    /// An ordered write set, by its seqno.
    Ordered(i64),
    /// A streaming transaction of another server.
    Stream(StreamId),
}

/// Why a session did not get a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoLock {
    Aborted,
    Timeout,
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
        let mut tables = Tables::default();
        disk.lock().load(&mut tables);
        Self { node, disk, data_dir, tables: Mutex::new(tables), released: Condvar::new(), oracle }
    }

    /// Of the last that left a trace.
    pub fn position(&self) -> i64 {
        self.position_upto(0)
    }

    /// When everything up to `seqno` is over.
    pub fn position_upto(&self, seqno: i64) -> i64 {
        self.tables.lock().position(seqno)
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

    /// Who was in the last view.
    pub fn members(&self) -> Vec<u128> {
        self.tables.lock().members.clone()
    }

    /// A view is stored, which is in its turn if it is new here.
    pub fn store_view(&self, seqno: i64, members: Vec<u128>) {
        if seqno > self.position() {
            self.commit(seqno, &Writes::new(), Beside::View(members));
        } else {
            self.tables.lock().members = members;
        }
    }

    /// Streaming transactions of which there are fragments, with what those write.
    pub fn streams(&self) -> Vec<(StreamId, Writes)> {
        self.tables.lock().fragments.iter().map(|(id, writes)| (*id, writes.clone())).collect()
    }

    /// What the stored fragments of this transaction write.
    pub fn fragments(&self, id: StreamId) -> Writes {
        self.tables.lock().fragments.get(&id).cloned().unwrap_or_default()
    }

    /// The definition file of the table that DDL changes.
    fn definition(&self, ddl: Tag) -> PathBuf {
        self.data_dir.join("db").join(table_of(ddl)).with_extension("frm")
    }

    /// Executes DDL, which nothing else may be beside, and which must not be repeated.
    pub fn execute(&self, seqno: i64, tag: Tag, keys: Key) -> std::io::Result<()> {
        self.check_turn(seqno, &mut self.tables.lock());
        let mut disk = self.disk.lock();
        if disk.schema.contains(&tag) {
            self.oracle.fail(format!("n{} executes the DDL {tag:x} twice", self.node));
        }
        disk.schema.push(tag);
        disk.flush();
        self.oracle.executed(seqno, tag);
        self.oracle.tell(|| format!("n{} executes {tag:x} at {seqno}, {keys} rows", self.node));
        // A new definition file, by which the node knows that this has happened.
        let file = self.definition(tag);
        let new = file.with_extension("new");
        std::fs::write(&new, tag.to_le_bytes())?;
        std::fs::rename(&new, &file)
    }

    /// The place of a write set that failed here is passed without a trace, in its turn.
    pub fn pass(&self, seqno: i64) {
        let mut tables = self.tables.lock();
        self.check_turn(seqno, &mut tables);
        tables.skip(seqno);
    }

    /// The place of a write set that gives an error here, before the provider is told of it.
    pub fn pass_error(&self, seqno: i64) {
        self.pass(seqno);
        let mut disk = self.disk.lock();
        disk.records.push(Record {
            seqno: Some(seqno),
            writes: Writes::new(),
            beside: Beside::Keep,
        });
        disk.error_at = Some(seqno);
    }

    /// As [`Self::pass`], whenever its turn comes.
    pub fn skip(&self, seqno: i64) {
        self.tables.lock().skip(seqno);
    }

    fn check_turn(&self, seqno: i64, tables: &mut Tables) {
        let position = tables.position(seqno - 1);
        if seqno != position + 1 {
            self.oracle
                .fail(format!("n{} is at {seqno} while its position is {position}", self.node));
        }
    }

    /// Commits at this position, inside commit order.
    pub fn commit(&self, seqno: i64, writes: &Writes, beside: Beside) {
        let mut tables = self.tables.lock();
        self.check_turn(seqno, &mut tables);
        for Write { key, seen, tag } in writes {
            let row = tables.rows.get(key).map_or(&[][..], Vec::as_slice);
            if digest_of(row) != *seen {
                self.oracle.fail(format!(
                    "n{} at seqno {seqno}: {tag:x} overwrites row {key}, {row:x?}, which it has not seen",
                    self.node
                ));
            }
        }
        self.store(&mut tables, Record { seqno: Some(seqno), writes: writes.clone(), beside });
        drop(tables);
        let tags: Vec<Tag> = writes.iter().map(|write| write.tag).collect();
        self.oracle.tell(|| format!("n{} commits {seqno}: {tags:x?}", self.node));
        self.oracle.committed(self.node, seqno, digest(writes), writes);
    }

    /// A streaming transaction ends with all others at one place of the order, which somebody else commits.
    pub fn forget_stream(&self, id: StreamId) {
        let beside = Beside::Remove(id);
        self.store(&mut self.tables.lock(), Record { seqno: None, writes: Writes::new(), beside });
    }

    fn store(&self, tables: &mut Tables, record: Record) {
        tables.take_in(&record);
        let mut disk = self.disk.lock();
        disk.records.push(record);
        if installed().random(|rng| rng.chance(80)) {
            disk.flush();
        }
    }
}
