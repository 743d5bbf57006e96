//! The last report of the member, what came of those before, and since when there is none.
//!
//! Invariant: what is read here is never waited for longer than the lock takes, and never older than it says. Under the
//! lock nothing is written as JSON, and nothing is copied that is long.

use crate::history::{between, Event};
use crate::past::{merged, Past};
use parking_lot::Mutex;
use quorate_live::port::{Happening, Report};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// So many events are kept.
const EVENTS_MAX: usize = 1000;
/// A member is asked no more often, whatever it says.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

pub struct Memory {
    /// An older report is none.
    stale: Duration,
    /// Nor is one that is older than the member's election timeout, if it says how long that is.
    within_election: bool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    last: Option<(Arc<Report>, Instant)>,
    /// Why the last question had no answer; none if it had.
    silence: Option<String>,
    /// Nobody was there to be asked: what was known before counts for nothing, however young.
    gone: bool,
    events: VecDeque<Arc<Event>>,
    /// Events ever.
    noted: u64,
    /// The term and the id of the last leader that was seen, also while there is none.
    led: Option<(u64, String)>,
    /// Times that there was another one after it: another member, or the same one in another term.
    elections: u64,
    asked: u64,
    unanswered: u64,
    past: Past,
}

/// How far somebody was told the history.
#[derive(Clone, Copy, Default)]
pub struct Told {
    /// The number of the next event that was seen here.
    next: u64,
    /// The place in the log of the last that was noted.
    index: u64,
}

/// What is known now.
#[derive(Clone)]
pub struct Known {
    /// None if there is none that is young enough.
    pub fresh: Option<Arc<Report>>,
    /// Of the last report, however old.
    pub last: Option<(Arc<Report>, Duration)>,
    pub silence: Option<String>,
    /// That ended with a leader, after the first leader that was seen.
    pub elections: u64,
    pub asked: u64,
    pub unanswered: u64,
}

impl Memory {
    pub fn new(stale: Duration) -> Memory {
        Memory { stale, within_election: false, inner: Mutex::default() }
    }

    /// As verdicts need it: another member may lead once a report is as old as the election timeout.
    pub fn within_election_timeout(self) -> Memory {
        Memory { within_election: true, ..self }
    }

    /// How often the member is asked: as is wanted, or so much more often that what it says is young enough until its
    /// next answer.
    pub fn interval(&self, wanted: Duration) -> Duration {
        let inner = self.inner.lock();
        let age_max = inner.last.as_ref().map_or(self.stale, |(report, _)| self.age_max(report));
        wanted.min((age_max / 2).max(INTERVAL_MIN))
    }

    fn age_max(&self, report: &Report) -> Duration {
        let timeout = report.own.election_timeout_ms.filter(|_| self.within_election);
        timeout.map_or(self.stale, |timeout| self.stale.min(Duration::from_millis(timeout)))
    }

    /// The member said this, to a question that was asked at `asked`: what it says may be as old as that.
    pub fn answered(&self, report: Report, asked: Instant) {
        let mut inner = self.inner.lock();
        inner.asked += 1;
        inner.gone = false;
        let now = SystemTime::now();
        if inner.silence.take().is_some() {
            inner.note(Event::new(now, "answer", "the member answers again"));
        }
        if asked.elapsed() > self.age_max(&report) {
            let seconds = asked.elapsed().as_secs_f64();
            inner.note(Event::new(
                now,
                "answer",
                format!("the member took {seconds:.1} s to answer"),
            ));
        }
        if let Some((before, _)) = &inner.last {
            let events = between(before, &report, now);
            events.into_iter().for_each(|event| inner.note(event));
        }
        if let Some(leader) = &report.leader {
            let leads = Some((report.term, leader.clone()));
            inner.elections += u64::from(inner.led.is_some() && inner.led != leads);
            inner.led = leads;
        }
        inner.last = Some((Arc::new(report), asked));
    }

    /// `gone`: nobody is there, as after the end of the process.
    pub fn not_answered(&self, why: String, gone: bool) {
        let mut inner = self.inner.lock();
        inner.gone = gone;
        inner.asked += 1;
        inner.unanswered += 1;
        if inner.silence.is_none() {
            inner.note(Event::new(
                SystemTime::now(),
                "answer",
                format!("the member does not answer: {why}"),
            ));
        }
        inner.silence = Some(why);
    }

    pub fn known(&self) -> Known {
        let inner = self.inner.lock();
        let last = inner.last.as_ref().map(|(report, at)| (report.clone(), at.elapsed()));
        let is_fresh = |report: &Report, age| !inner.gone && age <= self.age_max(report);
        let fresh = last.as_ref().filter(|(report, age)| is_fresh(report, *age));
        Known {
            fresh: fresh.map(|(report, _)| report.clone()),
            silence: inner.silence.clone(),
            elections: inner.elections,
            asked: inner.asked,
            unanswered: inner.unanswered,
            last,
        }
    }

    /// Whether the member, having reported this, is to be asked what has happened to the group.
    pub fn wants_past(&self, report: &Report) -> bool {
        self.inner.lock().past.is_due(report)
    }

    pub fn past_heard(&self, report: &Report, happenings: Option<Vec<Happening>>) {
        self.inner.lock().past.heard(report, happenings);
    }

    /// What the group noted and what was seen here, the oldest first.
    pub fn history(&self) -> Vec<Value> {
        self.history_from(Told::default()).0
    }

    /// What was not told yet, and what is told with that.
    pub fn history_from(&self, told: Told) -> (Vec<Value>, Told) {
        let (seen, next) = self.events_from(told.next);
        let noted = self.inner.lock().past.noted();
        let history = merged(noted.after(told.index), &seen);
        // Of another group, or of one that was forced back, it may be less.
        (history, Told { next, index: noted.last() })
    }

    /// Those from the one of this number on, and the number of the next; the first ever was 0.
    pub fn events_from(&self, number: u64) -> (Vec<Arc<Event>>, u64) {
        let inner = self.inner.lock();
        let gone = inner.noted - inner.events.len() as u64;
        let passed = number.saturating_sub(gone) as usize;
        (inner.events.iter().skip(passed).cloned().collect(), inner.noted)
    }
}

impl Inner {
    fn note(&mut self, event: Event) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(Arc::new(event));
        self.noted += 1;
    }
}

#[cfg(test)]
mod tests;
