//! Who uses the processor for a commit: by thread, and by function where perf is installed.

use super::threads::{Activity, Threads};
use crate::fleet::Fleet;
use anyhow::{ensure, Context, Result};
use quorate_lab::process::Process;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// For perf to write what it has.
const LIMIT: Duration = Duration::from_secs(60);
/// Samples a second; no multiple of anything that the servers do.
const FREQUENCY: &str = "997";
/// Of perf's report.
const FUNCTIONS_SHOWN: usize = 60;
/// In percent: less is shown as nothing.
const SHARE_MIN: f64 = 0.05;
const ABSENT: &str = "perf is not installed (Debian: apt-get install linux-perf): no functions.";

/// None, or what to say of it.
pub fn perf_is_absent() -> Option<&'static str> {
    let quiet = Command::new("perf").arg("--version").stdout(Stdio::null()).status();
    (!quiet.is_ok_and(|status| status.success())).then_some(ABSENT)
}

/// Looks at all servers of a fleet as long as it lives.
pub struct Profile {
    servers: Vec<i32>,
    before: Threads,
    perf: Option<Perf>,
}

/// What was found.
#[derive(Debug)]
pub struct Found {
    /// By name of the thread.
    pub threads: BTreeMap<String, Activity>,
    /// As perf shows them, or why there are none.
    pub functions: String,
}

impl Profile {
    /// `folder`: for what perf writes meanwhile.
    pub fn begin(fleet: &Fleet, folder: &Path) -> Result<Profile> {
        let servers: Vec<i32> = fleet.members().filter_map(|member| fleet.pid(member)).collect();
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let perf = match perf_is_absent() {
            None => Some(Perf::start(fleet, &servers, folder)?),
            Some(_) => None,
        };
        Ok(Profile { before: Threads::read(&servers)?, servers, perf })
    }

    pub fn end(self) -> Result<Found> {
        let threads = self.before.until(&Threads::read(&self.servers)?);
        let functions = match self.perf {
            Some(perf) => perf.functions()?,
            None => ABSENT.to_owned(),
        };
        Ok(Found { threads, functions })
    }
}

impl Found {
    /// The shares of the threads that use most, for so many commits.
    pub fn text(&self, commits: usize) -> String {
        let each = |count: u64| count as f64 / commits.max(1) as f64;
        let mut text = String::from(
            "thread            % of CPU   µs/commit  sleeps/commit  preempted/commit\n",
        );
        for (name, share, activity) in self.shares() {
            let us = activity.cpu.as_secs_f64() * 1e6 / commits.max(1) as f64;
            let (sleeps, preempted) = (each(activity.sleeps), each(activity.preempted));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name:<16} {share:>9.1} {us:>11.1} {sleeps:>14.2} {preempted:>17.2}"
            );
        }
        text + "\n" + &self.functions
    }

    /// `one_connection 41 %, qrt-feeder 12 %`: those that have a hundredth of it.
    pub fn line(&self) -> String {
        let shares = self.shares();
        let large = shares.iter().filter(|(_, share, _)| *share >= 1.0);
        let words: Vec<String> =
            large.map(|(name, share, _)| format!("{name} {share:.0} %")).collect();
        words.join(", ")
    }

    /// Of all threads together: how often they slept, and how often they had to make room.
    pub fn switches(&self) -> (u64, u64) {
        let threads = self.threads.values();
        threads.fold((0, 0), |sum, thread| (sum.0 + thread.sleeps, sum.1 + thread.preempted))
    }

    /// By thread with a share that can be shown, the most of the processor first, in percent.
    fn shares(&self) -> Vec<(&str, f64, Activity)> {
        let all: f64 = self.threads.values().map(|thread| thread.cpu.as_secs_f64()).sum();
        let mut shares: Vec<(&str, f64, Activity)> = self
            .threads
            .iter()
            .map(|(name, activity)| {
                let share = activity.cpu.as_secs_f64() / all.max(f64::MIN_POSITIVE);
                (name.as_str(), 100.0 * share, *activity)
            })
            .filter(|(_, share, _)| *share >= SHARE_MIN)
            .collect();
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        shares
    }
}

struct Perf {
    process: Process,
    data: PathBuf,
}

impl Perf {
    fn start(fleet: &Fleet, servers: &[i32], folder: &Path) -> Result<Perf> {
        let data = folder.join("perf.data");
        let servers: Vec<String> = servers.iter().map(i32::to_string).collect();
        let mut command = Command::new("perf");
        command
            // A clock that machines without counters have, too.
            .args(["record", "--quiet", "-e", "cpu-clock", "-F", FREQUENCY])
            .args(["-p", &servers.join(","), "-o"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Process::start(&fleet.network().hosts()[0], &mut command)?;
        Ok(Perf { process, data })
    }

    /// Ends it, and lets it say what it saw.
    fn functions(self) -> Result<String> {
        self.process.terminate()?;
        ensure!(self.process.wait_gone(LIMIT)?, "perf does not end");
        let output = Command::new("perf")
            .args(["report", "--stdio", "--no-children", "--sort", "comm,dso,symbol", "-i"])
            .arg(&self.data)
            .stdin(Stdio::null())
            .output()
            .context("running perf")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "perf report: {error}");
        fs::remove_file(&self.data).with_context(|| format!("removing {}", self.data.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        Ok(lines.take(FUNCTIONS_SHOWN).map(narrow).collect())
    }
}

/// A line of perf's report without the blanks that make its columns wide, and without those that are empty.
fn narrow(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "-").collect();
    words.join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_perf_is_made_narrow() {
        let line = "    17.85%  mariadbd  [kernel.kallsyms]   [k] finish_task_switch.isra.0       -      -   ";
        assert_eq!(
            narrow(line),
            "17.85% mariadbd [kernel.kallsyms] [k] finish_task_switch.isra.0\n"
        );
    }

    #[test]
    fn shares_add_up_and_those_that_rest_are_not_told() {
        let ms = |ms, sleeps| Activity { cpu: Duration::from_millis(ms), sleeps, preempted: 1 };
        let threads = [("qrt-feeder", ms(25, 10)), ("one_connection", ms(75, 20))];
        let mut threads: BTreeMap<String, Activity> =
            threads.into_iter().map(|(name, activity)| (name.to_owned(), activity)).collect();
        threads.insert("idle".into(), Activity::default());
        let found = Found { threads, functions: "none\n".into() };
        assert_eq!(found.line(), "one_connection 75 %, qrt-feeder 25 %");
        assert_eq!(found.switches(), (30, 2));
        let text = found.text(10);
        assert!(text.contains("7500.0") && text.contains("2.00"), "{text}");
        assert!(!text.contains("idle") && text.ends_with("none\n"), "{text}");
    }
}
