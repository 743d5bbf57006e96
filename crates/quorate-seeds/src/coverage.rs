//! How often the interesting things happened: a simulator that stopped visiting a corner finds
//! nothing there.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// One kind of thing worth counting, of those that [`marks!`](crate::marks) lists.
pub trait Mark: Copy + Ord + Debug + 'static {
    const ALL: &'static [Self];
}

/// Makes the enum `Mark` of these.
#[macro_export]
macro_rules! marks {
    ($($mark:ident),* $(,)?) => {
        /// One kind of thing worth counting.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Mark { $($mark),* }

        impl $crate::Mark for Mark {
            const ALL: &'static [Mark] = &[$(Mark::$mark),*];
        }
    };
}

#[derive(Clone, Debug)]
pub struct Coverage<M>(BTreeMap<M, u64>);

impl<M> Default for Coverage<M> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<M: Mark> Coverage<M> {
    pub fn mark(&mut self, mark: M) {
        self.add(mark, 1);
    }

    pub fn add(&mut self, mark: M, times: u64) {
        *self.0.entry(mark).or_default() += times;
    }

    pub fn count(&self, mark: M) -> u64 {
        self.0.get(&mark).copied().unwrap_or_default()
    }

    /// All marks by name, those that were not met included.
    pub fn named(&self) -> Vec<(String, u64)> {
        M::ALL.iter().map(|mark| (format!("{mark:?}"), self.count(*mark))).collect()
    }
}
