//! How soon a snapshot is sent to a peer again. The core asks for one as soon as it hears the peer; but where the peer has
//! no room for it, or this member cannot read what comes after it, that would be all that either does.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// After each snapshot the pause is twice as long, until a while has passed without any.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// When the last one was begun, or has left, and for how long after that there is to be none.
    last: Option<(Instant, Duration)>,
}

impl Again {
    /// When one may be sent.
    pub fn due(&self) -> Option<Instant> {
        self.last.map(|(at, pause)| at + pause)
    }

    /// One is sent.
    pub fn begun(&mut self, now: Instant) {
        let repeated = self.last.filter(|(at, pause)| now < *at + 3 * *pause);
        let pause = repeated.map_or(FIRST, |(_, pause)| (2 * pause).min(LONGEST));
        self.last = Some((now, pause));
    }

    /// It has left, however long that took.
    pub fn left(&mut self, now: Instant) {
        if let Some((at, _)) = &mut self.last {
            *at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_ones_come_ever_later_and_a_rare_one_at_once() {
        let mut again = Again::default();
        assert_eq!(again.due(), None);
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            again.begun(now);
            // Longer than any pause.
            now += Duration::from_secs(300);
            again.left(now);
            let due = again.due().unwrap();
            pauses.push((due - now).as_secs());
            now = due + Duration::from_millis(200);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        now += Duration::from_secs(150);
        again.begun(now);
        assert_eq!(again.due(), Some(now + FIRST));
    }
}
