//! What members said that did not count: how often, by kind, and a line about it at most once a second.

use crate::paced::Paced;
use quorate_consensus::{MemberId, Objection};
use std::collections::BTreeMap;

/// Why something of a peer did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The core objected.
    Core(Objection),
    /// Only members may say it, and its sender is none.
    NoMember,
    /// The member whose id it came with has another key.
    OtherKey,
    /// It answers what was not asked.
    Unasked,
    /// It proposes something in another member's name, or that nobody can read.
    Forged,
    /// It has no place on a connection between members.
    OutOfPlace,
    /// More at a time than there is room for.
    TooMuch,
}

impl Cause {
    /// For status and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Core(Objection::Unsound) => "unsound",
            Cause::Core(Objection::Leap) => "leap",
            Cause::Core(Objection::NoVoter) => "no_voter",
            Cause::Core(Objection::Ahead) => "ahead",
            Cause::Core(Objection::SecondLeader) => "second_leader",
            Cause::Core(Objection::Stranger) => "stranger",
            Cause::Core(Objection::NeverSent) => "never_sent",
            Cause::Core(Objection::Contradicts) => "contradicts",
            Cause::NoMember => "no_member",
            Cause::OtherKey => "other_key",
            Cause::Unasked => "unasked",
            Cause::Forged => "forged",
            Cause::OutOfPlace => "out_of_place",
            Cause::TooMuch => "too_much",
        }
    }

    /// Whether members that come, go or lag say such things honestly, for what is known there and here differs
    /// for a moment. The others, none should say.
    pub fn may_be_honest(self) -> bool {
        matches!(
            self,
            Cause::Core(Objection::NoVoter | Objection::Ahead | Objection::Stranger)
                | Cause::NoMember
                | Cause::Unasked
        )
    }

    fn what(self) -> &'static str {
        match self {
            Cause::Core(Objection::Unsound) => "it cannot be true",
            Cause::Core(Objection::Leap) => "its term is so far ahead that no election led to it",
            Cause::Core(Objection::NoVoter) => {
                "it begins another term while the group has, or may have, a leader, and has no vote as far as is known here"
            }
            Cause::Core(Objection::Ahead) => {
                "it answers from a later term, and has no vote (if it stays behind, empty its log directory)"
            }
            Cause::Core(Objection::SecondLeader) => "it leads in a term that has another leader",
            Cause::Core(Objection::Stranger) => {
                "it answers, and is no member as far as is known here"
            }
            Cause::Core(Objection::NeverSent) => "it acknowledges what was never sent",
            Cause::Core(Objection::Contradicts) => {
                "it has other entries than those that are committed here (one of the two was given up when a quorum was \
                 forced: empty that one's log directory)"
            }
            Cause::NoMember => "only members may say it, and it is none as far as is known here",
            Cause::OtherKey => "its sender does not have that member's key",
            Cause::Unasked => "it answers what was not asked",
            Cause::Forged => {
                "it proposes something in another member's name, or that nobody can read"
            }
            Cause::OutOfPlace => "it has no place between members",
            Cause::TooMuch => "there is no room for more; it has to say it again",
        }
    }
}

pub(crate) struct Rejections {
    counts: BTreeMap<Cause, u64>,
    lines: Paced,
}

impl Default for Rejections {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), lines: Paced::new(1) }
    }
}

impl Rejections {
    /// Something of `from` did not count. The line about it, if one is due.
    pub fn note(&mut self, from: MemberId, cause: Cause, now_ms: u64) -> Option<String> {
        *self.counts.entry(cause).or_default() += 1;
        let others = self.lines.due(now_ms)?;
        let what = cause.what();
        Some(format!("something that member {from} said does not count: {what}{others}"))
    }

    /// By kind, those that there were.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        self.counts.iter().map(|(cause, count)| (cause.name(), *count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_counted_and_a_line_a_second_told() {
        let mut rejections = Rejections::default();
        let mut lines = Vec::new();
        for now_ms in 0..2_500 {
            let cause = if now_ms % 2 == 0 { Cause::NoMember } else { Cause::Unasked };
            lines.extend(rejections.note(MemberId(7), cause, now_ms));
        }
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[1].contains("(999 more"), "{lines:?}");
        assert_eq!(rejections.counts(), [("no_member", 1_250), ("unasked", 1_250)]);
    }
}
