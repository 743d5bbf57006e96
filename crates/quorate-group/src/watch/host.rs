//! Noticing that the host of this member makes no progress: a commit that has begun there, of a
//! client's or of what another member wrote, does not end.
//!
//! A commit that has begun waits for nothing but its own server, and takes next to no time; what may
//! take long (locks, certification, a majority, other commits, a pause for a backup) comes before.
//! Only time during which this watch itself ran counts, so neither a paused process nor a starved
//! machine looks like a hanging server.

use std::time::Duration;

/// Time in the middle of one commit that means that the server hangs.
const PATIENCE_MS: u64 = 5_000;

pub(crate) struct HostWatch {
    commit: Option<i64>,
    /// How long it has been the same, as far as this was looked at.
    still_ms: u64,
    looked_ms: u64,
    hangs: bool,
}

impl HostWatch {
    pub fn new(now_ms: u64) -> Self {
        Self { commit: None, still_ms: 0, looked_ms: now_ms, hangs: false }
    }

    /// Whether the host hangs, if that has changed; and what there is to say. `commit` is the one
    /// that the host is in the middle of; looks are meant to be `pace_ms` apart.
    pub fn look(
        &mut self,
        commit: Option<i64>,
        pace_ms: u64,
        now_ms: u64,
    ) -> Option<(bool, String)> {
        let passed_ms = now_ms.saturating_sub(self.looked_ms).min(2 * pace_ms);
        self.looked_ms = now_ms;
        match commit {
            Some(_) if commit == self.commit => self.still_ms += passed_ms,
            _ => (self.commit, self.still_ms) = (commit, 0),
        }
        let hangs = self.still_ms >= PATIENCE_MS;
        if hangs == self.hangs {
            return None;
        }
        self.hangs = hangs;
        let line = match commit.filter(|_| hangs) {
            Some(seqno) => format!(
                "this server is in the middle of committing seqno {seqno} for {:.0?}: it seems to hang. If \
                 this node leads, another one takes over; the others go on without it, and nothing is \
                 lost. See whether the disk of its data directory still writes",
                Duration::from_millis(self.still_ms)
            ),
            None => "this server goes on".to_owned(),
        };
        Some((hangs, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE_MS: u64 = 100;

    #[test]
    fn a_commit_that_does_not_end_is_a_hang_and_others_are_not() {
        let mut watch = HostWatch::new(0);
        let mut look = |commit, tenths: u64| {
            let said = watch.look(commit, PACE_MS, tenths * 100);
            said.map(|(hangs, _)| hangs)
        };
        // Busy: always another commit, or none.
        for tenths in 1..100 {
            assert_eq!(look(Some(tenths as i64), tenths), None);
            assert_eq!(look(None, tenths), None);
        }
        // Stopped for a minute in the middle of one.
        assert_eq!(look(Some(1000), 100), None);
        assert_eq!(look(Some(1000), 700), None);
        assert_eq!(look(Some(1001), 701), None);
        let said: Vec<u64> =
            (702..900).filter(|tenths| look(Some(1001), *tenths) == Some(true)).collect();
        assert_eq!(said, [751], "after five seconds, once");
        assert_eq!(look(None, 901), Some(false));
    }
}
