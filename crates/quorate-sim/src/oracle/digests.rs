//! What all members have alike after each index of the log, as digests.

use quorate_consensus::Index;

#[derive(Default)]
pub struct Digests(Vec<u64>);

impl Digests {
    /// Whether a member that is at `index` has what the first one had that got there.
    pub fn agrees(&mut self, index: Index, digest: u64) -> bool {
        let at = index as usize;
        if at == self.0.len() {
            self.0.push(digest);
        }
        self.0.get(at) == Some(&digest)
    }

    /// True if nobody was at this index before.
    pub fn is_news(&self, index: Index) -> bool {
        index as usize >= self.0.len()
    }

    pub fn forget_after(&mut self, upto: Index) {
        self.0.truncate(upto as usize + 1);
    }
}
