//! Waiting for members, which cannot be asked to report.

use super::Fleet;
use anyhow::{bail, ensure, Context, Result};
use mysql::Conn;
use quorate_lab::process::Activity;
use quorate_lab::server::error_log;
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
/// Where the time until something is measured.
const POLL_CLOSELY: Duration = Duration::from_millis(5);
/// For a server to be up after a start; state transfers take their time.
const START_LIMIT: Duration = Duration::from_secs(180);
const LINES_SHOWN: usize = 12;

impl Fleet {
    /// Waits until these members take part.
    pub fn wait_up(&self, members: &[usize]) -> Result<()> {
        self.wait_up_until(members, Instant::now() + START_LIMIT)
    }

    fn wait_up_until(&self, members: &[usize], end: Instant) -> Result<()> {
        let up = |member: &usize| {
            let mut connection = self.try_connect(*member)?;
            match self.system.is_up(&mut connection)? {
                true => Ok(()),
                false => bail!("node{} is not up", member + 1),
            }
        };
        members.iter().try_for_each(|member| self.poll(*member, end, || up(member)))
    }

    /// Waits until a member that was started takes connections.
    pub(crate) fn wait_answer(&self, member: usize) -> Result<Conn> {
        let end = Instant::now() + START_LIMIT;
        self.poll(member, end, || self.try_connect(member).map_err(Into::into))?;
        self.connect(member)
    }

    /// Waits until all members take part and have applied the same. Only where nobody writes.
    pub fn wait_level(&self, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        for member in self.members() {
            self.poll(member, end, || {
                // The first may take what it has itself not yet seen.
                let (own, first) = (self.applied(member)?, self.applied(0)?);
                match own == first && self.system.is_up(&mut self.try_connect(member)?)? {
                    true => Ok(()),
                    false => bail!("node{} has applied {own}, node1 {first}", member + 1),
                }
            })?;
        }
        Ok(())
    }

    /// Waits until a member has applied so many transactions, see [`System::applied`]. Others may write
    /// meanwhile.
    ///
    /// [`System::applied`]: crate::system::System::applied
    pub fn wait_applied(&self, member: usize, goal: u64, end: Instant) -> Result<()> {
        let mut kept: Option<Conn> = None;
        self.poll_every(POLL_CLOSELY, member, end, || {
            let mut connection = match kept.take() {
                Some(connection) => connection,
                None => self.try_connect(member)?,
            };
            let own = self.system.applied(&mut connection)?;
            kept = Some(connection);
            ensure!(own >= goal, "node{} has applied {own} of {goal}", member + 1);
            Ok(())
        })
    }

    /// Waits until all members have applied as many transactions as this one has now.
    pub fn wait_caught_up(&self, with: usize, limit: Duration) -> Result<()> {
        self.wait_caught_up_until(with, Instant::now() + limit)
    }

    fn wait_caught_up_until(&self, with: usize, end: Instant) -> Result<()> {
        let goal = self.applied(with)?;
        self.members().try_for_each(|member| self.wait_applied(member, goal, end))
    }

    /// The member that has applied most.
    pub fn farthest(&self) -> Result<usize> {
        let applied = |member| Ok((self.applied(member)?, member));
        let applied: Vec<(u64, usize)> = self.members().map(applied).collect::<Result<_>>()?;
        applied.into_iter().max().map(|(_, member)| member).context("there are no members")
    }

    /// How long it takes from now until all members have what any of them has now. None: longer than
    /// `limit`. An error if a member is gone.
    pub fn catch_up(&self, limit: Duration) -> Result<Option<Duration>> {
        within(limit, |end| self.wait_caught_up_until(self.farthest()?, end))
    }

    /// Waits until these members take part, and all have what any had when they did. Others may write
    /// meanwhile. False: that takes longer than `limit`. An error if a member is gone.
    pub fn rejoin(&self, members: &[usize], limit: Duration) -> Result<bool> {
        let back = within(limit, |end| {
            self.wait_up_until(members, end)?;
            self.wait_caught_up_until(self.farthest()?, end)?;
            // Who was away may not have known that it was.
            self.wait_up_until(members, end)
        });
        Ok(back?.is_some())
    }

    fn poll<T>(&self, member: usize, end: Instant, attempt: impl Fn() -> Result<T>) -> Result<T> {
        self.poll_every(POLL, member, end, attempt)
    }

    /// Tries until it succeeds; the error shows the ends of the logs. A server that has ended is not
    /// waited for.
    fn poll_every<T>(
        &self,
        pause: Duration,
        member: usize,
        end: Instant,
        mut attempt: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        loop {
            let error = match attempt() {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if self.activity(member) == Activity::Gone {
                bail!("node{} does not run. {}", member + 1, self.log_ends());
            }
            if Instant::now() >= end {
                bail!("waited in vain: {error:#}. {}", self.log_ends());
            }
            thread::sleep(pause);
        }
    }

    pub(super) fn log_ends(&self) -> String {
        let ends = self.seats.iter().map(|seat| {
            let path = seat.node.error_log();
            let lines = error_log::tail(&path, LINES_SHOWN).join("\n    ");
            format!("The end of {}:\n    {lines}", path.display())
        });
        ends.collect::<Vec<_>>().join("\n")
    }
}

/// How long it took. None: it was given up when the limit had passed; other errors remain errors.
fn within(limit: Duration, wait: impl FnOnce(Instant) -> Result<()>) -> Result<Option<Duration>> {
    let begin = Instant::now();
    let end = begin + limit;
    match wait(end) {
        Ok(()) => Ok(Some(begin.elapsed())),
        Err(_) if Instant::now() >= end => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_too_long_is_no_error() {
        // In an hour nothing is late, whatever else runs on this machine.
        let (hour, moment) = (Duration::from_secs(3600), Duration::from_millis(20));
        let fail = |_| bail!("no server");
        let fail_late = |end| {
            while Instant::now() < end {
                thread::yield_now();
            }
            bail!("waited in vain")
        };
        assert!(within(hour, |_| Ok(())).unwrap().is_some());
        assert!(within(hour, fail).is_err());
        assert_eq!(within(moment, fail_late).unwrap(), None);
    }
}
