//! `leader_follows_writes`: leadership goes to the member that all writes come from, which saves
//! each of them the way to the leader and back. A policy for the driver: it notes where proposals
//! come from, asks now and then whom leadership should go to, and asks the core for that transfer.
//!
//! It must not make leadership wander, so it waits: all writes of a while came from one other member,
//! they still come, and this leader has led for a while. Where several write, nothing moves. A member
//! of lower priority is left alone (the priorities would take leadership back), and so is one that has not
//! caught up. It is a transfer like any other: no write is lost or refused by it.

use crate::{MemberId, Status};

/// How long it waits, in milliseconds of the driver's clock.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// For so long all writes came from one member.
    pub settled_ms: u64,
    /// A pause of more than this starts that time anew.
    pub pause_max_ms: u64,
    /// Fewer writes are not worth it.
    pub writes_min: u64,
    /// For so long a leader leads at least, and so much time is between two attempts.
    pub hold_ms: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { settled_ms: 3_000, pause_max_ms: 1_000, writes_min: 20, hold_ms: 10_000 }
    }
}

/// Where the proposals that a leader takes come from. Begins anew with each leader.
#[derive(Default)]
pub struct Writes {
    pace: Pace,
    run: Option<Run>,
    tried_ms: Option<u64>,
}

/// Writes from one member, without one from another in between.
struct Run {
    from: MemberId,
    since_ms: u64,
    count: u64,
    /// At the last look.
    seen: u64,
    grew_ms: u64,
}

impl Writes {
    pub fn new(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    pub fn note(&mut self, from: MemberId, count: usize, now_ms: u64) {
        let count = count as u64;
        match &mut self.run {
            Some(run) if run.from == from => run.count += count,
            _ => {
                self.run = Some(Run { from, since_ms: now_ms, count, seen: 0, grew_ms: now_ms });
            }
        }
    }

    /// Who should lead rather than `own`, which has for `led_ms`. Looks a few times a second.
    pub fn follow(
        &mut self,
        own: MemberId,
        led_ms: u64,
        now_ms: u64,
        may: impl Fn(MemberId) -> bool,
    ) -> Option<MemberId> {
        let Pace { settled_ms, pause_max_ms, writes_min, hold_ms } = self.pace;
        let run = self.run.as_mut()?;
        if run.count > run.seen {
            (run.seen, run.grew_ms) = (run.count, now_ms);
        }
        let passed = |since_ms: u64| now_ms.saturating_sub(since_ms);
        if passed(run.grew_ms) > pause_max_ms {
            self.run = None;
            return None;
        }
        let due = passed(run.since_ms) >= settled_ms
            && run.count >= writes_min
            && led_ms >= hold_ms
            && self.tried_ms.is_none_or(|tried_ms| passed(tried_ms) >= hold_ms);
        let to = (due && run.from != own && may(run.from)).then_some(run.from)?;
        self.tried_ms = Some(now_ms);
        Some(to)
    }
}

/// Whether the leader of `status` may make room for `id`.
pub fn may_follow(status: &Status, id: MemberId) -> bool {
    let config = &status.config;
    let priority = |id| config.members.get(&id).map_or(0, |info| info.priority);
    config.may_lead(id) && priority(id) >= priority(status.id) && status.caught_up(id).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: MemberId = MemberId(1);

    #[derive(Default)]
    struct Look(Writes);

    impl Look {
        /// A write of each of `from` every 100 ms until `end` (seconds); whom leadership went to.
        fn write(&mut self, from: &[u128], begin: u64, end: u64) -> Option<MemberId> {
            (begin * 10..end * 10).find_map(|tick| {
                from.iter().for_each(|id| self.0.note(MemberId(*id), 1, 100 * tick));
                self.look(tick)
            })
        }

        fn look(&mut self, tick: u64) -> Option<MemberId> {
            self.0.follow(OWN, 100 * tick, 100 * tick, |_| true)
        }
    }

    #[test]
    fn the_only_writer_is_followed_after_a_while() {
        let mut look = Look::default();
        assert_eq!(look.write(&[2], 0, 10), None, "this leader has just begun");
        assert_eq!(look.write(&[2], 10, 11), Some(MemberId(2)));
        assert_eq!(look.write(&[2], 11, 20), None, "it was tried a moment ago");
        assert_eq!(look.write(&[2], 20, 21), Some(MemberId(2)));
    }

    #[test]
    fn several_writers_the_own_writes_and_pauses_move_nothing() {
        assert_eq!(Look::default().write(&[2, 3], 0, 60), None);
        assert_eq!(Look::default().write(&[OWN.0, 2], 0, 60), None);
        assert_eq!(Look::default().write(&[OWN.0], 0, 60), None);
        let mut look = Look::default();
        for second in 0..30 {
            assert_eq!(look.write(&[2], 2 * second, 2 * second + 1), None);
            assert_eq!(look.look(20 * second + 25), None);
        }
    }

    #[test]
    fn who_may_not_lead_is_not_followed() {
        let mut writes = Writes::default();
        for tick in 0..300 {
            writes.note(MemberId(2), 1, 100 * tick);
            assert_eq!(writes.follow(OWN, 100 * tick, 100 * tick, |id| id != MemberId(2)), None);
        }
    }
}
