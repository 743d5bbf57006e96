//! The configurations in the log: the last one is in force, the others are what truncation and
//! compaction fall back to.

use crate::config::{Config, MemberInfo};
use crate::progress::Progress;
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

    /// What this member must have on its disk, as far as the log tells: nothing was decided without it when this was
    /// committed, which a change after it has waited for. What a change by force comes after was perhaps not.
    pub fn owed(&self, id: MemberId) -> Index {
        let pairs = self.entries.iter().zip(self.entries.iter().skip(1));
        let waited_for = pairs
            .filter(|((_, config), (_, next))| has_waited(config, next) && config.is_needed(id));
        waited_for.map(|((index, _), _)| *index).max().unwrap_or_default()
    }

    /// Those of the possible ones that others may still decide by: back to the last one that the next has waited for.
    pub fn undecided(&self, commit: Index) -> impl Iterator<Item = &Config> {
        let possible: Vec<&Config> = self.possible(commit).collect();
        let decided = possible.windows(2).rposition(|pair| has_waited(pair[0], pair[1]));
        possible.into_iter().skip(decided.unwrap_or(0))
    }

    /// All that the log goes back to, and where they stand in it; the first one perhaps earlier.
    pub fn all(&self) -> impl Iterator<Item = (Index, &Config)> {
        let entries = self.entries.iter().map(|(index, config)| (*index, config));
        std::iter::once((self.base_index, &self.base)).chain(entries)
    }

    /// What the latest configuration with this member says of it.
    pub fn latest(&self, id: MemberId) -> Option<&MemberInfo> {
        let configs = self.entries.iter().rev().map(|(_, config)| config);
        configs.chain([&self.base]).find_map(|config| config.members.get(&id))
    }

    /// What a leader knows at first of a peer.
    pub fn progress(&self, id: MemberId, next: Index) -> Progress {
        Progress::new(id, next).owing(self.owed(id))
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

/// Whether `config` was committed before `next` was made, by whoever made that. Other rules wait for nothing (not for a
/// configuration by force either, whose audit text they lack), nor does what is made by force.
fn has_waited(config: &Config, next: &Config) -> bool {
    let (rules, audit) = (next.rules, next.audit.clone());
    let only_rules = Config { rules, audit, ..config.clone() } == *next;
    next.audit.is_empty() && !only_rules
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

    fn voters(ids: &[u128]) -> Config {
        let info = MemberInfo::new(crate::MemberRole::Voter, "a:1", "");
        let members = ids.iter().map(|id| (MemberId(*id), info.clone())).collect();
        Config { members, ..Config::default() }
    }

    #[test]
    fn whoever_was_needed_has_what_a_later_change_has_waited_for() {
        let rules = crate::Rules { zones_min: 1, ..Default::default() };
        let alone = Config { audit: "alone".into(), ..voters(&[1]) };
        let mut history = ConfigHistory::new(voters(&[1, 2]), 0, vec![(3, voters(&[1]))]);
        assert_eq!((history.owed(MemberId(1)), history.owed(MemberId(2))), (0, 0), "of the last");
        history.push(5, Config { rules, ..voters(&[1]) });
        assert_eq!(history.owed(MemberId(1)), 0, "other rules wait for nothing");
        history.push(7, Config { rules, ..voters(&[1, 2]) });
        assert_eq!((history.owed(MemberId(1)), history.owed(MemberId(2))), (5, 0));
        history.push(9, alone);
        assert_eq!((history.owed(MemberId(1)), history.owed(MemberId(2))), (5, 0), "by force");
        let by_force = Config { audit: "by force".into(), ..voters(&[1, 2]) };
        history.push(10, by_force);
        history.push(11, Config { rules, ..voters(&[1, 2]) });
        assert_eq!((history.owed(MemberId(1)), history.owed(MemberId(2))), (5, 0), "other rules");
        history.push(12, voters(&[1, 2, 3]));
        assert_eq!((history.owed(MemberId(1)), history.owed(MemberId(2))), (11, 11));
    }

    #[test]
    fn a_change_that_other_rules_follow_may_not_be_committed_nor_what_it_changes() {
        let rules = crate::Rules { zones_min: 1, ..Default::default() };
        let mut history = ConfigHistory::new(voters(&[1, 2, 3]), 0, vec![(3, voters(&[1, 2]))]);
        let undecided = |history: &ConfigHistory| -> Vec<usize> {
            history.undecided(0).map(|config| config.members.len()).collect()
        };
        assert_eq!(undecided(&history), [3, 2]);
        history.push(4, Config { rules, ..voters(&[1, 2]) });
        assert_eq!(undecided(&history), [3, 2, 2]);
        history.push(5, Config { rules, ..voters(&[1]) });
        assert_eq!(undecided(&history), [2, 1], "it has waited for the removal");
    }
}
