//! Copies of a database: what a donor reads, and what becomes of a joiner's disk.
//!
//! Whether a disk's tables are whole is not to be seen from its position: files come in any order, and
//! the one with the position may come first.

use super::tables::Tables;
use super::{Disk, Engine, Rows, StreamId, Writes, SCHEMA};
use crate::baton::installed;
use crate::oracle::Tag;
use std::collections::BTreeMap;
use std::path::Path;

/// What a donor's script reads.
#[derive(Clone, Default)]
pub struct Copy {
    pub rows: Rows,
    pub schema: Vec<Tag>,
    /// Of streaming transactions that are open.
    pub fragments: BTreeMap<StreamId, Writes>,
    /// Who was in the last view (`mysql.wsrep_cluster_members`).
    pub members: Vec<u128>,
    pub position: i64,
}

/// What a disk's tables began with.
#[derive(Default)]
pub enum Origin {
    /// Nothing: the database was never part of a group.
    #[default]
    Blank,
    /// A copy of the empty database that the group began with.
    Founded,
    Copied(Copy),
    /// A copy was begun here and not ended: these rows have arrived, and perhaps the position.
    Half(Copy, Option<i64>),
}

impl Disk {
    /// The empty database that the group began with.
    pub fn founded() -> Self {
        Self { origin: Origin::Founded, ..Self::default() }
    }

    /// The position that the server recovers, if the database has one.
    pub fn recovered(&self) -> Option<i64> {
        let last = self.records.iter().rev().find_map(|record| record.seqno);
        last.or(match &self.origin {
            Origin::Blank => None,
            Origin::Founded => Some(0),
            Origin::Copied(copy) => Some(copy.position),
            Origin::Half(_, position) => *position,
        })
    }

    pub fn is_half(&self) -> bool {
        matches!(self.origin, Origin::Half(..))
    }

    /// The position that no crash goes back before.
    pub fn durable(&self) -> i64 {
        let flushed = self.records[..self.flushed].iter().rev().find_map(|record| record.seqno);
        let begun = if let Origin::Copied(copy) = &self.origin { copy.position } else { 0 };
        flushed.unwrap_or(begun)
    }

    pub(super) fn load(&self, tables: &mut Tables) {
        if let Origin::Copied(copy) | Origin::Half(copy, _) = &self.origin {
            tables.rows = copy.rows.clone();
            tables.fragments = copy.fragments.clone();
            tables.members.clone_from(&copy.members);
        }
        self.records.iter().for_each(|record| tables.take_in(record));
        tables.begin_at(self.recovered().unwrap_or(0));
    }

    /// The joiner's script takes everything away that was here.
    pub fn begin_copy(&mut self) {
        let origin = Origin::Half(Copy::default(), None);
        *self = Self { origin, ..Self::default() };
    }

    /// Some of it has arrived.
    pub fn take_part(&mut self, copy: &Copy) {
        let (with_schema, position) = installed().random(|rng| {
            let seen = [
                None,
                Some(copy.position),
                Some(rng.below(copy.position.max(0) as u64 + 1) as i64),
            ];
            (rng.chance(500), seen[rng.index(3)])
        });
        self.schema = if with_schema { copy.schema.clone() } else { Vec::new() };
        let rows = copy.rows.iter().filter(|_| installed().random(|rng| rng.chance(500)));
        let rows = rows.map(|(key, row)| (*key, row.clone())).collect();
        self.origin = Origin::Half(Copy { rows, ..Copy::default() }, position);
    }
}

impl Disk {
    /// A server stores the position of an error before it tells the provider, which notes it. A crash
    /// between the two is the one gap that the interface leaves: here none comes so soon.
    pub fn forget_unnoted(&mut self, data_dir: &Path) {
        let Some(seqno) = self.error_at.take() else { return };
        let notes =
            std::fs::read_to_string(data_dir.join("quorate_errors.dat")).unwrap_or_default();
        let is_noted = notes.contains(&format!(" error {seqno} "));
        if !is_noted && self.records.last().is_some_and(|record| record.seqno == Some(seqno)) {
            self.records.pop();
            self.flushed = self.flushed.min(self.records.len());
        }
    }

    /// The provider has made the copy durable.
    pub fn synced(&mut self) {
        self.unsynced = false;
    }

    /// Of a copy that was not synced, some files are empty after a power cut.
    pub(super) fn lose_unsynced_copy(&mut self) {
        let Origin::Copied(copy) = &self.origin else { return };
        if std::mem::take(&mut self.unsynced) && installed().random(|rng| rng.chance(500)) {
            let whole = copy.clone();
            (self.records, self.flushed) = (Vec::new(), 0);
            self.take_part(&whole);
        }
    }
}

impl Engine {
    /// The tables' definitions, as mariabackup copies them: first.
    pub fn copy_schema(&self) -> Vec<Tag> {
        self.disk.lock().schema.clone()
    }

    /// Everything as it is at one position, with these definitions.
    pub fn copy_rows(&self, schema: Vec<Tag>) -> Copy {
        let mut tables = self.tables.lock();
        Copy {
            rows: tables.rows.clone(),
            schema,
            fragments: tables.fragments.clone(),
            members: tables.members.clone(),
            position: tables.position(0),
        }
    }

    /// The script has ended: the server opens what it brought.
    pub fn install(&self, copy: Copy) -> std::io::Result<()> {
        let mut tables = self.tables.lock();
        let mut shown = copy.rows.clone();
        shown.insert(SCHEMA, copy.schema.clone());
        self.oracle.check_copy(self.node, copy.position, &shown);
        let mut disk = self.disk.lock();
        disk.schema.clone_from(&copy.schema);
        disk.origin = Origin::Copied(copy);
        disk.unsynced = true;
        disk.load(&mut tables);
        let last = disk.schema.last().copied().unwrap_or(0);
        std::fs::write(self.definition(last), last.to_le_bytes())
    }
}
