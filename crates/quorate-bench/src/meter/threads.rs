//! What the threads of servers use of the processor, and how often they sleep and are woken. Everything is
//! the kernel's own count, in `/proc`.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// The connections to other members, of which each has a name of its own.
const SENDERS: &str = "qrt-send";
/// Those of Quorate's library; the log has names of its own.
const OWN: [&str; 2] = ["qrt-", "quorate-"];

/// Of all threads of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    pub cpu: Duration,
    /// A thread that goes to sleep is woken once.
    pub sleeps: u64,
    /// It had to make room for another.
    pub preempted: u64,
}

/// By thread.
#[derive(Clone, Debug, Default)]
pub struct Threads(BTreeMap<i32, (String, Activity)>);

/// The threads of a process, with their names. One that ends meanwhile is left out.
pub fn names(pid: i32) -> Result<BTreeMap<i32, String>> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder).with_context(|| format!("reading {folder}"))?;
    let name = |thread: i32| {
        let name = fs::read_to_string(format!("{folder}/{thread}/comm")).ok()?;
        Some((thread, name.trim_end().to_owned()))
    };
    let threads = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(threads.filter_map(name).collect())
}

impl Threads {
    /// What all have used since they began.
    pub fn read(pids: &[i32]) -> Result<Threads> {
        Threads::read_of(pids, |_| true)
    }

    /// Those of Quorate's library, which has no name for the threads of clients.
    pub fn read_own(pids: &[i32]) -> Result<Threads> {
        Threads::read_of(pids, is_own)
    }

    fn read_of(pids: &[i32], wanted: impl Fn(&str) -> bool) -> Result<Threads> {
        let mut threads = BTreeMap::new();
        for pid in pids {
            for (thread, name) in names(*pid)?.into_iter().filter(|(_, name)| wanted(name)) {
                let folder = format!("/proc/{pid}/task/{thread}");
                let file = |name: &str| fs::read_to_string(format!("{folder}/{name}"));
                let (Ok(times), Ok(status)) = (file("schedstat"), file("status")) else { continue };
                let activity = activity(&times, &status);
                let activity = activity.with_context(|| format!("{folder}: {times:?}"))?;
                threads.insert(thread, (name, activity));
            }
        }
        Ok(Threads(threads))
    }

    /// What was used from this reading to a later one, by name; threads that ended meanwhile are not told.
    pub fn until(&self, later: &Threads) -> BTreeMap<String, Activity> {
        let mut used: BTreeMap<String, Activity> = BTreeMap::new();
        for (thread, (name, after)) in &later.0 {
            let before = self.0.get(thread).map(|(_, before)| *before).unwrap_or_default();
            let name = if name.starts_with(SENDERS) { SENDERS } else { name };
            let sum = used.entry(name.to_owned()).or_default();
            sum.cpu += after.cpu.saturating_sub(before.cpu);
            sum.sleeps += after.sleeps.saturating_sub(before.sleeps);
            sum.preempted += after.preempted.saturating_sub(before.preempted);
        }
        used
    }

    /// The same in sum; none if there are no threads.
    pub fn sum_until(&self, later: &Threads) -> Option<Activity> {
        self.until(later).into_values().reduce(|sum, used| Activity {
            cpu: sum.cpu + used.cpu,
            sleeps: sum.sleeps + used.sleeps,
            preempted: sum.preempted + used.preempted,
        })
    }
}

fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| name.starts_with(own))
}

/// Of a thread's `schedstat` (nanoseconds on a processor first) and `status`.
fn activity(times: &str, status: &str) -> Option<Activity> {
    let switches = |kind: &str| {
        let mut lines = status.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| *name == kind)?.1.trim().parse().ok()
    };
    Some(Activity {
        cpu: Duration::from_nanos(times.split(' ').next()?.parse().ok()?),
        sleeps: switches("voluntary_ctxt_switches")?,
        preempted: switches("nonvoluntary_ctxt_switches")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_and_sleeps_is_seen_doing_so() {
        let pid = [std::process::id() as i32];
        let before = Threads::read(&pid).unwrap();
        let work = move || {
            let end = std::time::Instant::now() + Duration::from_millis(20);
            while std::time::Instant::now() < end {}
            for _ in 0..5 {
                std::thread::sleep(Duration::from_millis(1));
            }
            Threads::read(&pid).unwrap()
        };
        let worker = std::thread::Builder::new().name("qrt-send-abc".into()).spawn(work).unwrap();
        let after = worker.join().unwrap();
        let used = before.until(&after);
        let worker = used[SENDERS];
        assert!(worker.cpu > Duration::from_millis(1) && worker.sleeps >= 5, "{used:?}");
        let sum = before.sum_until(&after).unwrap();
        assert!(sum.cpu >= worker.cpu && sum.sleeps >= worker.sleeps, "{sum:?}");
        assert_eq!(before.sum_until(&Threads::default()), None);
    }

    #[test]
    fn the_kernels_counts_are_read() {
        let status =
            "Name:\tmariadbd\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        let cpu = Duration::from_nanos(1_500_000);
        let read = activity("1500000 77 700\n", status).unwrap();
        assert_eq!(read, Activity { cpu, sleeps: 150, preempted: 545 });
        assert_eq!(activity("", status), None);
        assert!(is_own("qrt-recv") && is_own("quorate-log") && !is_own("one_connection"));
        assert_eq!(activity("1 2 3", "Name:\tx\n"), None);
    }
}
