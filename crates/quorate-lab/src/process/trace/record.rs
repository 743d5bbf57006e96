//! When threads of processes did what.
//!
//! Invariant: a record is whole. Where the kernel had no room for an entry, there is none.

use super::Instance;
use anyhow::{bail, ensure, Context, Result};
use std::path::Path;
use std::time::Duration;

/// For each processor.
const BUFFER_KB: u32 = 4096;

/// A function of a program or a library, see [`super::function`].
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// What its moments are called.
    pub name: &'a str,
    pub file: &'a Path,
    /// Of its first instruction, in the file.
    pub offset: u64,
    /// Its return is a moment; else that it is called.
    pub at_return: bool,
}

/// One entry of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// By a clock that all threads share, to the microsecond.
    pub at: Duration,
    pub thread: i32,
    /// As the kernel writes it: `sys_fdatasync(fd: 5)`, `sched_waking: comm=...`.
    pub what: String,
}

/// Keeps what happens as long as it lives, or until its room is full.
pub struct Record {
    instance: Instance,
    events: Vec<String>,
}

impl Record {
    /// Of those that are [followed](Record::follow): events of the kernel (`sched/sched_waking`, ...), and
    /// functions. An error if this kernel cannot.
    pub fn new(events: &[&str], probes: &[Probe]) -> Result<Record> {
        let instance = Instance::new(BUFFER_KB)?;
        let mut events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
        for event in &events {
            ensure!(instance.has(event), "the kernel cannot trace {event}");
        }
        for probe in probes {
            events.push(instance.probe(probe)?);
        }
        // What comes first is kept, and the clock is the same on all processors.
        instance.write("options/overwrite", "0")?;
        instance.write("trace_clock", "mono")?;
        Ok(Record { instance, events })
    }

    pub fn follow(&self, pid: i32) -> Result<()> {
        self.instance.follow(pid, &self.events)
    }

    /// Ends it. In the order of time.
    pub fn read(self) -> Result<Vec<Moment>> {
        self.instance.write("tracing_on", "0")?;
        let lost = self.instance.sum(&["overrun", "commit overrun", "dropped events"])?;
        ensure!(lost == 0, "the kernel had no room for {lost} entries of its trace");
        let text = self.instance.read("trace")?;
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines
            .map(|line| moment(line).with_context(|| format!("no entry of a trace: {line}")))
            .collect()
    }
}

/// Of `       mariadbd-1234    [001] d..2.  3591.769370: sched_waking: comm=...`.
fn moment(line: &str) -> Result<Moment> {
    // The name of the thread may have anything in it, but hardly this.
    let (thread, rest) = line.split_once(" [").context("no processor")?;
    let (_, thread) = thread.rsplit_once('-').context("no thread")?;
    let (head, what) = rest.split_once(": ").context("no time")?;
    let Some(time) = head.split_whitespace().last() else { bail!("no time") };
    Ok(Moment {
        at: Duration::from_secs_f64(time.parse().context("the time")?),
        thread: thread.trim().parse().context("the thread")?,
        what: what.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let line =
            "      qrt-feeder-2345    [001] d..4.  3591.769370: sched_waking: comm=one pid=7";
        let read = moment(line).unwrap();
        let at = Duration::from_micros(3_591_769_370);
        assert!(read.at.abs_diff(at) < Duration::from_nanos(500));
        assert_eq!((read.thread, &*read.what), (2345, "sched_waking: comm=one pid=7"));
        let call = "  a b-c-77    [000]  12.000001: sys_fdatasync(fd: 5)";
        assert_eq!(moment(call).unwrap().what, "sys_fdatasync(fd: 5)");
        assert!(moment("CPU:1 [LOST 7 EVENTS]").is_err());
    }
}
