//! Compression of a write set's data. Its origin decides, once: on the wire, in each log and in memory it stays
//! as it is until a server applies it.

use crate::write_set::HEADER_LEN;
use std::cell::RefCell;
use std::io;
use std::thread::LocalKey;
use zstd::bulk::{Compressor, Decompressor};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    Lz4 = 1,
    Zstd = 2,
}

/// What an origin is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packing {
    pub codec: Codec,
    /// Bytes; shorter data is left as it is.
    pub from: usize,
}

/// How data is packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed {
    pub codec: Codec,
    /// So many bytes come out; at most [`BYTES_MAX`].
    pub bytes: u64,
}

/// Much more than is packed at once: longer data travels in parts. So a few bytes of a peer's cannot claim much memory.
const BYTES_MAX: u64 = 64 << 20;

/// Why packed data is not unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnpackError {
    /// It does not hold what it says, on whatever member.
    #[error("data of {packed} bytes cannot be unpacked to {bytes}: the member that proposed it has a bug")]
    Wrong { packed: usize, bytes: u64 },
    #[error("there is no memory to unpack it")]
    Memory,
}

thread_local! {
    /// Made once a thread: each has tables of its own.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

impl Codec {
    pub(crate) fn of(number: u8) -> Option<Codec> {
        [Codec::Lz4, Codec::Zstd].into_iter().find(|codec| *codec as u8 == number)
    }

    /// Where so much is packed there has to be room for more, as what cannot be packed gets longer.
    fn room(self, bytes: usize) -> usize {
        match self {
            Codec::Lz4 => lz4_flex::block::get_maximum_output_size(bytes),
            Codec::Zstd => zstd::zstd_safe::compress_bound(bytes),
        }
    }

    /// So many bytes are in `out`.
    fn pack(self, data: &[u8], out: &mut [u8]) -> Option<usize> {
        match self {
            Codec::Lz4 => lz4_flex::block::compress_into(data, out).ok(),
            Codec::Zstd => with(
                &COMPRESSOR,
                || Compressor::new(ZSTD_LEVEL),
                |zstd| zstd.compress_to_buffer(data, out).ok(),
            )?,
        }
    }

    /// `None`: there is no memory; within, it is not packed by this codec.
    fn unpack(self, packed: &[u8], out: &mut [u8]) -> Option<Option<usize>> {
        match self {
            Codec::Lz4 => Some(lz4_flex::block::decompress_into(packed, out).ok()),
            Codec::Zstd => with(&DECOMPRESSOR, Decompressor::new, |zstd| {
                zstd.decompress_to_buffer(packed, out).ok()
            }),
        }
    }
}

/// Works with what this thread has, or makes it. `None`: there is no memory for that.
fn with<T, R>(
    own: &'static LocalKey<RefCell<Option<T>>>,
    make: impl FnOnce() -> io::Result<T>,
    work: impl FnOnce(&mut T) -> R,
) -> Option<R> {
    own.with_borrow_mut(|own| {
        if own.is_none() {
            *own = make().ok();
        }
        own.as_mut().map(work)
    })
}

impl Packing {
    /// The data of `buffer`, which begins behind room for a header, in another such buffer. `None`: it is too
    /// short, or packing saves less than an eighth.
    pub(crate) fn pack(&self, buffer: &[u8]) -> Option<(Vec<u8>, Packed)> {
        let data = buffer.get(HEADER_LEN..)?;
        let bytes = data.len() as u64;
        if data.len() < self.from.max(1) || bytes > BYTES_MAX {
            return None;
        }
        let mut out = vec![0; HEADER_LEN + self.codec.room(data.len())];
        let packed = self.codec.pack(data, &mut out[HEADER_LEN..])?;
        if packed > data.len() - data.len() / 8 {
            return None;
        }
        out.truncate(HEADER_LEN + packed);
        Some((out, Packed { codec: self.codec, bytes }))
    }
}

impl Packed {
    pub fn unpack(&self, packed: &[u8]) -> Result<Vec<u8>, UnpackError> {
        let wrong = UnpackError::Wrong { packed: packed.len(), bytes: self.bytes };
        let bytes = Some(self.bytes).filter(|bytes| *bytes <= BYTES_MAX).ok_or(wrong)? as usize;
        let mut out = Vec::new();
        out.try_reserve_exact(bytes).map_err(|_| UnpackError::Memory)?;
        out.resize(bytes, 0);
        match self.codec.unpack(packed, &mut out).ok_or(UnpackError::Memory)? {
            Some(unpacked) if unpacked == bytes => Ok(out),
            _ => Err(wrong),
        }
    }
}

/// That of the library's own default.
const ZSTD_LEVEL: i32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const CODECS: [Codec; 2] = [Codec::Lz4, Codec::Zstd];

    fn buffer(data: &[u8]) -> Vec<u8> {
        [&[0; HEADER_LEN][..], data].concat()
    }

    #[test]
    fn data_is_packed_where_that_saves_an_eighth_and_comes_out_as_it_was() {
        let rows = b"a row of a table, ".repeat(500);
        let noise: Vec<u8> =
            (0..9000_u64).map(|at| ((at * at * 0x9e37_79b9) >> 13) as u8).collect();
        for codec in CODECS {
            let packing = Packing { codec, from: 1000 };
            let (packed, how) = packing.pack(&buffer(&rows)).unwrap();
            assert!(packed.len() < rows.len() / 10, "{codec:?}: {}", packed.len());
            assert_eq!(how.unpack(&packed[HEADER_LEN..]).as_ref(), Ok(&rows));
            assert_eq!(packing.pack(&buffer(&noise)), None, "{codec:?}");
            assert_eq!(packing.pack(&buffer(&rows[..999])), None, "{codec:?}");
            assert_eq!(packing.pack(&[]), None, "nothing was appended");
        }
    }

    #[test]
    fn what_does_not_hold_what_it_says_is_refused() {
        let rows = b"a row of a table, ".repeat(500);
        for codec in CODECS {
            let (packed, how) = Packing { codec, from: 0 }.pack(&buffer(&rows)).unwrap();
            let packed = &packed[HEADER_LEN..];
            for bytes in [0, how.bytes - 1, how.bytes + 1, BYTES_MAX + 1, u64::MAX] {
                assert!(Packed { codec, bytes }.unpack(packed).is_err(), "{codec:?} {bytes}");
            }
            assert!(how.unpack(&packed[1..]).is_err() && how.unpack(&[]).is_err(), "{codec:?}");
        }
    }
}
