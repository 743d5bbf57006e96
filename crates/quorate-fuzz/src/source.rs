//! The bytes of an input as choices.
//!
//! What is missing is zero, so every input is a whole story, and a shorter one is a simpler one.

use bytes::Bytes;

pub struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    pub fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u8) -> u8 {
        self.byte() % bound
    }

    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[usize::from(self.byte()) % items.len()]
    }

    pub fn u64(&mut self) -> u64 {
        let mut number = [0; 8];
        let bytes = self.take(8);
        number[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(number)
    }

    /// Mostly close to `number`, sometimes absurd.
    pub fn near(&mut self, number: u64) -> u64 {
        match self.byte() {
            255 => self.u64(),
            254 => u64::MAX - u64::from(self.below(3)),
            253 => (1 << 62) - 1 + u64::from(self.below(3)),
            252 => 0,
            step => number.saturating_add(u64::from(step % 8)).saturating_sub(3),
        }
    }

    /// At most so many bytes.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(length.min(self.0.len()));
        self.0 = tail;
        head
    }

    /// As many as the next byte says.
    pub fn block(&mut self) -> Bytes {
        let length = usize::from(self.byte());
        Bytes::copy_from_slice(self.take(length))
    }

    /// As many as the next two bytes say.
    pub fn long_block(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()) | usize::from(self.byte()) << 8;
        self.take(length)
    }

    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.block()).into_owned()
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
