//! What others can cause as often as they like: some at once, then one a second.

const INTERVAL_MS: u64 = 1_000;

/// How often something is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// How many may come at once.
    burst: u64,
    /// From when on it makes no difference that there were some before.
    rested_ms: u64,
}

impl Pace {
    pub fn new(burst: u64) -> Self {
        Self { burst, rested_ms: 0 }
    }

    /// Whether one may come now.
    pub fn is_ready(&self, now_ms: u64) -> bool {
        let ahead_ms = self.burst.saturating_sub(1).saturating_mul(INTERVAL_MS);
        self.rested_ms <= now_ms.saturating_add(ahead_ms)
    }

    /// One comes.
    pub fn spend(&mut self, now_ms: u64) {
        self.rested_ms = self.rested_ms.max(now_ms).saturating_add(INTERVAL_MS);
    }

    /// Whether one may come now; then it does.
    pub fn take(&mut self, now_ms: u64) -> bool {
        let ready = self.is_ready(now_ms);
        if ready {
            self.spend(now_ms);
        }
        ready
    }
}

/// Lines in the error log.
#[derive(Debug)]
pub struct Paced {
    pace: Pace,
    untold: u64,
}

impl Paced {
    pub fn new(burst: u64) -> Self {
        Self { pace: Pace::new(burst), untold: 0 }
    }

    /// Whether a line may be written now. If so: what to write behind it, about those that were left out.
    pub fn due(&mut self, now_ms: u64) -> Option<String> {
        if !self.pace.take(now_ms) {
            self.untold += 1;
            return None;
        }
        Some(match std::mem::take(&mut self.untold) {
            0 => String::new(),
            count => format!(" ({count} more since the last line)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_at_once_then_one_a_second() {
        let mut paced = Paced::new(3);
        let told: Vec<u64> = (0..5_000).filter(|now_ms| paced.due(*now_ms).is_some()).collect();
        assert_eq!(told, [0, 1, 2, 1_000, 2_000, 3_000, 4_000]);
        assert_eq!(paced.due(100_000).as_deref(), Some(" (999 more since the last line)"));
        assert_eq!(paced.due(100_000).as_deref(), Some(""), "it has rested");
    }
}
