//! What the group's log says has happened, as its member showed it last; and that beside what the agent saw.

use crate::history::Event;
use quorate_live::port::{Happening, MemberReport, Report, RulesReport};
use serde_json::{json, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is noted without any other change in a report is heard after so long ...
const INTERVAL: Duration = Duration::from_secs(30);
/// ... and what is noted of a change, a moment after it, within so long, for as long as that may take.
const SOON: Duration = Duration::from_secs(1);
const SETTLED: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Past {
    noted: Noted,
    heard: Option<Heard>,
}

/// In the order of the log. A copy costs nothing.
#[derive(Clone, Default)]
pub struct Noted(Arc<Vec<Happening>>);

struct Heard {
    sign: Sign,
    at: Instant,
    changed: Instant,
}

/// What in a report changes when something is noted, nearly always.
#[derive(PartialEq)]
struct Sign {
    term: u64,
    leader: Option<String>,
    view_number: u64,
    members: Vec<(String, String, u8, u8, bool)>,
    rules: RulesReport,
}

impl Sign {
    fn of(report: &Report) -> Sign {
        let member = |member: &MemberReport| {
            let MemberReport { id, role, priority, votes, joining, .. } = member;
            (id.clone(), role.clone(), *priority, *votes, *joining)
        };
        Sign {
            term: report.term,
            leader: report.leader.clone(),
            view_number: report.own.view_number,
            members: report.members.iter().map(member).collect(),
            rules: report.rules.clone(),
        }
    }
}

impl Past {
    /// Whether the member is to be asked what happened, having reported this.
    pub fn is_due(&self, report: &Report) -> bool {
        self.heard.as_ref().is_none_or(|heard| {
            let settled = heard.at.duration_since(heard.changed) >= SETTLED;
            let interval = if settled { INTERVAL } else { SOON };
            heard.at.elapsed() >= interval || heard.sign != Sign::of(report)
        })
    }

    /// The member, having reported this, showed these; none if it shows none, as one of an older release.
    pub fn heard(&mut self, report: &Report, happenings: Option<Vec<Happening>>) {
        let (sign, at) = (Sign::of(report), Instant::now());
        let same = self.heard.as_ref().filter(|heard| heard.sign == sign);
        let changed = same.map_or(at, |heard| heard.changed);
        self.heard = Some(Heard { sign, at, changed });
        if let Some(happenings) = happenings {
            self.noted = Noted(Arc::new(happenings));
        }
    }

    pub fn noted(&self) -> Noted {
        self.noted.clone()
    }
}

impl Noted {
    /// What was noted after this place in the log.
    pub fn after(&self, index: u64) -> &[Happening] {
        let first = self.0.partition_point(|happening| happening.index <= index);
        &self.0[first..]
    }

    /// The place of the last that was noted, as far as it is known here.
    pub fn last(&self) -> u64 {
        self.0.last().map_or(0, |happening| happening.index)
    }
}

/// What the group noted, in the order of its log, and between that what the agent saw, by the time. `source` tells them
/// apart: `log` or `agent`.
pub fn merged(noted: &[Happening], seen: &[Arc<Event>]) -> Vec<Value> {
    let from = |source: &str, mut event: Value| {
        event["source"] = json!(source);
        event
    };
    let mut all = Vec::with_capacity(noted.len() + seen.len());
    let mut seen = seen.iter().peekable();
    for happening in noted {
        while let Some(event) = seen.next_if(|event| event.time < happening.time) {
            all.push(from("agent", json!(event)));
        }
        all.push(from("log", json!(happening)));
    }
    all.extend(seen.map(|event| from("agent", json!(event))));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::report;
    use std::time::UNIX_EPOCH;

    #[test]
    fn a_member_is_asked_when_something_may_have_been_noted_and_not_each_time() {
        let mut past = Past::default();
        let first = report(true, "multi");
        assert!(past.is_due(&first));
        past.heard(&first, Some(vec![Happening { index: 3, ..Happening::default() }]));
        let mut later = first.clone();
        later.own.commit_index += 9;
        assert!(!past.is_due(&later));
        past.heard(&later, None);
        assert_eq!(past.noted().after(0).len(), 1, "what is known stays");
        let changes: [fn(&mut Report); 4] = [
            |report| report.term += 1,
            |report| report.own.view_number += 1,
            |report| report.members.push(MemberReport::default()),
            |report| report.rules.paused = true,
        ];
        for change in changes {
            let mut other = later.clone();
            change(&mut other);
            assert!(past.is_due(&other));
        }
    }

    #[test]
    fn what_was_seen_stands_by_its_time_between_what_was_noted_in_the_order_of_the_log() {
        let noted = |seconds| Happening {
            time: Event::new(UNIX_EPOCH + Duration::from_secs(seconds), "", "").time,
            kind: "view".into(),
            what: format!("noted {seconds}"),
            ..Happening::default()
        };
        let seen = Event::new(UNIX_EPOCH + Duration::from_secs(2), "state", "seen 2");
        // By a clock that is behind, and later all the same.
        let all = merged(&[noted(1), noted(3), noted(2)], &[seen.into()]);
        let told: Vec<_> = all
            .iter()
            .map(|event| (event["source"].as_str().unwrap(), event["what"].as_str().unwrap()))
            .collect();
        assert_eq!(
            told,
            [("log", "noted 1"), ("agent", "seen 2"), ("log", "noted 3"), ("log", "noted 2")]
        );
    }

    #[test]
    fn what_is_new_is_what_comes_after_it_in_the_log() {
        let mut past = Past::default();
        assert_eq!((past.noted().after(0).len(), past.noted().last()), (0, 0));
        let noted = |index| Happening { index, ..Happening::default() };
        past.heard(&report(true, "multi"), Some(vec![noted(3), noted(7), noted(9)]));
        assert_eq!((past.noted().after(3).len(), past.noted().last()), (2, 9));
        assert_eq!(past.noted().after(9).len(), 0);
    }
}
