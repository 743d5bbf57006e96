//! What a file holds: now, and after a power cut.
//!
//! Invariant: a page that is not in `dirty` is the same in `current` and `durable`, but for pages
//! whose sync failed (those are only in `current`, for good).

use super::Loss;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

pub(super) const PAGE: usize = 4096;
/// What a disk writes whole.
const SECTOR: usize = 512;

type Page = Arc<[u8; PAGE]>;

/// Preallocated space and written zeros share one page.
static ZEROS: LazyLock<Page> = LazyLock::new(|| Arc::new([0; PAGE]));

#[derive(Clone, Default)]
struct Image {
    /// Allocated pages; others read as zeros.
    pages: BTreeMap<u64, Page>,
    size: u64,
}

#[derive(Default)]
pub(super) struct Content {
    current: Image,
    durable: Image,
    /// Pages that the next sync makes durable.
    dirty: BTreeSet<u64>,
    resized: bool,
    /// Place of the last write, while it is not synced.
    last_write: Option<Range<u64>>,
}

impl Content {
    pub fn size(&self) -> u64 {
        self.current.size
    }

    /// Allocated pages.
    pub fn pages(&self) -> u64 {
        self.current.pages.len() as u64
    }

    pub fn is_dirty(&self) -> bool {
        self.resized || !self.dirty.is_empty()
    }

    pub fn dirty_bytes(&self) -> u64 {
        (self.dirty.len() * PAGE) as u64
    }

    /// Pages that must be allocated before `range` can be written.
    pub fn missing(&self, range: &Range<u64>) -> u64 {
        let touched = pages_of(range);
        let present = self.current.pages.range(touched.clone()).count() as u64;
        touched.end - touched.start - present
    }

    /// Up to `length` bytes; fewer at the end.
    pub fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let end = self.current.size.min(offset.saturating_add(length as u64));
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        for (page, within, part) in split(&(offset..end.max(offset))) {
            if let Some(found) = self.current.pages.get(&page) {
                bytes[part].copy_from_slice(&found[within]);
            }
        }
        bytes
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let range = offset..offset + bytes.len() as u64;
        for (page, within, part) in split(&range) {
            let new = &bytes[part];
            let found = self.current.pages.entry(page).or_insert_with(|| ZEROS.clone());
            // Logs are filled with zeros before they are used.
            if new.len() == PAGE && new == &ZEROS[..] {
                *found = ZEROS.clone();
            } else {
                Arc::make_mut(found)[within].copy_from_slice(new);
            }
            self.dirty.insert(page);
        }
        if range.end > self.current.size {
            self.resize(range.end);
        }
        self.last_write = Some(range);
    }

    /// Allocates `range`; the size grows to its end if `grow`.
    pub fn allocate(&mut self, range: &Range<u64>, grow: bool) {
        for page in pages_of(range) {
            self.current.pages.entry(page).or_insert_with(|| {
                self.dirty.insert(page);
                ZEROS.clone()
            });
        }
        if grow && range.end > self.current.size {
            self.resize(range.end);
        }
    }

    /// Makes `range` read as zeros, and gives whole pages of it back.
    pub fn punch(&mut self, range: &Range<u64>) {
        for (page, within, part) in split(range) {
            let Some(found) = self.current.pages.get_mut(&page) else { continue };
            if part.len() == PAGE {
                self.current.pages.remove(&page);
            } else {
                Arc::make_mut(found)[within].fill(0);
            }
            self.dirty.insert(page);
        }
    }

    pub fn truncate(&mut self, size: u64) {
        if size < self.current.size {
            let end = self.current.size.next_multiple_of(PAGE as u64);
            self.punch(&(size..end));
            // Space that was allocated past the end goes too.
            let past = self.current.pages.split_off(&size.div_ceil(PAGE as u64));
            self.dirty.extend(past.keys());
        }
        if size != self.current.size {
            self.resize(size);
        }
    }

    /// Makes everything durable.
    pub fn sync(&mut self) {
        for page in std::mem::take(&mut self.dirty) {
            match self.current.pages.get(&page) {
                Some(found) => self.durable.pages.insert(page, found.clone()),
                None => self.durable.pages.remove(&page),
            };
        }
        self.durable.size = self.current.size;
        self.settle();
    }

    /// A sync that failed: what should have been made durable counts as clean from now on.
    pub fn fail_sync(&mut self) {
        self.dirty.clear();
        self.settle();
    }

    /// What a power cut leaves.
    pub fn cut(&mut self, loss: Loss, random: &mut fastrand::Rng) {
        match loss {
            Loss::All => {}
            Loss::TornLast { .. } => {
                if let Some(last) = self.last_write.take() {
                    let sectors = sectors_of(&last);
                    let kept = random.u64(sectors.start..=sectors.end);
                    self.keep(sectors.start..kept);
                    let end = (kept * SECTOR as u64).min(last.end).min(self.current.size);
                    self.durable.size = self.durable.size.max(end);
                }
            }
            Loss::Scattered { .. } => {
                const SECTORS: u64 = (PAGE / SECTOR) as u64;
                for page in self.dirty.clone() {
                    for sector in page * SECTORS..(page + 1) * SECTORS {
                        if random.bool() {
                            self.keep(sector..sector + 1);
                        }
                    }
                }
                if random.bool() {
                    self.durable.size = self.current.size;
                }
            }
        }
        // What lies past the end is not part of the file.
        let end = self.durable.size.div_ceil(PAGE as u64);
        self.durable.pages.split_off(&end);
        self.current = self.durable.clone();
        let size = self.current.size;
        if size % PAGE as u64 != 0 {
            self.punch(&(size..size.next_multiple_of(PAGE as u64)));
            self.durable = self.current.clone();
        }
        self.dirty.clear();
        self.settle();
    }

    /// Copies sectors from what is current to what is durable.
    fn keep(&mut self, sectors: Range<u64>) {
        let bytes = sectors.start * SECTOR as u64..sectors.end * SECTOR as u64;
        for (page, within, _) in split(&bytes) {
            let current = self.current.pages.get(&page).unwrap_or(&ZEROS);
            let durable = self.durable.pages.entry(page).or_insert_with(|| ZEROS.clone());
            Arc::make_mut(durable)[within.clone()].copy_from_slice(&current[within]);
        }
    }

    fn resize(&mut self, size: u64) {
        self.current.size = size;
        self.resized = true;
    }

    fn settle(&mut self) {
        self.resized = false;
        self.last_write = None;
    }
}

fn pages_of(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE as u64..range.end.div_ceil(PAGE as u64).max(range.start / PAGE as u64)
}

fn sectors_of(range: &Range<u64>) -> Range<u64> {
    range.start / SECTOR as u64..range.end.div_ceil(SECTOR as u64)
}

/// The pages of `range`: number, place within the page, place within the range.
fn split(range: &Range<u64>) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let range = range.clone();
    let touched = if range.is_empty() { 0..0 } else { pages_of(&range) };
    touched.map(move |page| {
        let start = page * PAGE as u64;
        let from = range.start.max(start);
        let to = range.end.min(start + PAGE as u64);
        let within = (from - start) as usize..(to - start) as usize;
        (page, within, (from - range.start) as usize..(to - range.start) as usize)
    })
}
