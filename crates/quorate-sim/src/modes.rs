//! Whose writes the group of one run takes, and whether leadership follows them.
//!
//! Drawn apart from the rest of a scenario, so that the seeds of other groups keep their meaning.

use crate::scenario::Profile;
use crate::schedule::Micros;
use quorate_consensus::placement::Pace;
use quorate_consensus::{Primaries, Rules};
use quorate_seeds::{mix, Rng};

#[derive(Clone, Debug, Default)]
pub struct Modes {
    /// Anything but a group that takes everybody's writes wherever it is led.
    pub on: bool,
    /// A member looks once in so many ticks whether it may write, and until then goes by the last
    /// look.
    pub look_ticks: u64,
    /// Milliseconds, and shorter than the product's own, which would take most of a run.
    pub pace: Pace,
    /// Only one member writes at a time, each for so many election timeouts; 0: all do.
    pub turn_timeouts: u64,
    /// In the end two write, not one.
    pub two_write: bool,
}

impl Modes {
    /// `rules`: of the first membership, of which it sets what is not about zones and priorities.
    pub fn draw(rules: &mut Rules, seed: u64, profile: Profile, election_timeout_ms: u64) -> Self {
        let mut rng = Rng::new(mix(seed, 0x4d6f_6465_7321));
        let r = &mut rng;
        let possible = matches!(profile, Profile::Swarm | Profile::Membership | Profile::Network);
        if !possible || !r.chance(250) {
            return Modes::default();
        }
        *rules = Self::draw_rules(r, *rules);
        Modes {
            on: true,
            look_ticks: r.one_of([1, 4, 16]),
            pace: Pace {
                settled_ms: election_timeout_ms * r.range(1, 4) / 2,
                pause_max_ms: election_timeout_ms * r.range(2, 8) / 4,
                writes_min: r.range(1, 4),
                hold_ms: election_timeout_ms * r.range(2, 6) / 2,
            },
            turn_timeouts: r.one_of([0, 3, 6, 12]),
            two_write: r.chance(500),
        }
    }

    /// Where two write, a pace at which they can be told from one. While both wait for a slow disk,
    /// whoever wrote last would be the only writer. The product's own pace is several election
    /// timeouts, so that both write within it.
    pub fn tell_two_apart(&mut self, sync_max_us: Micros) {
        if self.two_write {
            let settled_ms = &mut self.pace.settled_ms;
            *settled_ms = (*settled_ms).max(SYNCS_SETTLED * sync_max_us / 1000);
        }
    }

    /// Other rules for a running group.
    pub fn rules(&self, rng: &mut Rng, rules: Rules) -> Rules {
        match self.on {
            true => Self::draw_rules(rng, rules),
            false => rules,
        }
    }

    fn draw_rules(rng: &mut Rng, rules: Rules) -> Rules {
        let single = rng.chance(500);
        let primaries = if single { Primaries::Single } else { Primaries::Multi };
        let (follows_writes, paused) = (rng.chance(800), rng.chance(100));
        Rules { primaries, follows_writes, paused, ..rules }
    }
}

/// A write waits for up to four of the slowest syncs, and its writer goes on only at the next look of
/// the last stage. By any clock that fits in twice as many.
const SYNCS_SETTLED: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::placement::Writes;
    use quorate_consensus::MemberId;

    #[test]
    fn two_that_wait_for_slow_writes_are_told_from_one() {
        let (timeout_ms, sync_max_ms) = (1000, 333);
        let mut rules = Rules::default();
        let draw = |seed| Modes::draw(&mut rules, seed, Profile::Swarm, timeout_ms);
        let draws = (0..2000).map(draw);
        let two_write: Vec<Modes> = draws.filter(|modes| modes.two_write).collect();
        assert!(!two_write.is_empty());
        for mut modes in two_write {
            modes.tell_two_apart(sync_max_ms * 1000);
            let mut writes = Writes::new(modes.pace);
            for now_ms in (0..80 * timeout_ms).step_by(111) {
                if now_ms % (4 * sync_max_ms) == 0 {
                    writes.note(MemberId(1), 1, now_ms);
                    writes.note(MemberId(2), 1, now_ms);
                }
                let to = writes.follow(MemberId(1), now_ms, now_ms, |_| true);
                assert_eq!(to, None, "at {now_ms} ms with {:?}", modes.pace);
            }
        }
    }
}
