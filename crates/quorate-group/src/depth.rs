//! How long a queue is: at most, and on average.

/// Of a queue, over all that ever came into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Depth {
    most: usize,
    came: u64,
    /// The sum of how many each of them found.
    found: u64,
}

impl Depth {
    /// Another one comes, and finds so many.
    pub fn comes(&mut self, found: usize) {
        self.came += 1;
        self.found += found as u64;
        self.most = self.most.max(found + 1);
    }

    /// The most that there were at once.
    pub fn max(&self) -> usize {
        self.most
    }

    /// How many another one found when it came, on average.
    pub fn avg(&self) -> f64 {
        self.found as f64 / self.came.max(1) as f64
    }
}
