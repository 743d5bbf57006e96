//! The configurations in the log: the last one is in force, the others are what truncation and
//! compaction fall back to.

use crate::config::{Config, MemberInfo};
use crate::types::{Index, MemberId};

#[derive(Debug)]
pub(crate) struct ConfigHistory {
    /// In force at `base_index`, the start of the log (or earlier).
    base: Config,
    base_index: Index,
    /// Configurations of entries after the base, ascending.
    entries: Vec<(Index, Config)>,
}

impl ConfigHistory {
    pub fn new(base: Config, base_index: Index, entries: Vec<(Index, Config)>) -> Self {
        Self { base, base_index, entries }
    }

    /// The configuration in force: the latest one, committed or not.
    pub fn current(&self) -> &Config {
        self.entries.last().map_or(&self.base, |(_, config)| config)
    }

    /// Where the configuration in force stands in the log.
    pub fn index(&self) -> Index {
        self.entries.last().map_or(self.base_index, |(index, _)| *index)
    }

    /// The configuration in force at `commit` and those after it: any of them may turn out to be
    /// the one that counts.
    pub fn possible(&self, commit: Index) -> impl Iterator<Item = &Config> {
        let after = self.entries.partition_point(|(index, _)| *index <= commit);
        let at = after.checked_sub(1).map_or(&self.base, |at| &self.entries[at].1);
        std::iter::once(at).chain(self.entries[after..].iter().map(|(_, config)| config))
    }

    /// What the latest configuration with this member says of it.
    pub fn latest(&self, id: MemberId) -> Option<&MemberInfo> {
        let configs = self.entries.iter().rev().map(|(_, config)| config);
        configs.chain([&self.base]).find_map(|config| config.members.get(&id))
    }

    pub fn push(&mut self, index: Index, config: Config) {
        debug_assert!(index > self.index() || self.entries.is_empty());
        self.entries.push((index, config));
    }

    /// Entries from `from` on were cut off; true if that rolled a configuration back.
    pub fn truncate(&mut self, from: Index) -> bool {
        let kept = self.entries.partition_point(|(index, _)| *index < from);
        let rolled_back = kept < self.entries.len();
        self.entries.truncate(kept);
        rolled_back
    }

    /// Entries up to `upto` were purged.
    pub fn compact(&mut self, upto: Index) {
        let purged = self.entries.partition_point(|(index, _)| *index <= upto);
        if let Some((index, config)) = self.entries.drain(..purged).next_back() {
            (self.base_index, self.base) = (index, config);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::MemberId;

    fn outgoing(id: u128) -> Config {
        Config { outgoing: vec![MemberId(id)], ..Config::default() }
    }

    #[test]
    fn truncation_rolls_back_and_compaction_moves_the_base() {
        let mut history = ConfigHistory::new(outgoing(0), 0, vec![(3, outgoing(3))]);
        history.push(7, outgoing(7));
        assert_eq!((history.index(), history.current()), (7, &outgoing(7)));
        let possible = |commit| history.possible(commit).cloned().collect::<Vec<_>>();
        assert_eq!(possible(2), [outgoing(0), outgoing(3), outgoing(7)]);
        assert_eq!(possible(3), [outgoing(3), outgoing(7)]);
        assert_eq!(possible(7), [outgoing(7)]);
        assert!(!history.truncate(8));
        assert!(history.truncate(7));
        assert_eq!((history.index(), history.current()), (3, &outgoing(3)));
        history.compact(5);
        assert!(!history.truncate(1));
        assert_eq!((history.index(), history.current()), (3, &outgoing(3)));
    }
}
