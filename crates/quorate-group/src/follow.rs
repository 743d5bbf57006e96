//! `leader_follows_writes`: leadership goes to the member that all writes come from, which saves
//! each of them the way to the leader and back.
//!
//! It must not make leadership wander, so it waits: all writes of a while came from one other member,
//! they still come, and this leader has led for a while. Where several write, nothing moves. A member
//! that is lighter is left alone (the weights would take leadership back), and so is one that has not
//! caught up. It is a transfer like any other: no write is lost or refused by it.

use quorate_consensus::{Config, MemberId, Status};
use std::time::{Duration, Instant};

/// For so long all writes came from one member.
const SETTLED: Duration = Duration::from_secs(3);
/// A pause of this length starts that time anew.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Fewer are not worth it.
const WRITES_MIN: u64 = 20;
/// For so long a leader leads at least, and so much time is between two attempts.
const HOLD: Duration = Duration::from_secs(10);
/// A member at most so many entries behind has caught up.
const CAUGHT_UP_ENTRIES: u64 = 1024;

/// Where the proposals that a leader takes come from.
#[derive(Default)]
pub(crate) struct Writes {
    run: Option<Run>,
    tried: Option<Instant>,
}

/// Writes from one member, without one from another in between.
struct Run {
    from: MemberId,
    since: Instant,
    count: u64,
    /// At the last look.
    seen: u64,
    grew: Instant,
}

impl Writes {
    pub fn note(&mut self, from: MemberId, count: usize) {
        let count = count as u64;
        match &mut self.run {
            Some(run) if run.from == from => run.count += count,
            _ => {
                let now = Instant::now();
                self.run = Some(Run { from, since: now, count, seen: 0, grew: now });
            }
        }
    }

    /// Who should lead rather than `own`, which does since `leading_since`. Looks a few times a second.
    pub fn follow(
        &mut self,
        own: MemberId,
        leading_since: Instant,
        now: Instant,
        may: impl Fn(MemberId) -> bool,
    ) -> Option<MemberId> {
        let run = self.run.as_mut()?;
        if run.count > run.seen {
            (run.seen, run.grew) = (run.count, now);
        }
        if now.saturating_duration_since(run.grew) > PAUSE_MAX {
            self.run = None;
            return None;
        }
        let for_long =
            |since: Instant, least: Duration| now.saturating_duration_since(since) >= least;
        let due = for_long(run.since, SETTLED)
            && run.count >= WRITES_MIN
            && for_long(leading_since, HOLD)
            && self.tried.is_none_or(|tried| for_long(tried, HOLD));
        let to = (due && run.from != own && may(run.from)).then_some(run.from)?;
        self.tried = Some(now);
        Some(to)
    }
}

/// Whether the leader of `status` may make room for `id`.
pub(crate) fn may_follow(status: &Status, config: &Config, id: MemberId) -> bool {
    let weight = |id| config.members.get(&id).map_or(0, |info| info.weight);
    let caught_up = status
        .peers
        .iter()
        .any(|peer| peer.id == id && peer.matched + CAUGHT_UP_ENTRIES >= status.last.index);
    config.may_lead(id) && weight(id) >= weight(status.id) && caught_up
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: MemberId = MemberId(1);

    struct Look {
        writes: Writes,
        start: Instant,
    }

    impl Look {
        fn new() -> Self {
            Self { writes: Writes::default(), start: Instant::now() }
        }

        /// A write of each of `from` every 100 ms until `end` (seconds); whom leadership went to.
        fn write(&mut self, from: &[u128], begin: u64, end: u64) -> Option<MemberId> {
            (begin * 10..end * 10).find_map(|tick| {
                from.iter().for_each(|id| self.writes.note(MemberId(*id), 1));
                self.look(tick)
            })
        }

        fn look(&mut self, tick: u64) -> Option<MemberId> {
            let now = self.start + Duration::from_millis(100 * tick);
            self.writes.follow(OWN, self.start, now, |_| true)
        }
    }

    #[test]
    fn the_only_writer_is_followed_after_a_while() {
        let mut look = Look::new();
        assert_eq!(look.write(&[2], 0, 10), None, "this leader has just begun");
        assert_eq!(look.write(&[2], 10, 11), Some(MemberId(2)));
        assert_eq!(look.write(&[2], 11, 20), None, "it was tried a moment ago");
    }

    #[test]
    fn several_writers_the_own_writes_and_pauses_move_nothing() {
        assert_eq!(Look::new().write(&[2, 3], 0, 60), None);
        assert_eq!(Look::new().write(&[OWN.0, 2], 0, 60), None);
        assert_eq!(Look::new().write(&[OWN.0], 0, 60), None);
        let mut look = Look::new();
        for second in 0..30 {
            assert_eq!(look.write(&[2], 2 * second, 2 * second + 1), None);
            assert_eq!(look.look(20 * second + 25), None);
        }
    }

    #[test]
    fn who_may_not_lead_is_not_followed() {
        let (mut writes, start) = (Writes::default(), Instant::now());
        for tick in 0..300 {
            writes.note(MemberId(2), 1);
            let now = start + Duration::from_millis(100 * tick);
            assert_eq!(writes.follow(OWN, start, now, |id| id != MemberId(2)), None);
        }
    }
}
