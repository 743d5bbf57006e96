//! Reading and writing the bytes of one packet.

use crate::error::WireError;
use bytes::{Bytes, BytesMut};

/// Longest text field (node name, address, refusal).
pub const TEXT_MAX: usize = 4096;

/// Payloads from this size on are kept by reference; shorter ones are cheaper to copy.
const BY_REFERENCE: usize = 2048;

/// One encoded packet: a chain of buffers, large payloads shared with whoever else holds them.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pub(crate) parts: Vec<Bytes>,
    len: usize,
}

impl Body {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes in one piece.
    pub fn to_bytes(&self) -> Bytes {
        match self.parts.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            parts => {
                let mut all = BytesMut::with_capacity(self.len);
                parts.iter().for_each(|part| all.extend_from_slice(part));
                all.freeze()
            }
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body { len: bytes.len(), parts: vec![bytes.into()] }
    }
}

/// Little-endian writer of a [`Body`].
#[derive(Default)]
pub struct BodyWriter {
    head: BytesMut,
    body: Body,
}

impl BodyWriter {
    pub fn u8(&mut self, value: u8) {
        self.head.extend_from_slice(&[value]);
    }

    pub fn bool(&mut self, value: bool) {
        self.u8(value as u8);
    }

    pub fn u16(&mut self, value: u16) {
        self.head.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.head.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.head.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u128(&mut self, value: u128) {
        self.head.extend_from_slice(&value.to_le_bytes());
    }

    /// At most 4096 bytes of it, cut at a character boundary.
    pub fn text(&mut self, text: &str) {
        let mut end = text.len().min(TEXT_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.u16(end as u16);
        self.head.extend_from_slice(&text.as_bytes()[..end]);
    }

    /// A length of four bytes and the data; long data is shared, not copied. Data beyond 4 GiB
    /// cannot be expressed; proposals are bounded far below that.
    pub fn data(&mut self, data: &Bytes) {
        debug_assert!(data.len() <= u32::MAX as usize);
        self.u32(data.len() as u32);
        self.rest(data);
    }

    /// The data without a length: it reaches to the end of the packet.
    pub fn rest(&mut self, data: &Bytes) {
        if data.len() < BY_REFERENCE {
            self.head.extend_from_slice(data);
        } else {
            self.cut();
            self.body.len += data.len();
            self.body.parts.push(data.clone());
        }
    }

    pub fn finish(mut self) -> Body {
        self.cut();
        self.body
    }

    fn cut(&mut self) {
        if !self.head.is_empty() {
            self.body.len += self.head.len();
            self.body.parts.push(self.head.split().freeze());
        }
    }
}

/// As it may stand in a line of a log, or on a screen: what would start a new line there, command a terminal, or show
/// letters in another order than they have, is a question mark.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || rearranges(c) { '?' } else { c }).collect()
}

/// Separators of lines and paragraphs, and marks of the direction of writing.
fn rearranges(c: char) -> bool {
    matches!(
        c,
        '\u{2028}'..='\u{202e}' | '\u{200e}' | '\u{200f}' | '\u{2066}'..='\u{2069}' | '\u{061c}'
    )
}

/// Little-endian reader of a received packet. Data fields are slices of the packet, not copies.
pub struct BodyReader {
    bytes: Bytes,
    what: &'static str,
}

impl BodyReader {
    /// `what` names the packet in errors.
    pub fn new(bytes: Bytes, what: &'static str) -> Self {
        Self { bytes, what }
    }

    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    pub fn bool(&mut self) -> Result<bool, WireError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(WireError::BadValue { what: self.what, value: value.into() }),
        }
    }

    pub fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn u128(&mut self) -> Result<u128, WireError> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    /// It may stand in somebody's log, or on a screen, as it is: see [`printable`].
    pub fn text(&mut self) -> Result<String, WireError> {
        let length = self.u16()? as usize;
        if length > TEXT_MAX {
            return Err(WireError::BadText { what: self.what });
        }
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(&bytes);
        text.map(printable).map_err(|_| WireError::BadText { what: self.what })
    }

    pub fn data(&mut self) -> Result<Bytes, WireError> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    /// A count of things of which each takes at least `least` bytes: refused when that many
    /// cannot be there, so a vector of this capacity is never larger than the packet.
    pub fn count(&mut self, least: usize) -> Result<usize, WireError> {
        let count = self.u32()? as usize;
        let needed = count.saturating_mul(least.max(1));
        if needed > self.bytes.len() {
            let missing = needed - self.bytes.len();
            return Err(WireError::Truncated { what: self.what, missing });
        }
        Ok(count)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes)
    }

    /// Every packet ends where its last field ends.
    pub fn end(self) -> Result<(), WireError> {
        match self.bytes.len() {
            0 => Ok(()),
            extra => Err(WireError::Trailing { what: self.what, extra }),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let bytes = self.take(N)?;
        let mut array = [0; N];
        array.copy_from_slice(&bytes);
        Ok(array)
    }

    fn take(&mut self, length: usize) -> Result<Bytes, WireError> {
        if length > self.bytes.len() {
            let missing = length - self.bytes.len();
            return Err(WireError::Truncated { what: self.what, missing });
        }
        Ok(self.bytes.split_to(length))
    }
}
