//! The end of a member's certificate, or of a CA that it depends on, long before it comes: afterwards nobody makes a
//! new connection with this member, and the group loses it at the next broken one.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// From when on it is told.
const SOON_DAYS: i64 = 30;

/// When something expires that connections stand on.
#[derive(Clone, Debug)]
pub struct Expiry {
    /// The file with the certificate that ends first.
    pub path: PathBuf,
    pub at: SystemTime,
}

impl Expiry {
    /// Whole days that are left; below 0 from the end on.
    pub fn days_left(&self, now: SystemTime) -> i64 {
        let days = |time: Duration| (time.as_secs() / DAY.as_secs()) as i64;
        match self.at.duration_since(now) {
            Ok(left) => days(left),
            Err(since) => -1 - days(since.duration()),
        }
    }

    /// What is to be said of it now.
    pub fn warning(&self, now: SystemTime) -> Option<String> {
        let (days, path) = (self.days_left(now), self.path.display());
        let remedy = "put a new one there, and FLUSH SSL; nothing has to be restarted";
        match days {
            ..0 => Some(format!(
                "a certificate in {path} has expired: connections that stand on it are not made any more, and this \
                 node is lost to the group at the next broken one. Renew it now: {remedy}"
            )),
            0..=SOON_DAYS => Some(format!(
                "a certificate in {path}, which this node depends on, expires in {days} days; then no new connection to it or from it \
                 is made. Renew it: {remedy}"
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_long_before_and_after_it() {
        let now = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let told = |at: SystemTime| {
            let expiry = Expiry { path: "/c.pem".into(), at };
            (expiry.days_left(now), expiry.warning(now))
        };
        let second = Duration::from_secs(1);
        assert_eq!(told(now + 31 * DAY), (31, None));
        for (at, days) in [(now + 31 * DAY - second, 30), (now + DAY / 2, 0), (now, 0)] {
            let (left, warning) = told(at);
            assert_eq!(left, days);
            assert!(warning.unwrap().contains(&format!("expires in {days} days")));
        }
        for (at, days) in [(now - second, -1), (now - DAY, -2)] {
            let (left, warning) = told(at);
            assert_eq!(left, days);
            assert!(warning.unwrap().contains("has expired"));
        }
    }
}
