//! What a file of the simulated disk holds: in the kernel's memory, and on the medium.
//!
//! Pages are shared until they are written to, and a page of zeros takes no memory: so copies of a
//! disk are cheap, and so are preallocated segments.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

pub(super) const PAGE: usize = 4096;
static ZEROS: [u8; PAGE] = [0; PAGE];

/// `None`: zeros.
type Shared = Option<Arc<[u8; PAGE]>>;

#[derive(Clone, Default)]
struct Page {
    cached: Shared,
    durable: Shared,
    /// A bit for each sector that was written and not synced.
    dirty: u64,
}

#[derive(Clone, Default)]
pub(super) struct Content {
    pages: Vec<Page>,
    len: u64,
    durable_len: u64,
    /// Pages with dirty sectors.
    dirty: Vec<usize>,
    /// Sectors of 512 bytes that give an error when they are read, until they are written.
    unreadable: BTreeSet<u64>,
}

/// The unit in which unreadable and rotten places are named.
pub(super) const BAD_BYTES: u64 = 512;

fn bytes(page: &Shared) -> &[u8; PAGE] {
    page.as_deref().unwrap_or(&ZEROS)
}

/// For writing: its own copy, if others share it.
fn own(page: &mut Shared) -> &mut [u8; PAGE] {
    Arc::make_mut(page.get_or_insert_with(|| Arc::new(ZEROS)))
}

/// `(page, first byte in it, bytes)` of each page of a range.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let (mut at, end) = (offset as usize, offset as usize + len);
    std::iter::from_fn(move || {
        let from = at % PAGE;
        let count = (PAGE - from).min(end - at);
        let part = (at / PAGE, from, count);
        at += count;
        (count > 0).then_some(part)
    })
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset + buf.len() as u64;
        if end > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let sectors = offset / BAD_BYTES..end.div_ceil(BAD_BYTES);
        if self.unreadable.range(sectors).next().is_some() {
            return Err(io::Error::other("input/output error"));
        }
        let mut done = 0;
        for (page, from, count) in parts(offset, buf.len()) {
            let page = bytes(&self.pages[page].cached);
            buf[done..done + count].copy_from_slice(&page[from..from + count]);
            done += count;
        }
        Ok(())
    }

    /// `sector`: bytes that reach the medium together.
    pub(super) fn write(&mut self, buf: &[u8], offset: u64, sector: usize) {
        self.extend(offset + buf.len() as u64);
        let mut done = 0;
        for (number, from, count) in parts(offset, buf.len()) {
            let part = &buf[done..done + count];
            done += count;
            let page = &mut self.pages[number];
            if page.dirty == 0 {
                self.dirty.push(number);
            }
            for sector in from / sector..(from + count).div_ceil(sector) {
                page.dirty |= 1 << sector;
            }
            let zeros_stay = page.cached.is_none() && *part == ZEROS[..count];
            if !zeros_stay {
                own(&mut page.cached)[from..from + count].copy_from_slice(part);
            }
        }
        let whole = offset.div_ceil(BAD_BYTES)..(offset + buf.len() as u64) / BAD_BYTES;
        self.unreadable.retain(|sector| !whole.contains(sector));
    }

    /// Makes the file at least this long, with zeros.
    pub(super) fn extend(&mut self, len: u64) {
        self.len = self.len.max(len);
        let pages = (self.len as usize).div_ceil(PAGE);
        if self.pages.len() < pages {
            self.pages.resize_with(pages, Page::default);
        }
    }

    pub(super) fn sync(&mut self) {
        for number in self.dirty.drain(..) {
            let page = &mut self.pages[number];
            page.durable = page.cached.clone();
            page.dirty = 0;
        }
        self.durable_len = self.len;
    }

    /// A sync that failed: the kernel takes for clean what never reached the medium.
    pub(super) fn forget_dirty(&mut self) {
        for number in self.dirty.drain(..) {
            self.pages[number].dirty = 0;
        }
    }

    /// What a power cut leaves: of the sectors that were not synced those that `survives` says.
    pub(super) fn after_power_cut(
        &self,
        sector: usize,
        mut survives: impl FnMut() -> bool,
    ) -> Content {
        let mut left = Content {
            pages: Vec::with_capacity(self.pages.len()),
            len: self.durable_len,
            durable_len: 0,
            dirty: Vec::new(),
            unreadable: self.unreadable.clone(),
        };
        if self.len > self.durable_len && survives() {
            left.len = self.len;
        }
        for (number, page) in self.pages.iter().enumerate() {
            let mut durable = page.durable.clone();
            let sectors = if page.dirty == 0 { 0..0 } else { 0..PAGE / sector };
            for at in sectors.filter(|at| page.dirty >> at & 1 == 1) {
                if survives() {
                    let range = at * sector..(at + 1) * sector;
                    let end = ((number * PAGE + range.end) as u64).min(self.len);
                    left.len = left.len.max(end);
                    own(&mut durable)[range.clone()].copy_from_slice(&bytes(&page.cached)[range]);
                }
            }
            left.pages.push(Page { cached: durable.clone(), durable, dirty: 0 });
        }
        left.pages.truncate((left.len as usize).div_ceil(PAGE));
        left.durable_len = left.len;
        left
    }

    /// All of it, as it is read.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut all: Vec<u8> = self.pages.iter().flat_map(|page| *bytes(&page.cached)).collect();
        all.truncate(self.len as usize);
        all
    }

    /// On the medium, too.
    pub(super) fn replace(&mut self, with: &[u8]) {
        *self = Content::default();
        self.write(with, 0, PAGE);
        self.sync();
    }

    /// The sector reads as something else from now on, synced or not.
    pub(super) fn rot(&mut self, sector: u64, garbage: u8) {
        for (page, from, count) in parts(sector * BAD_BYTES, BAD_BYTES as usize) {
            let Some(page) = self.pages.get_mut(page) else { continue };
            for byte in &mut own(&mut page.cached)[from..from + count] {
                *byte = byte.wrapping_mul(31) ^ garbage;
            }
            let rotten = bytes(&page.cached)[from..from + count].to_vec();
            own(&mut page.durable)[from..from + count].copy_from_slice(&rotten);
        }
    }

    pub(super) fn set_unreadable(&mut self, sector: u64) {
        self.unreadable.insert(sector);
    }
}
