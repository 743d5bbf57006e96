//! The last report of the member, what came of those before, and since when there is none.
//!
//! Invariant: what is read here is never waited for longer than the lock takes, and never older than it says.

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

pub struct Memory {
    /// An older report is none.
    stale: Duration,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    last: Option<(Arc<Report>, Instant)>,
    /// Why the last question had no answer; none if it had.
    silence: Option<String>,
    /// Nobody was there to be asked: what was known before counts for nothing, however young.
    gone: bool,
    events: VecDeque<Event>,
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
        Memory { stale, inner: Mutex::default() }
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
        if asked.elapsed() > self.stale {
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
        let fresh = last.as_ref().filter(|(_, age)| !inner.gone && *age <= self.stale);
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
        let inner = self.inner.lock();
        let history = merged(inner.past.noted_after(told.index), &seen);
        // Of another group, or of one that was forced back, it may be less.
        (history, Told { next, index: inner.past.last() })
    }

    /// Those from the one of this number on, and the number of the next; the first ever was 0.
    pub fn events_from(&self, number: u64) -> (Vec<Event>, u64) {
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
        self.events.push_back(event);
        self.noted += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::report;

    #[test]
    fn an_old_report_is_known_as_old_and_counts_for_nothing() {
        let memory = Memory::new(Duration::from_secs(1));
        assert!(memory.known().fresh.is_none() && memory.known().last.is_none());
        memory.answered(report(true, "multi"), Instant::now());
        assert!(memory.known().fresh.is_some());
        memory.not_answered("no answer in time".into(), false);
        assert!(memory.known().fresh.is_some(), "it may be slow");
        memory.not_answered("connection refused".into(), true);
        assert!(memory.known().fresh.is_none(), "it is gone");
        memory.answered(report(true, "multi"), Instant::now());
        assert!(memory.known().fresh.is_some());
        let Some(long_ago) = Instant::now().checked_sub(Duration::from_secs(5)) else { return };
        memory.answered(report(true, "multi"), long_ago);
        let known = memory.known();
        assert!(
            known.fresh.is_none(),
            "a question that took so long says how it was when it was asked"
        );
        assert!(known.last.unwrap().1 >= Duration::from_secs(5));
    }

    #[test]
    fn silence_is_told_once_and_so_is_its_end() {
        let memory = Memory::new(Duration::from_secs(1));
        memory.not_answered("connection refused".into(), true);
        memory.not_answered("connection refused".into(), true);
        memory.answered(report(true, "multi"), Instant::now());
        let events = memory.events_from(0).0;
        let whats: Vec<&str> = events.iter().map(|event| event.what.as_str()).collect();
        assert_eq!(
            whats,
            ["the member does not answer: connection refused", "the member answers again"]
        );
        let known = memory.known();
        assert_eq!((known.asked, known.unanswered, known.silence), (3, 2, None));
    }

    #[test]
    fn an_election_is_another_leader_or_another_term_and_no_gap_in_between() {
        let memory = Memory::new(Duration::from_secs(1));
        let elections_after = |term, leader: Option<&str>| {
            let leader = leader.map(str::to_owned);
            memory.answered(Report { term, leader, ..report(true, "multi") }, Instant::now());
            memory.known().elections
        };
        assert_eq!(elections_after(4, None), 0);
        assert_eq!(elections_after(4, Some("a")), 0, "elected who knows when");
        assert_eq!(elections_after(4, None), 0);
        assert_eq!(elections_after(4, Some("a")), 0, "the same leader was not heard for a while");
        memory.not_answered("no answer in time".into(), false);
        assert_eq!(elections_after(5, Some("b")), 1);
        assert_eq!(elections_after(6, None), 1, "not won yet");
        assert_eq!(elections_after(7, Some("b")), 2, "elected again");
    }

    #[test]
    fn old_events_make_room() {
        let memory = Memory::new(Duration::from_secs(1));
        for _ in 0..EVENTS_MAX {
            memory.not_answered("gone".into(), true);
            memory.answered(report(true, "multi"), Instant::now());
        }
        assert_eq!(memory.events_from(0).0.len(), EVENTS_MAX);
        let (last, next) = memory.events_from(2 * EVENTS_MAX as u64 - 1);
        assert_eq!((last.len(), next), (1, 2 * EVENTS_MAX as u64));
        assert_eq!(memory.events_from(next).0, []);
    }
}
