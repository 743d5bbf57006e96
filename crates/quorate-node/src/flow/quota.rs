//! How many write sets this node may propose in the next period: the rule of Group Replication's flow control. Each
//! node decides it alone, from what all members say of themselves.
//!
//! While a member has more write sets waiting than the limits allow, all that write share nine tenths of what the
//! slowest of those members gets done in a period. Afterwards they may write a tenth more in each, until they do not
//! use it.
//!
//! Invariant: nobody is stopped. However slow a member is, the quota is never below a twentieth of the lower limit.

use quorate_consensus::MemberId;
use quorate_live::{ServerStanding, Standing};
use std::collections::BTreeMap;

/// Write sets that may wait at a member before the others are slowed down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// To be certified.
    pub certified: u64,
    /// To be applied.
    pub applied: u64,
}

impl Limits {
    /// Whether that server holds the others back. Who is not up to date, or may fall behind, does not.
    pub fn are_held_by(&self, server: &ServerStanding) -> bool {
        let (waits, backlog) = (server.uncertified, server.standing.backlog());
        server.standing.synced && (self.certified < waits || self.applied < backlog)
    }

    /// For all that write, whatever happens.
    fn least(&self) -> u64 {
        (self.certified.min(self.applied) / 20).max(1)
    }
}

#[derive(Default)]
pub(super) struct Quota {
    before: BTreeMap<MemberId, Standing>,
    size: Option<u64>,
}

impl Quota {
    /// After a period in which this node, the first of `all`, has `used` so much. `None`: as much as it likes.
    pub fn next(&mut self, limits: Limits, all: &[ServerStanding], used: u64) -> Option<u64> {
        let now = all.iter().map(|server| (server.member, server.standing)).collect();
        let before = std::mem::replace(&mut self.before, now);
        let step =
            |now: &ServerStanding| Some(Step { before: *before.get(&now.member)?, now: *now });
        let steps: Vec<Step> = all.iter().filter_map(step).collect();
        let slow = steps.iter().filter(|step| limits.are_held_by(&step.now));
        let slowest = slow.map(|step| step.done(limits)).min();
        let writers = steps.iter().filter(|step| step.writes()).count().max(1) as u64;
        self.size = match (slowest, self.size) {
            (Some(done), _) => Some(((done - done / 10).max(limits.least()) / writers).max(1)),
            (None, Some(size)) if used.saturating_mul(2) < size => None,
            (None, size) => size.map(|size| size + size / 10 + 1),
        };
        self.size
    }
}

/// A member at the ends of a period.
struct Step {
    before: Standing,
    now: ServerStanding,
}

impl Step {
    /// What it got done of what it has too much of.
    fn done(&self, limits: Limits) -> u64 {
        let grown = |from: i64, to: i64| to.saturating_sub(from).max(0) as u64;
        let now = &self.now.standing;
        let certified = grown(self.before.certified, now.certified);
        let applied = grown(self.before.applied, now.applied);
        match limits.certified < self.now.uncertified {
            true => certified.min(applied),
            false => applied,
        }
    }

    fn writes(&self) -> bool {
        self.now.standing.written > self.before.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { certified: 1_000, applied: 1_000 };

    /// Two members that write, and one that applies `rate` of 2,000 write sets in a period.
    struct Group {
        quota: Quota,
        period: i64,
        slow: i64,
    }

    impl Group {
        fn new() -> Self {
            Self { quota: Quota::default(), period: 0, slow: 0 }
        }

        fn next(
            &mut self,
            rate: i64,
            used: u64,
            change: impl Fn(&mut ServerStanding),
        ) -> Option<u64> {
            self.period += 1;
            let certified = 2_000 * self.period;
            self.slow = (self.slow + rate).min(certified);
            let synced = Standing { synced: true, certified, ..Standing::default() };
            let written = 1_000 * self.period as u64;
            let writer = Standing { applied: certified, written, ..synced };
            let server = |member, standing| ServerStanding {
                member: MemberId(member),
                standing,
                uncertified: 0,
            };
            let mut slow = server(3, Standing { applied: self.slow, ..synced });
            change(&mut slow);
            self.quota.next(LIMITS, &[server(1, writer), server(2, writer), slow], used)
        }
    }

    #[test]
    fn writers_share_nine_tenths_of_what_the_slowest_gets_done() {
        let mut group = Group::new();
        assert_eq!(group.next(500, 1_000, |_| {}), None, "nothing is known of the period before");
        assert_eq!(group.next(500, 1_000, |_| {}), Some(225));
        assert_eq!(group.next(1_000, 225, |_| {}), Some(450));
    }

    #[test]
    fn it_grows_by_a_tenth_when_nobody_is_behind_and_ends_when_it_is_not_used() {
        let mut group = Group::new();
        let quota = (0..2).filter_map(|_| group.next(500, 1_000, |_| {})).last();
        assert_eq!(quota, Some(225));
        assert_eq!(group.next(100_000, 225, |_| {}), Some(248));
        assert_eq!(group.next(2_000, 248, |_| {}), Some(273));
        assert_eq!(group.next(2_000, 100, |_| {}), None);
    }

    #[test]
    fn nobody_is_stopped_by_a_member_that_does_nothing() {
        let mut group = Group::new();
        let quota = (0..9).filter_map(|_| group.next(0, 1_000, |_| {})).last();
        assert_eq!(quota, Some(25), "a twentieth of the limit, for both");
    }

    #[test]
    fn who_is_not_up_to_date_or_within_the_limits_holds_nobody_back() {
        let mut group = Group::new();
        assert!((0..9).all(|_| group.next(0, 1_000, |slow| slow.standing.synced = false).is_none()));
        let mut group = Group::new();
        assert!((0..9).all(|_| group.next(2_000, 1_000, |_| {}).is_none()));
    }

    #[test]
    fn a_backlog_that_waits_to_be_certified_counts_too() {
        let mut group = Group::new();
        let stuck = |slow: &mut ServerStanding| {
            slow.uncertified = 5_000;
            slow.standing.certified = slow.standing.applied;
        };
        let quota = (0..2).filter_map(|_| group.next(800, 1_000, stuck)).last();
        assert_eq!(quota, Some(360));
    }
}
