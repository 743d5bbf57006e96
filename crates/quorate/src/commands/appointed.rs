//! What is done later: the command waits until then.

use crate::args::When;
use crate::failure::{Failure, FAILED, USAGE};
use anyhow::Result;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The end of the year 9999: what is later cannot be written down.
const CALENDAR: Duration = Duration::from_secs(253_402_300_799);
/// The calendar is looked at so often: a machine may be asleep meanwhile, or its clock be set.
const LOOK: Duration = Duration::from_secs(1);
/// Nothing is moved at an hour that nobody chose: the machine may have slept.
const LATE_MAX: Duration = Duration::from_secs(15);

/// Blocks until the time that is given, if one is. `ready` looks whether it could be done now, so that a mistake
/// shows at once.
pub fn wait(when: &When, what: &str, ready: impl FnOnce() -> Result<()>) -> Result<()> {
    let Some(at) = time(when, SystemTime::now())? else { return Ok(()) };
    ready()?;
    eprintln!(
        "{what} at {} (UTC). This command waits until then; Ctrl-C gives it up, and changes nothing.",
        humantime::format_rfc3339_seconds(at)
    );
    while let Ok(left) = at.duration_since(SystemTime::now()) {
        thread::sleep(left.min(LOOK));
    }
    in_time(at, SystemTime::now())
}

fn in_time(at: SystemTime, now: SystemTime) -> Result<()> {
    let late = now.duration_since(at).unwrap_or_default();
    if late <= LATE_MAX {
        return Ok(());
    }
    let late = humantime::format_duration(Duration::from_secs(late.as_secs()));
    let message = format!(
        "nothing was changed: its time passed {late} ago, while this machine slept, or its clock was set. Give the order \
         again if it is still wanted"
    );
    Err(Failure::new(FAILED, message).into())
}

fn time(when: &When, now: SystemTime) -> Result<Option<SystemTime>> {
    match (when.at, when.after) {
        (Some(at), _) if at < now => {
            let at = humantime::format_rfc3339_seconds(at);
            let message = format!("--at {at} has passed: nothing was changed. Times are in UTC");
            Err(Failure::new(USAGE, message).into())
        }
        (Some(at), _) => Ok(Some(at)),
        (None, Some(after)) => match now.checked_add(after).filter(is_in_calendar) {
            Some(at) => Ok(Some(at)),
            None => Err(Failure::new(USAGE, "--after is beyond the calendar").into()),
        },
        (None, None) => Ok(None),
    }
}

fn is_in_calendar(at: &SystemTime) -> bool {
    at.duration_since(UNIX_EPOCH).is_ok_and(|since| since < CALENDAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(at: Option<SystemTime>, after: Option<Duration>) -> When {
        When { at, after }
    }

    #[test]
    fn a_time_that_has_passed_is_refused_and_the_others_are_waited_for() {
        let now = SystemTime::now();
        let hour = Duration::from_secs(3600);
        assert_eq!(time(&when(None, None), now).unwrap(), None);
        assert_eq!(time(&when(None, Some(hour)), now).unwrap(), Some(now + hour));
        assert_eq!(time(&when(Some(now + hour), None), now).unwrap(), Some(now + hour));
        let passed = time(&when(Some(now - hour), None), now).unwrap_err().to_string();
        assert!(passed.contains("nothing was changed"), "{passed}");
        let ten_thousand_years = hour * (10_000 * 366 * 24);
        for beyond in [Duration::MAX, ten_thousand_years] {
            assert!(time(&when(None, Some(beyond)), now).is_err());
        }
    }

    #[test]
    fn what_is_late_is_not_done() {
        let now = SystemTime::now();
        assert!(in_time(now, now).is_ok() && in_time(now - LATE_MAX, now).is_ok());
        let hours = Duration::from_secs(7 * 3600);
        let told = in_time(now - hours, now).unwrap_err().to_string();
        assert!(told.starts_with("nothing was changed: its time passed 7h ago"), "{told}");
    }

    #[test]
    fn it_looks_first_and_waits_then() {
        let shortly = Duration::from_millis(30);
        let began = SystemTime::now();
        let mut looked = None;
        wait(&when(None, Some(shortly)), "nothing", || {
            looked = Some(SystemTime::now());
            Ok(())
        })
        .unwrap();
        assert!(looked.is_some() && SystemTime::now() >= began + shortly);
        let failed = wait(&when(None, Some(Duration::from_secs(999))), "nothing", || {
            Err(Failure::new(USAGE, "no such node").into())
        });
        assert_eq!(failed.unwrap_err().to_string(), "no such node");
    }
}
