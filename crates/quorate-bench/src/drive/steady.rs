//! A load of sysbench that goes on until it is ended, and whose throughput is seen meanwhile.

use super::sysbench::{of_fleet, second, with_load, Load, Tables};
use crate::fleet::Fleet;
use anyhow::{bail, ensure, Context, Result};
use parking_lot::Mutex;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const START_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// The load ends when this is dropped.
pub struct Steady {
    child: Child,
    seen: Arc<Mutex<Seen>>,
    reader: Option<JoinHandle<io::Result<()>>>,
    begin: Instant,
}

/// What it has said by now.
#[derive(Default)]
struct Seen {
    /// When its clients began.
    begin: Option<Instant>,
    curve: Vec<(f64, f64)>,
    rest: String,
}

impl Steady {
    /// Returns when the clients have begun; they end after [`Load::seconds`] at the latest.
    pub fn start(fleet: &Fleet, tables: Tables, load: &Load) -> Result<Steady> {
        let mut command = of_fleet(fleet, tables, load.members);
        command.arg("--report-interval=1");
        with_load(&mut command, load.script, load.clients, load.seconds);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("running sysbench")?;
        let output = child.stdout.take().context("sysbench has no output")?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let told = seen.clone();
        let reader = thread::spawn(move || read(output, &told));
        let mut steady = Steady { child, seen, reader: Some(reader), begin: Instant::now() };
        let end = steady.begin + START_LIMIT;
        steady.begin = loop {
            if let Some(begin) = steady.seen.lock().begin {
                break begin;
            }
            steady.check()?;
            ensure!(Instant::now() < end, "sysbench does not begin within {START_LIMIT:?}");
            thread::sleep(POLL);
        };
        Ok(steady)
    }

    /// An error if it has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait().context("looking at sysbench")? {
            None => Ok(()),
            Some(status) => {
                let mut error = String::new();
                if let Some(mut stream) = self.child.stderr.take() {
                    stream.read_to_string(&mut error).context("reading sysbench's errors")?;
                }
                bail!("sysbench has ended, {status}: {}{error}", self.seen.lock().rest)
            }
        }
    }

    /// When its clients began: 0 on the curve.
    pub fn begin(&self) -> Instant {
        self.begin
    }

    /// Transactions per second, by the second that ended then.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        self.seen.lock().curve.clone()
    }

    /// Ends it.
    pub fn stop(mut self) -> Result<Vec<(f64, f64)>> {
        self.check()?;
        self.end().context("ending sysbench")?;
        Ok(self.curve())
    }

    fn end(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        let reader = self.reader.take().map(JoinHandle::join);
        reader.map_or(Ok(()), |read| read.expect("a reader panicked"))
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        if self.reader.is_some() {
            if let Err(error) = self.end() {
                eprintln!("sysbench cannot be ended: {error}");
            }
        }
    }
}

fn read(from: ChildStdout, seen: &Mutex<Seen>) -> io::Result<()> {
    for line in BufReader::new(from).lines() {
        let line = line?;
        let mut seen = seen.lock();
        match second(&line) {
            Some(point) => seen.curve.push(point),
            None if line.starts_with("Threads started") => seen.begin = Some(Instant::now()),
            None => seen.rest.extend([line.as_str(), "\n"]),
        }
    }
    Ok(())
}
