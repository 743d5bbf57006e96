//! When a peer is dialled again.
//!
//! A connection that ends says nothing of the process at its other end, and what became of that is to be
//! known at once. If nobody answers, or a connection never stays, each pause is twice as long as the one
//! before.

use std::time::Duration;

/// A process that is being killed may be reached while its port is not closed yet.
const PAUSE_MIN: Duration = Duration::from_millis(5);

/// The pauses between dials of one peer.
#[derive(Clone, Copy, Debug)]
pub struct Redial {
    pause: Duration,
    pause_max: Duration,
    at_once: bool,
}

impl Redial {
    pub fn new(pause_max: Duration) -> Self {
        Redial { pause: PAUSE_MIN.min(pause_max), pause_max, at_once: true }
    }

    /// A connection has ended that stood for so long: the pause before the next dial.
    pub fn ended(&mut self, stood: Duration) -> Duration {
        if stood >= self.pause_max {
            *self = Redial::new(self.pause_max);
        }
        match std::mem::take(&mut self.at_once) {
            true => Duration::ZERO,
            false => self.failed(),
        }
    }

    /// There is no connection: the pause before the next dial.
    pub fn failed(&mut self) -> Duration {
        self.at_once = true;
        let pause = self.pause;
        self.pause = (pause * 2).min(self.pause_max);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn who_does_not_answer_is_dialled_less_and_less_often() {
        let mut redial = Redial::new(30 * MS);
        let pauses: Vec<_> = (0..5).map(|_| redial.failed()).collect();
        assert_eq!(pauses, [5 * MS, 10 * MS, 20 * MS, 30 * MS, 30 * MS]);
    }

    #[test]
    fn the_end_of_a_connection_is_looked_into_at_once_but_not_in_a_loop() {
        let mut redial = Redial::new(30 * MS);
        assert_eq!(redial.ended(MS), Duration::ZERO);
        assert_eq!(redial.ended(MS), 5 * MS, "it never stays");
        assert_eq!(redial.ended(MS), Duration::ZERO);
        assert_eq!(redial.ended(MS), 10 * MS);
        assert_eq!(redial.ended(30 * MS), Duration::ZERO, "it stood");
        assert_eq!(redial.failed(), 5 * MS);
    }
}
