//! A queue of small things, in chunks: it neither grows nor moves in one go, and takes as much memory as it holds. A
//! copy shares the chunks that are full, so it costs next to nothing; what it keeps is freed with the last one.
//!
//! Invariant: only the last chunk is not full. A full one never changes again.

use std::collections::VecDeque;
use std::sync::Arc;

const CHUNK_BYTES: usize = 32 << 10;

#[derive(Clone)]
pub struct Chunks<T> {
    full: VecDeque<Arc<[T]>>,
    last: Vec<T>,
    /// Of the first chunk, so many are gone.
    gone: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { full: VecDeque::new(), last: Vec::new(), gone: 0 }
    }
}

impl<T: Copy> Chunks<T> {
    const CHUNK_LEN: usize = CHUNK_BYTES / size_of::<T>();

    pub fn len(&self) -> usize {
        self.full.len() * Self::CHUNK_LEN + self.last.len() - self.gone
    }

    /// The one at `place`, counted from the oldest that is here, which must be there.
    pub fn get(&self, place: usize) -> &T {
        let place = self.gone + place;
        let within = place % Self::CHUNK_LEN;
        match self.full.get(place / Self::CHUNK_LEN) {
            Some(chunk) => &chunk[within],
            None => &self.last[within],
        }
    }

    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let chunks = self.full.iter().map(|chunk| &chunk[..]);
        chunks.chain([&self.last[..]]).flatten().skip(self.gone)
    }

    pub fn push(&mut self, one: T) {
        self.last.push(one);
        if self.last.len() == Self::CHUNK_LEN {
            self.full.push_back(Arc::from(&self.last[..]));
            self.last.clear();
        }
    }

    /// Removes the oldest `count`, which must be there.
    pub fn remove_first(&mut self, count: usize) {
        self.gone += count;
        while self.gone >= Self::CHUNK_LEN {
            self.full.pop_front();
            self.gone -= Self::CHUNK_LEN;
        }
        if self.len() == 0 {
            self.last.clear();
            self.gone = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_queue() {
        let (mut chunks, mut queue) = (Chunks::default(), VecDeque::new());
        let mut next = 0u64;
        for (more, fewer) in [(10, 4), (9, 15), (5000, 4095), (4096, 3), (20_000, 24_998), (1, 1)] {
            for _ in 0..more {
                chunks.push(next);
                queue.push_back(next);
                next += 1;
            }
            let (copy, copied) = (chunks.clone(), queue.clone());
            chunks.remove_first(fewer);
            queue.drain(..fewer);
            assert_eq!(chunks.len(), queue.len());
            assert!((0..queue.len()).all(|at| chunks.get(at) == &queue[at]));
            assert!(chunks.iter().eq(&queue) && copy.iter().eq(&copied));
        }
    }
}
