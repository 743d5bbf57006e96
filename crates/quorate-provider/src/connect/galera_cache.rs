//! What Galera's write-set cache (`galera.cache`) says of the last seqnos before a cluster came
//! over from it.
//!
//! Nodes that are stopped one after the other never stand at the same seqno: each goodbye is a
//! view, and a view takes a seqno. The last node's cache shows that these seqnos are nothing but
//! views, so that the others' data is the same as its own.
//!
//! The file: a preamble of text lines (`key: value`) in its first 1024 bytes, then a ring of
//! buffers, the oldest at `offset`. A buffer begins with its seqno (i64, -1: none), 8 bytes that mean
//! nothing on disk, its size with this head (u32), flags (u16), store (i8: 1, the ring) and type
//! (i8: 3, a view). A head of size 0 is the end, or where the ring goes on at its beginning.
//! Anything that looks otherwise counts as "cannot tell".

use quorate_node::start::{parse_uuid, Position};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

const PREAMBLE_BYTES: usize = 1024;
/// After the preamble: 32 numbers that are not in use.
const RING_START: u64 = PREAMBLE_BYTES as u64 + 32 * 8;
const HEAD_BYTES: usize = 24;
const IN_RING: i8 = 1;
const VIEW: i8 = 3;
/// More goodbyes than a cluster has members.
const VIEWS_MAX: i64 = 1000;

/// How many of the seqnos up to `at` are views, counted back from `at`; 0 if nobody can tell.
pub fn trailing_views(path: &Path, at: Position) -> i64 {
    let file = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    file.map_or(0, |(end, file)| views_in(file, end, at))
}

/// As [`trailing_views`], in a cache that ends at `end`.
pub(crate) fn views_in(file: impl Read + Seek, end: u64, at: Position) -> i64 {
    match last_types(file, end, at) {
        Ok(types) => {
            let views = types.iter().rev().zip((0..=at.seqno).rev());
            views.take_while(|((s, t), expected)| **s == *expected && **t == VIEW).count() as i64
        }
        Err(_) => 0,
    }
}

/// Seqno and type of the last buffers. An error is one of the file: it is of no use.
fn last_types(file: impl Read + Seek, end: u64, at: Position) -> io::Result<BTreeMap<i64, i8>> {
    let mut file = BufReader::new(file);
    let mut preamble = [0; PREAMBLE_BYTES];
    file.read_exact(&mut preamble)?;
    let text = String::from_utf8_lossy(&preamble);
    let field = |name: &str| {
        text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let number = |name| field(name).and_then(|v| v.parse::<i64>().ok());
    let uuid = field("GID").and_then(parse_uuid);
    let last = number("seqno_max");
    if uuid != Some(at.uuid) || last != Some(at.seqno) || number("synced") != Some(1) {
        return Err(useless("it is not of this position"));
    }
    let first = number("offset").and_then(|o| u64::try_from(o).ok());
    let first = first.filter(|o| *o >= RING_START).ok_or_else(|| useless("no beginning"))?;
    let mut types = BTreeMap::new();
    let mut place = first;
    let mut wrapped = false;
    file.seek(SeekFrom::Start(place))?;
    loop {
        let mut head = [0; HEAD_BYTES];
        let whole = place + HEAD_BYTES as u64 <= end;
        if whole {
            file.read_exact(&mut head)?;
        }
        let size = u64::from(u32::from_le_bytes(head[16..20].try_into().expect("four bytes")));
        if size == 0 {
            if wrapped || types.contains_key(&at.seqno) || first == RING_START {
                return Ok(types);
            }
            wrapped = true;
            place = RING_START;
            file.seek(SeekFrom::Start(place))?;
            continue;
        }
        let next = place + size;
        let [store, kind] = [head[22] as i8, head[23] as i8];
        if size < HEAD_BYTES as u64 || next > end || store != IN_RING || (wrapped && next > first) {
            return Err(useless("a buffer that cannot be"));
        }
        let seqno = i64::from_le_bytes(head[..8].try_into().expect("eight bytes"));
        if seqno > at.seqno - VIEWS_MAX {
            types.insert(seqno, kind);
        }
        file.seek_relative((size - HEAD_BYTES as u64) as i64)?;
        place = next;
    }
}

fn useless(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const HISTORY: u128 = 0x8e15_fcd5_e60a_11f1_a1a1_4ff8_d189_e120;

    struct Cache(PathBuf);

    impl Drop for Cache {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Buffers of (seqno, type) from `first` on; the second list from the ring's beginning.
    fn cache(name: &str, first: u64, tail: &[(i64, i8)], head: &[(i64, i8)], last: i64) -> Cache {
        let mut bytes = vec![0; 8192];
        let text = format!(
            "Version: 2\nGID: 8e15fcd5-e60a-11f1-a1a1-4ff8d189e120\nseqno_min: 1\n\
             seqno_max: {last}\noffset: {first}\nsynced: 1\n\n"
        );
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        for (start, buffers) in [(first, tail), (RING_START, head)] {
            let mut place = start as usize;
            for (seqno, kind) in buffers {
                bytes[place..place + 8].copy_from_slice(&seqno.to_le_bytes());
                bytes[place + 16..place + 20].copy_from_slice(&160u32.to_le_bytes());
                bytes[place + 22..place + 24].copy_from_slice(&[1, *kind as u8]);
                place += 160;
            }
        }
        let path = std::env::temp_dir().join(format!("cache-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Cache(path)
    }

    fn views(cache: &Cache, seqno: i64) -> i64 {
        trailing_views(&cache.0, Position { uuid: HISTORY, seqno })
    }

    #[test]
    fn views_at_the_end_are_counted() {
        let found =
            cache("plain", 1280, &[(6, 0), (-1, 0), (7, 0), (8, 3), (9, 3), (-1, 0)], &[], 9);
        assert_eq!(views(&found, 9), 2);
        assert_eq!(views(&found, 8), 0, "not the cache of that position");
        let none = cache("none", 1280, &[(8, 3), (9, 0)], &[], 9);
        assert_eq!(views(&none, 9), 0);
        let hole = cache("hole", 1280, &[(6, 3), (8, 3), (9, 3)], &[], 9);
        assert_eq!(views(&hole, 9), 2, "7 may have been a large write set");
    }

    #[test]
    fn a_ring_is_followed_around_its_end() {
        let ring = cache("ring", 4000, &[(6, 0), (7, 3)], &[(8, 3), (9, 3)], 9);
        assert_eq!(views(&ring, 9), 3);
    }

    #[test]
    fn garbage_tells_nothing() {
        let ring = cache("garbage", 4000, &[(6, 0), (7, 3)], &[(8, 3), (9, 3)], 9);
        let good = std::fs::read(&ring.0).unwrap();
        for at in (1200..4600).step_by(11) {
            let mut bytes = good.clone();
            bytes[at] ^= 0xff;
            std::fs::write(&ring.0, &bytes).unwrap();
            views(&ring, 9);
            std::fs::write(&ring.0, &good[..at]).unwrap();
            views(&ring, 9);
        }
        assert_eq!(trailing_views(Path::new("/nonexistent"), Position { uuid: 1, seqno: 1 }), 0);
    }
}
