//! Lines in the error log that others can cause as often as they like: some at once, then one a second.

const INTERVAL_MS: u64 = 1_000;

pub(crate) struct Paced {
    /// How many may come at once.
    burst: u64,
    /// From when on it makes no difference that there were lines before.
    rested_ms: u64,
    untold: u64,
}

impl Paced {
    pub fn new(burst: u64) -> Self {
        Self { burst, rested_ms: 0, untold: 0 }
    }

    /// Whether a line may be written now. If so: what to write behind it, about those that were left out.
    pub fn due(&mut self, now_ms: u64) -> Option<String> {
        let ahead_ms = self.burst.saturating_sub(1).saturating_mul(INTERVAL_MS);
        if self.rested_ms > now_ms.saturating_add(ahead_ms) {
            self.untold += 1;
            return None;
        }
        self.rested_ms = self.rested_ms.max(now_ms).saturating_add(INTERVAL_MS);
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
