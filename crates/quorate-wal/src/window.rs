//! A segment as a start reads it: from front to back, and never more of it in memory than a window, or than
//! one record if that is longer. How long segments are is the operator's choice; a record was in memory
//! as a whole when it was written.
//!
//! Nothing is passed over unread: a place that cannot be read is found, whatever stands there.

use crate::error::WalError;
use crate::segment::Segment;

/// So little in tests that the segments there take several windows.
pub(crate) const WINDOW_BYTES: usize = if cfg!(test) { 4 << 10 } else { 4 << 20 };

/// Where a segment's bytes are.
pub(crate) trait Source {
    fn size(&self) -> u64;
    fn read(&self, buf: &mut [u8], offset: u64) -> Result<(), WalError>;
}

impl Source for Segment {
    fn size(&self) -> u64 {
        Segment::size(self)
    }

    fn read(&self, buf: &mut [u8], offset: u64) -> Result<(), WalError> {
        Segment::read(self, buf, offset)
    }
}

/// Of fuzzers and tests.
impl Source for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, buf: &mut [u8], offset: u64) -> Result<(), WalError> {
        let from = offset as usize;
        buf.copy_from_slice(&self[from..from + buf.len()]);
        Ok(())
    }
}

pub(crate) struct Window<'a> {
    source: &'a dyn Source,
    /// What is read at once.
    step: usize,
    /// Where `bytes` stand.
    begin: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    pub(crate) fn new(source: &'a dyn Source, step: usize) -> Self {
        Window { source, step, begin: 0, bytes: Vec::new() }
    }

    pub(crate) fn size(&self) -> u64 {
        self.source.size()
    }

    /// What stands at `offset`: `len` bytes, or those up to the end of the segment if these are fewer, and
    /// whatever else is in memory behind them. `offset` never goes back.
    pub(crate) fn at(&mut self, offset: u64, len: usize) -> Result<&mut [u8], WalError> {
        debug_assert!(offset >= self.begin);
        let (offset, wanted) = (offset.min(self.size()), offset + len as u64);
        while self.end() < offset {
            self.load(self.end(), 0)?;
        }
        if self.end() < wanted.min(self.size()) {
            self.load(offset, len)?;
        }
        let from = (offset - self.begin) as usize;
        Ok(&mut self.bytes[from..])
    }

    fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    fn load(&mut self, begin: u64, least: usize) -> Result<(), WalError> {
        let bytes = (self.size() - begin).min(least.max(self.step) as u64);
        self.begin = begin;
        self.bytes.resize(bytes as usize, 0);
        // After a long record.
        self.bytes.shrink_to(self.step);
        self.source.read(&mut self.bytes, begin)
    }
}
